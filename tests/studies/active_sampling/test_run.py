"""Rounds on the null target, from first look to page."""

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from opmark.bench.run.progress import RunProgress
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Networks, Suite
from opmark.core.errors import NothingSelectedError
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.records import KernelTrial
from opmark.datasets.release.building import journal_contents
from opmark.studies.active_sampling.allocation import by_cell, set_aside
from opmark.studies.active_sampling.curve import FILE, PAGE, read_curve
from opmark.studies.active_sampling.judge import CURVE_METRICS, Judge, target_metrics
from opmark.studies.active_sampling.run import EXHAUSTED, OUT_OF_TIME, REACHED, curve_folder, run_actively

SUITE = Suite(
    name="rounds",
    targets=("null-t1",),
    quality="quick",
    kinds={"gemm": KindSpec(count=90), "softmax": KindSpec(count=60)},
)


@pytest.fixture(scope="module")
def exhausted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to the end of the suite: no such error can be reached."""
    journal = tmp_path_factory.mktemp("rounds") / "rounds.jsonl"
    said: list[str] = []
    summary = run_actively(SUITE, journal=journal, target_error=1e-9, estimator="roofline", announce=said.append)
    assert summary.curve.stopped == EXHAUSTED
    assert summary.finished
    assert len(said) == len(summary.curve.points) >= 2
    return journal


def test_what_judges_is_never_learned_from_and_the_curve_tells_time(exhausted: Path) -> None:
    journal = read_journal(exhausted)
    curve = read_curve(curve_folder(exhausted))
    assert curve is not None
    kernels = [point.kernels for point in curve.points]
    assert kernels == sorted(set(kernels))
    assert [point.seconds for point in curve.points] == sorted(point.seconds for point in curve.points)
    for point in curve.points:
        one = point.targets["null-t1"]
        assert 0 <= one.median <= one.p90
        assert 0 <= one.acc10 <= 1
    trials = [trial for trial in journal.trials.values() if isinstance(trial, KernelTrial)]
    judging = {trial.kernel.key for cell in by_cell(trials).values() for trial in cell}
    learned = Judge(estimator="roofline").judge(
        journal.measurements, {("null-t1", key) for key in sorted(judging)[: len(judging) // 4]}
    )
    for (target, _), one in learned.items():
        assert not {kernel.key for kernel in one.known.kernels} & set(sorted(judging)[: len(judging) // 4])
        assert target == "null-t1"
    assert set(target_metrics(learned)["null-t1"]) == {*CURVE_METRICS, "n"}


def test_the_page_draws_every_target(exhausted: Path) -> None:
    page = (curve_folder(exhausted) / PAGE).read_text()
    assert page.count("<polyline") == 2
    assert "null-t1" in page
    assert EXHAUSTED in page


def test_rounds_measure_the_same_trials_as_a_plain_run_would(exhausted: Path) -> None:
    assert read_journal(exhausted).measured == {trial.trial for trial in plan(SUITE).kernels}
    assert journal_contents(exhausted).rows


def test_it_stops_where_the_error_is_reached_and_again_at_once(tmp_path: Path) -> None:
    journal = tmp_path / "rounds.jsonl"
    first = run_actively(SUITE, journal=journal, target_error=0.9, estimator="roofline")
    assert first.curve.stopped == REACHED
    assert first.run.done < first.run.planned
    assert first.run.planned == 150
    size = journal.stat().st_size
    again = run_actively(SUITE, journal=journal, target_error=0.9, estimator="roofline")
    assert again.curve.points == first.curve.points
    assert again.run.done == first.run.done
    assert journal.stat().st_size < 1.1 * size, "nothing is measured twice"


def test_an_interrupted_run_goes_on_from_the_journal(tmp_path: Path, exhausted: Path) -> None:
    class Stop(Exception):
        """As if the process were killed."""

    def kill(progress: RunProgress) -> None:
        if progress.done == 25:
            raise Stop

    journal = tmp_path / "rounds.jsonl"
    with pytest.raises(Stop):
        run_actively(SUITE, journal=journal, target_error=1e-9, estimator="roofline", progress=kill)
    assert read_curve(curve_folder(journal)) is None
    before = read_journal(journal).measured
    assert before
    after = run_actively(SUITE, journal=journal, target_error=1e-9, estimator="roofline")
    assert after.curve.stopped == EXHAUSTED
    measured = read_journal(journal).measured
    assert before <= measured
    assert measured == read_journal(exhausted).measured


def test_kernels_of_a_hidden_network_judge_and_are_not_learned_from(tmp_path: Path) -> None:
    kinds = {**SUITE.kinds, "conv": KindSpec(count=60)}
    suite = replace(SUITE, kinds=kinds, networks=Networks(held_out=("light-squeezenet",)), judging={"null-t1": 12})
    planned = plan(suite)
    assert len(planned.judging) == 12
    journal = tmp_path / "r.jsonl"
    found = run_actively(suite, journal=journal, target_error=0.9, estimator="roofline")
    assert found.curve.stopped == REACHED
    hidden = {trial.kernel.kind for trial in planned.kernels if trial.trial in planned.judging}
    assert "conv" in hidden
    done = read_journal(journal).measured
    assert done & planned.judging, "they are measured in the first look"
    others = [trial for trial in planned.kernels if trial.trial not in planned.judging]
    aside = {key for trials in by_cell(others).values() for key in set_aside(trials)}
    assert not aside & planned.judging
    judged = {trial.trial for trial in planned.kernels if trial.kernel.kind in kinds} & (planned.judging | aside)
    assert found.curve.points[-1].targets["null-t1"].n == len(done & judged)


def test_networks_are_measured_in_what_the_kernels_leave(tmp_path: Path) -> None:
    suite = replace(SUITE, networks=Networks(training=("light-squeezenet",)))
    found = run_actively(suite, journal=tmp_path / "r.jsonl", target_error=0.9, budget_s=300, estimator="roofline")
    assert found.curve.stopped == REACHED
    journal = read_journal(tmp_path / "r.jsonl")
    assert [row.network for row in journal.networks] == ["light-squeezenet"]
    # The summary is that of all rounds, although the last one measured the network alone.
    assert (found.run.kernels, found.run.networks) == (len(journal.measurements), 1)
    errors = [label.main.standard_error for label in journal.labels.values()]
    assert found.run.median_standard_error == pytest.approx(median(errors))


def test_time_ends_it(tmp_path: Path) -> None:
    found = run_actively(SUITE, journal=tmp_path / "r.jsonl", target_error=1e-9, budget_s=0.001, estimator="roofline")
    assert found.curve.stopped == OUT_OF_TIME
    assert not found.finished
    assert (found.folder / FILE).is_file()


def test_without_kernels_there_is_nothing_to_learn(tmp_path: Path) -> None:
    suite = Suite(name="n", targets=("null-t1",), networks=Networks(training=("light-squeezenet",)))
    with pytest.raises(NothingSelectedError, match="no kernels to learn from"):
        run_actively(suite, journal=tmp_path / "r.jsonl", target_error=0.1)
