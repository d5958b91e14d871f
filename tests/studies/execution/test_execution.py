"""Placements executed for real: equal outputs for every cut, and one sentence for everything that cannot be."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from math import exp

import pytest
from tests.studies.execution.tiny import branchy, made_problem

from opmark.bench.execution.crew import Crew
from opmark.core.errors import ContentError, MeasurementError, PlacementError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.studies.execution.report import execute_solution, execution_page, execution_trace, spread_of
from opmark.studies.execution.stage import ExecutionStage

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
pytestmark = pytest.mark.skipif(CORES < 2, reason="needs two processor cores")


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    folder = tmp_path_factory.mktemp("tiny")
    return made_problem(str(branchy(folder / "branchy.onnx")), folder)


@pytest.fixture(scope="module")
def stage(problem: Problem) -> Iterator[ExecutionStage]:
    with ExecutionStage(problem) as ready:
        yield ready


def solution(problem: Problem, devices: str) -> Solution:
    """Unit number i goes to the core at place i of `devices`, which is repeated."""
    names = [unit.name for unit in problem.units]
    return Solution(device={name: f"core{devices[n % len(devices)]}" for n, name in enumerate(names)})


def test_the_network_has_units_to_place(problem: Problem) -> None:
    assert len(problem.units) >= 4


@pytest.mark.parametrize("devices", ["0", "1", "01", "10", "0011", "001", "110"])
def test_every_cut_gives_the_outputs_of_the_whole(stage: ExecutionStage, problem: Problem, devices: str) -> None:
    found = execute_solution(stage, solution(problem, devices), repeats=3)
    assert found.outputs_equal, found.largest_difference
    assert found.measured_ns > 0
    parts = found.difference
    whole = parts.kernels_ns + parts.slowdown_ns + parts.transfers_ns + parts.waiting_ns
    assert whole == found.measured_ns - found.predicted_ns
    assert found.measured_ns == pytest.approx(found.raw_ns, rel=0.5)
    assert not any(map(any, found.states)), "the state of the labels is unknown"


def test_the_makespan_is_told_at_the_label_state(stage: ExecutionStage, problem: Problem) -> None:
    readings = stage.sense()
    assert [set(one) for one in readings] == [{"compute", "memory"}] * 2
    # Readings that are usually half as long: the machine is twice as slow as then.
    half = [{name: ns / 2 for name, ns in one.items()} for one in readings]
    found = execute_solution(stage, solution(problem, "01"), repeats=5, told_at=half)
    state = sum(sum(one) / 2 for one in found.states) / len(found.states)
    assert found.measured_ns == pytest.approx(found.raw_ns * exp(-state), rel=0.4)
    assert found.standard_error > 0
    document = found.document()
    assert document["raw_ns"] == found.raw_ns
    assert set(document["state"]) == {"compute", "memory"}


def test_the_order_is_that_of_the_solution(stage: ExecutionStage, problem: Problem) -> None:
    names = [problem.units[number].name for number in problem.arrays.topological.tolist()]
    device = dict.fromkeys(names, "core0")
    planned = stage.prepare(evaluate(problem, Solution(device=device, order={"core0": tuple(names)})))
    units = [unit for step in planned.programme.devices[0].steps for unit in step.units]
    assert units == names
    assert not planned.programme.crossings


def test_the_trace_and_the_page_show_plan_and_execution(stage: ExecutionStage, problem: Problem) -> None:
    found = execute_solution(stage, solution(problem, "01"), repeats=2)
    trace = execution_trace(found)
    processes = {event["pid"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert processes == {1, 2, 3, 4}
    assert trace["otherData"]["measured_ns"] == found.measured_ns
    page = execution_page(found)
    assert "The plan" in page
    assert "The execution" in page
    assert set(found.document()) >= {"predicted_ns", "measured_ns", "repeat_spread", "outputs_equal", "waiting_ns"}


def test_a_worker_killed_while_executing_ends_everything(problem: Problem) -> None:
    with ExecutionStage(problem) as ready:
        workers = ready.process_ids
        ready.prepare(evaluate(problem, solution(problem, "01")))
        os.kill(workers[1], signal.SIGKILL)
        with pytest.raises(MeasurementError, match="'core1' was killed by SIGKILL"):
            ready.run()
    for process in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_worker_that_sleeps_ends_everything(problem: Problem) -> None:
    def impatient(taken: tuple, patience_s: float) -> Crew:  # type: ignore[type-arg]
        return Crew(taken, patience_s=0.5)

    with ExecutionStage(problem, crew=impatient) as ready:
        workers = ready.process_ids
        ready.prepare(evaluate(problem, solution(problem, "01")))
        os.kill(workers[1], signal.SIGSTOP)
        with pytest.raises(MeasurementError, match=r"nothing arrived|gave no answer"):
            ready.run()
    for process in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_transfers_that_do_not_fit_are_refused(
    stage: ExecutionStage, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opmark.bench.execution.programme.Programme.shared_bytes", 1 << 60)
    with pytest.raises(MeasurementError, match="do not fit into shared memory"):
        stage.prepare(evaluate(problem, solution(problem, "01")))


def test_only_a_latency_can_be_executed(problem: Problem) -> None:
    with pytest.raises(ContentError, match="only the latency"):
        ExecutionStage(replace(problem, objective="throughput"))


def test_a_network_that_has_no_name_cannot_be_executed(problem: Problem) -> None:
    nameless = replace(problem, provenance=replace(problem.provenance, model=""))
    with pytest.raises(ContentError, match="names no network"):
        ExecutionStage(nameless)


def test_units_of_another_graph_are_refused(problem: Problem) -> None:
    (first, *rest), (unit, *others) = problem.tensors, problem.units
    del first, rest
    strange = replace(problem, units=(replace(unit, name="strange"), *others), tensors=())
    with pytest.raises(ContentError, match="are not the kernels that run here"):
        ExecutionStage(strange)


def test_a_solution_of_replicas_is_refused(stage: ExecutionStage, problem: Problem) -> None:
    replicated = replace(solution(problem, "0"), replicas={"core0": ("core1",)})
    with pytest.raises(PlacementError, match="cannot be executed"):
        execute_solution(stage, replicated, repeats=1)


def test_the_spread_is_the_middle_half() -> None:
    assert spread_of([100]) == 0
    assert spread_of([90, 100, 100, 110]) == pytest.approx(0.1)
