"""Measuring again: what is chosen, and what two journals say of one another."""

from dataclasses import replace
from pathlib import Path

import pytest

from opmark.bench.run.retest import agreement, retest_suite
from opmark.bench.run.runner import run
from opmark.bench.suite.suite import Networks, NetworkSpec, Suite
from opmark.core.errors import ContentError
from opmark.core.journal import read_journal
from opmark.core.records import KernelTrial

SUITE = Suite(
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
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("retest") / "twice.jsonl"
    run(SUITE, journal=path)
    return path


def test_a_share_of_what_was_finished_first_is_chosen_the_same_way_every_time(journal: Path) -> None:
    found = read_journal(journal)
    usable = [trial for trial, done in found.done.items() if done.status in {"ok", "low_quality"}]
    kernels = [trial for trial in usable if isinstance(found.trials[trial], KernelTrial)]
    networks = [trial for trial in usable if trial not in kernels]
    chosen = retest_suite(SUITE, journal, share=0.1)
    assert chosen == retest_suite(SUITE, journal, share=0.1)
    assert len(set(chosen.only) & set(kernels)) == round(0.1 * len(kernels))
    assert set(chosen.only) & set(kernels) <= set(kernels[: (len(kernels) + 1) // 2])
    # A tenth of seven networks would be one.
    assert set(chosen.only) - set(kernels) == set(networks[:4])
    assert chosen.id == SUITE.id


def test_a_second_journal_agrees_with_the_first_as_far_as_the_backend_is_steady(journal: Path) -> None:
    again = journal.with_name("again.jsonl")
    summary = run(retest_suite(SUITE, journal, share=0.2), journal=again)
    found = {(one.target, one.what): one for one in agreement(journal, again)}
    assert set(found) == {("null-t1", "kernels"), ("null-t1", "networks")}
    assert sum(one.rows for one in found.values()) <= summary.planned
    assert found["null-t1", "networks"].rows == 4
    for one in found.values():
        assert one.median <= one.p90 <= one.p95 <= one.largest < 0.05
    assert agreement(journal, journal)[0].largest == 0


def test_a_suite_that_changed_since_is_refused(journal: Path) -> None:
    with pytest.raises(ContentError, match="of suite 'twice' as it was"):
        retest_suite(replace(SUITE, kernels=61), journal)
