"""A fidelity run stores every visit at once and goes on where it stopped; execution itself is replaced here."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from opmark.core.errors import ContentError, MeasurementError, OpMarkError, PlacementError
from opmark.core.hardware.cluster import Cluster
from opmark.core.workspace import Workspace
from opmark.leaderboards.fidelity.records import load_record, record_path, stored_records
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.studies.execution import fidelity_run
from opmark.studies.execution.cut_costs import CutCost
from opmark.studies.execution.difference import MakespanDifference
from opmark.studies.execution.fidelity_plan import FidelityPlan
from opmark.studies.execution.fidelity_run import measure_fidelity

PLAN = FidelityPlan(models=("one", "two"), clusters=("2onnx",), placers=("round-robin", "heft"), visits=2, repeats=3)


class FakeStage:
    """Stands for the processes of a problem."""

    executed = 0
    fault: type[OpMarkError] = PlacementError

    def __init__(self, problem: Problem, *, dimensions: dict[str, int]) -> None:
        del dimensions
        self.problem = problem

    def __enter__(self) -> "FakeStage":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def fake_execution(stage: FakeStage, solution: object, *, repeats: int, told_at: object) -> SimpleNamespace:
    del solution, told_at
    FakeStage.executed += 1
    if stage.problem.name.startswith("two"):
        raise FakeStage.fault("cannot be cut")
    parts = MakespanDifference(kernels_ns=1, transfers_ns=2, waiting_ns=3, slowdown_ns=4)
    makespans = tuple(100 + FakeStage.executed for _ in range(repeats))
    states = tuple((0.01, 0.02) for _ in makespans)
    return SimpleNamespace(difference=parts, makespans_ns=makespans, states=states, outputs_equal=True)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    def made(model: str, cluster: Cluster, workspace: Workspace, *, name: str) -> Problem:
        del cluster, workspace
        if model == "broken":
            raise ValueError("no such shape")
        return replace(smallest_problem(), name=name)

    def own_copies(problem: Problem, costs: object) -> Problem:
        del costs
        devices = tuple(replace(device, own_copies=True) for device in problem.cluster.devices)
        return replace(problem, cluster=replace(problem.cluster, devices=devices))

    FakeStage.executed = 0
    monkeypatch.setattr(fidelity_run, "problem_of_model", made)
    monkeypatch.setattr(fidelity_run, "ExecutionStage", FakeStage)
    monkeypatch.setattr(fidelity_run, "execute_solution", fake_execution)
    monkeypatch.setattr(fidelity_run._FidelityRun, "_cluster", lambda _, name: Cluster(name=name, devices=()))
    cost = CutCost(stretch_ns=5.0, end_ns=7.0, ns_per_byte=0.0, transfer_ratio=2.0)
    monkeypatch.setattr(fidelity_run._FidelityRun, "_cut_cost", lambda *_: cost)
    monkeypatch.setattr(fidelity_run, "as_executed", own_copies)
    targets = [device.target for device in smallest_problem().cluster.devices]
    monkeypatch.setattr(fidelity_run._FidelityRun, "_targets", lambda *_: targets)
    return Workspace(tmp_path)


def test_every_visit_is_stored(workspace: Workspace) -> None:
    found = measure_fidelity(workspace, PLAN)
    one = next(record for record in found.records if record.model == "one")
    assert all(len(placement.visits_ns) == 2 for placement in one.placements)
    assert all(len(visit) == PLAN.repeats for placement in one.placements for visit in placement.states)
    assert {cost["end_ns"] for cost in one.cut_costs.values()} == {7.0}
    assert one.placements[0].kernels_ns == 1
    assert {name for placement in one.placements for name in placement.placers} == {"round-robin", "heft"}
    assert list(stored_records(workspace.leaderboards)) == sorted(found.records, key=lambda record: record.problem)


@pytest.mark.parametrize("fault", [PlacementError, MeasurementError])
def test_a_placement_that_cannot_be_executed_is_tried_once(
    workspace: Workspace, fault: type[OpMarkError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeStage, "fault", fault)
    found = measure_fidelity(workspace, PLAN)
    two = next(record for record in found.records if record.model == "two")
    assert {placement.reason for placement in two.placements} == {"cannot be cut"}
    assert not two.executed


def test_a_second_run_only_adds_what_is_missing(workspace: Workspace) -> None:
    measure_fidelity(workspace, PLAN)
    before = FakeStage.executed
    measure_fidelity(workspace, PLAN)
    assert FakeStage.executed == before
    measure_fidelity(workspace, replace(PLAN, visits=3))
    (path,) = {record_path(workspace.leaderboards, record.device, record.problem) for record in
               stored_records(workspace.leaderboards) if record.model == "one"}  # fmt: skip
    assert all(len(placement.visits_ns) == 3 for placement in load_record(path).placements)


def test_newer_predictors_begin_a_record_anew(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_fidelity(workspace, PLAN)
    before = FakeStage.executed
    monkeypatch.setattr(fidelity_run._FidelityRun, "_targets", lambda *_: ["box/2.0.0/onnxruntime-cpu-t1"])
    measure_fidelity(workspace, PLAN)
    assert FakeStage.executed > before


def test_nothing_to_execute_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(ContentError):
        measure_fidelity(workspace, FidelityPlan(models=()))


def test_problems_of_another_model_of_transfers_begin_anew(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(fidelity_run, "as_executed", lambda problem, _: problem)
        measure_fidelity(workspace, PLAN)
    before = FakeStage.executed
    measure_fidelity(workspace, PLAN)
    assert FakeStage.executed > before


def test_one_network_that_fails_is_left_out(workspace: Workspace) -> None:
    found = measure_fidelity(workspace, replace(PLAN, models=("broken", "one")))
    assert found.left_out == ("broken-2onnx: ValueError: no such shape",)
    assert [record.model for record in found.records] == ["one"]


def test_a_stage_that_cannot_be_loaded_leaves_its_problem_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loading(problem: Problem, *, dimensions: dict[str, int]) -> FakeStage:
        if problem.name.startswith("two"):
            raise MeasurementError("the worker died")
        return FakeStage(problem, dimensions=dimensions)

    monkeypatch.setattr(fidelity_run, "ExecutionStage", loading)
    found = measure_fidelity(workspace, PLAN)
    assert found.left_out == ("two-2onnx: the worker died",)
    assert [record.model for record in found.records] == ["one"]


def test_without_time_for_a_problem_it_is_named(workspace: Workspace) -> None:
    with pytest.raises(ContentError):
        measure_fidelity(workspace, replace(PLAN, limit_s=0.0))


def test_progress_counts_the_visits(workspace: Workspace) -> None:
    shown = []
    measure_fidelity(workspace, PLAN, shown.append)
    assert [one.done for one in shown if one.doing.startswith("execute")] == [0, 1, 2, 3]
    assert all(one.total == 4 for one in shown)
    assert shown[-1].left_s is not None
