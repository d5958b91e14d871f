"""Measuring again: what is chosen, and what two journals say of one another."""

from dataclasses import replace
from pathlib import Path

import pytest

from opmark.bench.retest import agreement, retest_suite
from opmark.bench.runner import run
from opmark.bench.suite import Suite
from opmark.core.errors import ContentError
from opmark.core.journal import read_journal

SUITE = Suite(name="twice", targets=("null-t1",), kernels=60, at_least=2)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("retest") / "twice.jsonl"
    run(SUITE, journal=path)
    return path


def test_a_share_of_the_kernels_finished_first_is_chosen_the_same_way_every_time(journal: Path) -> None:
    usable = [trial for trial, done in read_journal(journal).done.items() if done.status in {"ok", "low_quality"}]
    chosen = retest_suite(SUITE, journal, share=0.1)
    assert chosen == retest_suite(SUITE, journal, share=0.1)
    assert len(chosen.only) == round(0.1 * len(usable))
    assert set(chosen.only) <= set(usable[: (len(usable) + 1) // 2])
    assert chosen.id == SUITE.id


def test_a_second_journal_agrees_with_the_first_as_far_as_the_backend_is_steady(journal: Path) -> None:
    again = journal.with_name("again.jsonl")
    summary = run(retest_suite(SUITE, journal, share=0.2), journal=again)
    found = agreement(journal, again)["null-t1"]
    assert 0 < found.kernels <= summary.planned
    assert found.median <= found.p90 <= found.p95 <= found.largest < 0.05


def test_a_suite_that_changed_since_is_refused(journal: Path) -> None:
    with pytest.raises(ContentError, match="of suite 'twice' as it was"):
        retest_suite(replace(SUITE, kernels=61), journal)
