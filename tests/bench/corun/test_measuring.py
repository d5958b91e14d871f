"""Co-runs of the backend without hardware, whose law is known: planned, measured, continued and learned from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opmark.bench.corun.measuring import SUITE, CorunReport, measure_corun
from opmark.bench.corun.stressors import NAMES
from opmark.bench.run.progress import RunProgress
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.measurements.journal import read_journal, read_records
from opmark.core.measurements.records import CorunTurns, decode, encode
from opmark.kinds import work_of
from opmark.predictors.corun.fitting import fitted_slowdown, held_out

TARGET = "null-t1"
MODELS = ("inception-tiny", "encoder-tiny")
KERNELS, PAIRS = 14, 6


def measured(journal: Path, **options: Any) -> CorunReport:
    return measure_corun(
        (TARGET,), journal=journal, **{"models": MODELS, "kernels": KERNELS, "pairs": PAIRS, **options}
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> CorunReport:
    return measured(tmp_path_factory.mktemp("corun") / "corun.jsonl")


def test_every_kernel_meets_every_stressor_and_some_kernels(report: CorunReport) -> None:
    assert report.complete
    assert report.planned == KERNELS * (len(NAMES) + PAIRS)
    assert {row.neighbour for row in report.measurements if row.beside is None} == set(NAMES)
    assert all(row.beside != row.kernel for row in report.measurements)
    assert read_journal(report.journal).header.suite == SUITE


def test_factors_are_those_of_the_law(report: CorunReport) -> None:
    for row in report.measurements:
        work = work_of(row.kernel)
        share = 16 * work.moved_bytes / (16 * work.moved_bytes + work.flops + 1)
        if row.neighbour == "memory-100":
            assert row.factor == pytest.approx(1 + 0.4 * share, rel=0.02)
            assert row.standard_error is not None
            assert row.standard_error < 0.02


def test_the_model_predicts_pairs_that_it_has_not_seen(report: CorunReport) -> None:
    rows = report.measurements
    assert 0 < sum(map(held_out, rows)) < sum(row.beside is not None for row in rows)
    model = fitted_slowdown(rows, device="box", target=TARGET, level2_bytes=1 << 20)
    assert model.judgement is not None
    assert model.judgement.median_error < 0.05
    assert model.judgement.median_error < model.judgement.no_slowdown_error
    assert model.stressors["memory-100"] > 2 * model.stressors["memory-25"]


def test_a_run_continues_where_its_budget_ended(tmp_path: Path, report: CorunReport) -> None:
    journal = tmp_path / "corun.jsonl"
    shown: list[RunProgress] = []
    first = measured(journal, budget_s=0.0, progress=shown.append)
    assert not first.complete
    assert shown[0].total == report.planned
    whole = measured(journal, progress=shown.append)
    assert whole.complete
    assert shown[-1].done == report.planned
    turns = [record for record in read_records(journal)[0] if isinstance(record, CorunTurns)]
    assert len(turns) == len({record.trial for record in turns}) == report.planned


def test_another_plan_needs_another_journal(report: CorunReport) -> None:
    with pytest.raises(ContentError, match="belongs to suite"):
        measured(report.journal, seed=1)


def test_fewer_than_two_kernels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError, match="fewer than two"):
        measured(tmp_path / "corun.jsonl", models=("encoder-tiny",), kernels=1)


def test_records_survive_a_round_trip(report: CorunReport) -> None:
    for record in read_records(report.journal)[0][:40]:
        assert decode(encode(record)) == record
    turns = next(record for record in read_records(report.journal)[0] if isinstance(record, CorunTurns))
    with pytest.raises(ValueError, match="one sample of each"):
        replace(turns, alone_ns=turns.alone_ns[:1], alone_clean="1")
