"""Measuring once more what is of poor quality: which trials, resumed how, and what a journal then holds."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from opmark.bench.run.repeats import again_key, again_plan, first_trials
from opmark.bench.run.retest import retest_suite
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Networks, Suite
from opmark.core.errors import NothingSelectedError
from opmark.core.journal import read_journal

SUITE = Suite(
    name="poor",
    targets=("null-a-t1",),
    quality="quick",
    kinds={"gemm": KindSpec(count=12)},
    networks=Networks(training=("light-squeezenet", "light-shufflenet")),
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "poor.jsonl"
    run(SUITE, journal=path)
    return path


def degrade(path: Path, trials: Iterable[str], status: str = "low_quality") -> None:
    """As if the machine had drifted while `trials` were measured."""
    chosen = set(trials)
    lines = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["type"] == "done" and record["trial"] in chosen:
            record |= {"status": status, "reason": "the machine drifted"}
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")


def test_what_is_poor_is_measured_once_more_and_nothing_is_lost(journal: Path) -> None:
    planned = plan(SUITE)
    poor = [planned.kernels[3], planned.kernels[7], planned.networks[0]]
    degrade(journal, (trial.trial for trial in poor))
    before, written = read_journal(journal), journal.read_bytes()
    summary = run(SUITE, journal=journal, again="low_quality")
    assert (summary.planned, summary.done) == (3, 3)
    assert journal.read_bytes().startswith(written)
    after = read_journal(journal)
    assert after.done.keys() - before.done.keys() == {again_key(trial.trial, 1) for trial in poor}
    rows = [row for row in after.measurements if row.kernel == poor[0].kernel]  # type: ignore[union-attr]
    assert [row.status for row in rows] == ["low_quality", "ok"]
    assert [trial.trial for trial in first_trials(after)] == [trial.trial for trial in first_trials(before)]
    assert not set(retest_suite(SUITE, journal).only) & {again_key(trial.trial, 1) for trial in poor}
    with pytest.raises(NothingSelectedError, match="nothing of this suite is low_quality"):
        run(SUITE, journal=journal, again="low_quality")
    assert run(SUITE, journal=journal).complete


def test_a_pass_that_was_stopped_goes_on_and_one_that_ended_is_followed_by_another(journal: Path) -> None:
    planned = plan(SUITE)
    first, second = planned.kernels[0].trial, planned.kernels[1].trial
    degrade(journal, (first, second))
    run(SUITE, journal=journal, again="low_quality")
    # The second is as if the pass had been stopped before it was judged.
    kept = [line for line in journal.read_text().splitlines() if not _judges(line, again_key(second, 1))]
    journal.write_text("\n".join(kept) + "\n")
    begun = len(read_journal(journal).blocks[again_key(second, 1)])
    run(SUITE, journal=journal, again="low_quality")
    assert len(read_journal(journal).blocks[again_key(second, 1)]) == begun
    degrade(journal, (again_key(first, 1),))
    (further,) = again_plan(planned, read_journal(journal), "low_quality").kernels
    assert further.trial == again_key(first, 2)
    assert again_key(first, 0) == first


def _judges(line: str, trial: str) -> bool:
    record = json.loads(line)
    return bool(record["type"] == "done" and record["trial"] == trial)


def test_only_what_was_asked_for_is_measured_again(journal: Path) -> None:
    (failed, poor) = (trial.trial for trial in plan(SUITE).kernels[:2])
    degrade(journal, (failed,), "failed")
    degrade(journal, (poor,))
    (again,) = again_plan(plan(SUITE), read_journal(journal), "failed").kernels
    assert again.trial == again_key(failed, 1)
