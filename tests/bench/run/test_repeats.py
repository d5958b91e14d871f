"""Trials that are measured again, and the comparison of two journals."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sealing import sealed

from opmark.bench.run.repeats import agreement, first_trials, repeat_plan, retest_suite
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Networks, NetworkSpec, Suite
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.records import KernelTrial, repeat_key

SUITE = Suite(
    name="poor",
    targets=("null-a-t1",),
    quality="quick",
    kinds={"gemm": KindSpec(count=12)},
    networks=Networks(training=("light-squeezenet", "light-shufflenet")),
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("poor") / "poor.jsonl"
    run(SUITE, journal=path)
    return path.read_bytes()


@pytest.fixture
def journal(tmp_path: Path, measured: bytes) -> Path:
    path = tmp_path / "poor.jsonl"
    path.write_bytes(measured)
    return path


def degrade(path: Path, trials: Iterable[str], status: str = "low_quality") -> None:
    """As if the machine had drifted while `trials` were measured."""
    chosen = set(trials)
    lines = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["type"] == "done" and record["trial"] in chosen:
            record |= {"status": status, "reason": "the machine drifted"}
        lines.append(sealed(record))
    path.write_text("".join(lines))


def test_what_is_poor_is_measured_once_more_and_nothing_is_lost(journal: Path) -> None:
    planned = plan(SUITE)
    poor = [planned.kernels[3], planned.kernels[7], planned.networks[0]]
    degrade(journal, (trial.trial for trial in poor))
    before, written = read_journal(journal), journal.read_bytes()
    summary = run(SUITE, journal=journal, again="low_quality")
    assert (summary.planned, summary.done) == (3, 3)
    assert journal.read_bytes().startswith(written)
    after = read_journal(journal)
    assert after.done.keys() - before.done.keys() == {repeat_key(trial.trial, 1) for trial in poor}
    rows = [row for row in after.measurements if row.kernel == poor[0].kernel]  # type: ignore[union-attr]
    assert [row.status for row in rows] == ["low_quality", "ok"]
    assert [trial.trial for trial in first_trials(after)] == [trial.trial for trial in first_trials(before)]
    assert not set(retest_suite(SUITE, journal).only) & {repeat_key(trial.trial, 1) for trial in poor}
    with pytest.raises(NothingSelectedError, match="nothing of this suite is low_quality"):
        run(SUITE, journal=journal, again="low_quality")
    assert run(SUITE, journal=journal).complete


def test_a_pass_that_was_stopped_goes_on_and_one_that_ended_is_followed_by_another(journal: Path) -> None:
    planned = plan(SUITE)
    first, second = planned.kernels[0].trial, planned.kernels[1].trial
    degrade(journal, (first, second))
    run(SUITE, journal=journal, again="low_quality")
    # The second is as if the pass had been stopped before it was judged.
    kept = [line for line in journal.read_text().splitlines() if not _judges(line, repeat_key(second, 1))]
    journal.write_text("\n".join(kept) + "\n")
    begun = len(read_journal(journal).blocks[repeat_key(second, 1)])
    run(SUITE, journal=journal, again="low_quality")
    assert len(read_journal(journal).blocks[repeat_key(second, 1)]) == begun
    degrade(journal, (repeat_key(first, 1),))
    (further,) = repeat_plan(planned, read_journal(journal), "low_quality").kernels
    assert further.trial == repeat_key(first, 2)
    assert repeat_key(first, 0) == first


def _judges(line: str, trial: str) -> bool:
    record = json.loads(line)
    return bool(record["type"] == "done" and record["trial"] == trial)


def test_only_what_was_asked_for_is_measured_again(journal: Path) -> None:
    (failed, poor) = (trial.trial for trial in plan(SUITE).kernels[:2])
    degrade(journal, (failed,), "failed")
    degrade(journal, (poor,))
    (again,) = repeat_plan(plan(SUITE), read_journal(journal), "failed").kernels
    assert again.trial == repeat_key(failed, 1)


RETESTED = Suite(
    name="twice",
    targets=("null-t1",),
    kernels=60,
    at_least=2,
    networks=Networks(
        training=tuple(
            NetworkSpec(model=f"light-{name}")
            for name in ("squeezenet", "shufflenet", "alexnet", "resnet50", "densenet121", "zfnet512", "vgg19")
        )
    ),
)


@pytest.fixture(scope="module")
def retested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("retest") / "twice.jsonl"
    run(RETESTED, journal=path)
    return path


def test_a_share_of_what_was_finished_first_is_chosen_the_same_way_every_time(retested: Path) -> None:
    found = read_journal(retested)
    usable = [trial for trial, done in found.done.items() if done.status in {"ok", "low_quality"}]
    kernels = [trial for trial in usable if isinstance(found.trials[trial], KernelTrial)]
    networks = [trial for trial in usable if trial not in kernels]
    chosen = retest_suite(RETESTED, retested, share=0.1)
    assert chosen == retest_suite(RETESTED, retested, share=0.1)
    assert len(set(chosen.only) & set(kernels)) == round(0.1 * len(kernels))
    assert set(chosen.only) & set(kernels) <= set(kernels[: (len(kernels) + 1) // 2])
    # A tenth of seven networks would be one.
    assert set(chosen.only) - set(kernels) == set(networks[:4])
    assert chosen.id == RETESTED.id


def test_a_second_journal_agrees_with_the_first_as_far_as_the_backend_is_steady(retested: Path) -> None:
    again = retested.with_name("again.jsonl")
    summary = run(retest_suite(RETESTED, retested, share=0.2), journal=again)
    found = {(one.target, one.what): one for one in agreement(retested, again)}
    assert set(found) == {("null-t1", "kernels"), ("null-t1", "networks")}
    assert sum(one.rows for one in found.values()) <= summary.planned
    assert found["null-t1", "networks"].rows == 4
    for one in found.values():
        assert one.median <= one.p90 <= one.p95 <= one.largest < 0.05
    assert agreement(retested, retested)[0].largest == 0


def test_a_suite_that_changed_since_is_refused(retested: Path) -> None:
    with pytest.raises(ContentError, match="suite 'twice' with other content"):
        retest_suite(replace(RETESTED, kernels=61), retested)
