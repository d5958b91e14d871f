"""Measures the fidelity of the simulator on this machine: problems times placers, executed several times over a while.

Every execution is stored at once, so that a run can be stopped and resumed.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from opmark.bench.clock.machine import device_slug
from opmark.bench.links.measuring import core_link
from opmark.bench.run.progress import RunProgress
from opmark.core.errors import ContentError, MeasurementError, OpMarkError, PlacementError, SubmissionError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.hardware.link import cluster_link
from opmark.core.workspace import Workspace
from opmark.leaderboards.fidelity.records import (
    ExecutedPlacement,
    FidelityRecord,
    load_record,
    problem_path,
    record_path,
    save_record,
)
from opmark.leaderboards.making.model_problem import problem_of_model
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.predictors.model.bundle_paths import find_bundle
from opmark.studies.execution.cut_costs import CutCost, as_executed, cut_cost_on
from opmark.studies.execution.fidelity_pace import RunPace
from opmark.studies.execution.fidelity_plan import CLUSTERS, FidelityPlan
from opmark.studies.execution.label_state import Readings, label_readings
from opmark.studies.execution.report import execute_solution
from opmark.studies.execution.stage import ExecutionStage

_PLENTY = 1 << 34


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityOutcome:
    """The records of a run, one sentence for each problem that was left out, and the problems without time."""

    records: tuple[FidelityRecord, ...]
    left_out: tuple[str, ...]
    not_begun: tuple[str, ...] = ()


def measure_fidelity(
    workspace: Workspace, plan: FidelityPlan, progress: Callable[[RunProgress], None] = lambda _: None
) -> FidelityOutcome:
    """Make one problem after the other and visit it; then visit all of them again, in turns.

    Under a time limit a problem is begun only while there is time for a second visit to every problem: without one
    nothing is known about the noise. Raises `ContentError` if nothing can be executed. Placements that cannot be
    executed are stored with the reason.
    """
    run = _FidelityRun(workspace, plan, progress)
    not_begun = []
    for name, model, cluster in plan.problems():
        if run.pace.affords_problem(run.visits_to_repeat()):
            run.begin(name, model, cluster)
        else:
            not_begun.append(name)
    if not run.records:
        nothing = "there is no time for a problem" if not_begun else "no problem was named"
        raise ContentError(run.left_out[0] if run.left_out else nothing, where=str(workspace.predictors))
    for visit in range(1, plan.visits):
        for name in list(run.records):
            if run.pace.affords_visit(name):
                run.visit(name, visit)
    return FidelityOutcome(
        records=tuple(run.records.values()), left_out=tuple(run.left_out), not_begun=tuple(not_begun)
    )


class _FidelityRun:
    """The state of a run: the records by problem."""

    def __init__(self, workspace: Workspace, plan: FidelityPlan, progress: Callable[[RunProgress], None]) -> None:
        self._workspace, self._plan, self._progress = workspace, plan, progress
        self._here = device_slug()
        self._links: tuple[Link, Link] | None = None
        self._cut_costs: dict[str, CutCost] = {}
        self._unmade = len(list(plan.problems()))
        self._total = plan.visits * self._unmade
        self._done = 0
        self.pace = RunPace(plan.limit_s)
        self.records: dict[str, FidelityRecord] = {}
        self.left_out: list[str] = []

    def visits_to_repeat(self) -> int:
        """The second visits that are missing once one more problem has been begun."""
        if self._plan.visits < 2:
            return 0
        return 1 + sum(any(len(one.visits_ns) == 1 for one in record.placements) for record in self.records.values())

    def begin(self, name: str, model: str, cluster: str) -> None:
        """Make or load a problem and its placements, and visit it for the first time."""
        self._show(f"plan {name}")
        self._unmade -= 1
        try:
            self.records[name] = self._record(name, model, cluster)
        # A run of many minutes goes on whatever one network does, in any library.
        except Exception as error:  # noqa: BLE001
            self._leave_out(name, error)
            return
        self.visit(name, 0)

    def visit(self, name: str, visit: int) -> None:
        """Execute the placements of one problem that have fewer visits."""
        self._show(f"execute {name}, visit {visit + 1}")
        placements = self.records[name].placements
        due = [n for n, one in enumerate(placements) if not one.reason and len(one.visits_ns) <= visit]
        began, share = time.monotonic(), len(due) / len(placements)
        try:
            while due:
                self._execute(name, due)
        except Exception as error:  # noqa: BLE001
            self._leave_out(name, error)
            del self.records[name]
            return
        if share:
            self.pace.visited(name, (time.monotonic() - began) / share)
        self._done += 1

    def _execute(self, name: str, due: list[int]) -> None:
        """Execute the placements `due` on one stage; a process that fails ends the stage, and the rest stays due."""
        record = self.records[name]
        problem = load_problem(problem_path(self._workspace.leaderboards, self._here, name))
        with ExecutionStage(problem, dimensions=record.dimensions) as stage:
            while due:
                number = due.pop(0)
                failed = False
                placements = list(self.records[name].placements)
                try:
                    placements[number] = self._executed(stage, placements[number], record.usual_ns)
                except MeasurementError as error:
                    placements[number] = replace(placements[number], reason=str(error))
                    failed = True
                self._store(replace(record, placements=tuple(placements)))
                if failed:
                    return

    def _executed(
        self, stage: ExecutionStage, one: ExecutedPlacement, told_at: Sequence[Readings]
    ) -> ExecutedPlacement:
        try:
            found = execute_solution(stage, one.solution, repeats=self._plan.repeats, told_at=told_at)
        except PlacementError as error:
            return replace(one, reason=str(error))
        parts = found.difference
        return replace(
            one,
            visits_ns=(*one.visits_ns, found.makespans_ns),
            states=(*one.states, tuple(tuple(round(value, 4) for value in state) for state in found.states)),
            outputs_equal=one.outputs_equal and found.outputs_equal,
            kernels_ns=parts.kernels_ns,
            transfers_ns=parts.transfers_ns,
            waiting_ns=parts.waiting_ns,
            slowdown_ns=parts.slowdown_ns,
        )

    def _record(self, name: str, model: str, cluster: str) -> FidelityRecord:
        """The stored record if its costs are still the newest, else a new one with the placements of all placers."""
        leaderboards = self._workspace.leaderboards
        stored = problem_path(leaderboards, self._here, name)
        known = self._known_record(name, cluster)
        if known is not None:
            return known
        began = time.monotonic()
        made = problem_of_model(model, self._cluster(cluster), self._workspace, name=name)
        costs = {kind: self._cut_cost(kind) for kind in CLUSTERS[cluster]}
        problem = as_executed(made, costs)
        save_problem(problem, stored)
        record = FidelityRecord(
            device=self._here,
            track=self._plan.track,
            problem=name,
            problem_id=problem.id,
            model=model,
            placements=tuple(self._placements(problem)),
            usual_ns=label_readings(problem, self._workspace),
            cut_costs={kind: asdict(cost) for kind, cost in costs.items()},
        )
        self._store(record)
        self.pace.planned(time.monotonic() - began)
        return record

    def _known_record(self, name: str, cluster: str) -> FidelityRecord | None:
        """The stored record, unless other predictors or another model of transfers made its problem."""
        leaderboards = self._workspace.leaderboards
        path, stored = record_path(leaderboards, self._here, name), problem_path(leaderboards, self._here, name)
        if not (path.is_file() and stored.is_file()):
            return None
        record, known = load_record(path), load_problem(stored)
        devices = known.cluster.devices
        same = [device.target for device in devices] == self._targets(cluster)
        if record.problem_id != known.id or not same or not all(device.own_copies for device in devices):
            return None
        for kind, cost in record.cut_costs.items():
            self._cut_costs.setdefault(kind, CutCost(**cost))
        return record

    def _placements(self, problem: Problem) -> list[ExecutedPlacement]:
        """One entry per different placement, with all placers that gave it."""
        found: dict[object, ExecutedPlacement] = {}
        for name in self._plan.placers:
            try:
                answer = attempt(problem, name, budget_s=self._plan.planning_s)
            except SubmissionError:
                continue
            solution: Solution = answer.solution
            schedule = answer.evaluation.schedule
            key = (tuple(sorted(solution.device.items())), tuple(schedule.unit_start_ns.tolist()))
            if key in found:
                found[key] = replace(found[key], placers=(*found[key].placers, name))
            else:
                found[key] = ExecutedPlacement(placers=(name,), solution=solution, predicted_ns=schedule.latency_ns)
        if not found:
            raise MeasurementError(f"no placer found a placement of {problem.name}")
        return list(found.values())

    def _cluster(self, name: str) -> Cluster:
        """Two cores of this machine, with the predictors of its runtimes and the link as measured now."""
        devices = [
            Device(name=f"core{core}", type=kind, memory_bytes=_PLENTY, target=target)
            for core, (kind, target) in enumerate(zip(CLUSTERS[name], self._targets(name), strict=True))
        ]
        if self._links is None:
            measured = core_link()
            there, back = (("core0", "core1"), ("core1", "core0"))
            self._links = (
                cluster_link(measured, source=there[0], destination=there[1]),
                cluster_link(measured, source=back[0], destination=back[1]),
            )
        return Cluster(name=name, devices=tuple(devices), links=self._links).checked(name)

    def _targets(self, cluster: str) -> list[str]:
        """The newest predictor of each device: `<device>/<version>/<target>`."""
        device = self._plan.predictors or self._here
        paths: list[Path] = [find_bundle(self._workspace, kind, device=device) for kind in CLUSTERS[cluster]]
        return [f"{device}/{path.parent.name}/{path.name}" for path in paths]

    def _cut_cost(self, kind: str) -> CutCost:
        """The cost of a cut on a target, measured once in a run on two cores of it."""
        if kind not in self._cut_costs:
            cluster = next(name for name, kinds in CLUSTERS.items() if set(kinds) == {kind})
            self._cut_costs[kind] = cut_cost_on(self._cluster(cluster), self._workspace)
        return self._cut_costs[kind]

    def _leave_out(self, name: str, error: Exception) -> None:
        told = str(error) if isinstance(error, OpMarkError) else f"{type(error).__name__}: {error}"
        self.left_out.append(f"{name}: {told}")
        self._total -= self._plan.visits

    def _store(self, record: FidelityRecord) -> None:
        self.records[record.problem] = record
        save_record(record, record_path(self._workspace.leaderboards, self._here, record.problem))

    def _show(self, doing: str) -> None:
        self._progress(
            RunProgress(
                done=self._done,
                total=self._total,
                seconds=self.pace.seconds,
                left_s=self.pace.left_s(self._unmade, self._total - self._done),
                doing=doing,
            )
        )
