"""Measures the fidelity of the simulator on this machine: problems times placers, executed several times over a while.

Every visit is stored at once, so that a run can be stopped and resumed.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

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
from opmark.studies.execution.cut_costs import MODEL, CutCost, measured_cut_cost, slowed_link, with_cut_costs
from opmark.studies.execution.report import execute_solution
from opmark.studies.execution.stage import ExecutionStage
from opmark.studies.execution.usual_state import Readings, usual_readings

TRACK = "inference-latency"
ONNX, TORCH = "onnxruntime-cpu-t1", "torch-eager-t1"
# Two cores with the same runtime, and with unequal ones.
CLUSTERS: Mapping[str, tuple[str, str]] = {
    "2onnx": (ONNX, ONNX),
    "2torch": (TORCH, TORCH),
    "onnx-torch": (ONNX, TORCH),
}
PLACERS = ("best-single-device", "heft", "cpop", "peft", "etf", "m-topo", "local-search", "opmark")
# Networks with branches, and some without, of a few milliseconds to some tenths of a second.
MODELS = (
    "inception",
    "inception-small",
    "nasnet-like",
    "rand-wire",
    "two-tower",
    "wide-and-deep",
    "squeeze-small",
    "resnet-small",
    "bart-mini",
)
_PLENTY = 1 << 34


@dataclass(frozen=True, kw_only=True)
class FidelityPlan:
    """A run: `models` times `clusters` (names of `CLUSTERS`) times `placers`, each executed in `visits` visits.

    A visit executes a placement `repeats` times. `predictors` is the device whose predictors give the costs. No visit
    begins after `limit_s` seconds.
    """

    models: Sequence[str] = MODELS
    clusters: Sequence[str] = tuple(CLUSTERS)
    placers: Sequence[str] = PLACERS
    visits: int = 3
    repeats: int = 20
    budget_s: float = 2.0
    predictors: str = ""
    track: str = TRACK
    limit_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityOutcome:
    """The records of a run, and one sentence for each problem that was left out."""

    records: tuple[FidelityRecord, ...]
    left_out: tuple[str, ...]


def measure_fidelity(
    workspace: Workspace, plan: FidelityPlan, progress: Callable[[RunProgress], None] = lambda _: None
) -> FidelityOutcome:
    """Make the problems and solutions that are not stored yet, then visit all problems in turn.

    Raises `ContentError` if nothing can be executed. Placements that cannot be executed are stored with the reason.
    """
    begun = time.monotonic()
    run = _FidelityRun(workspace, plan, progress)
    run.make()
    if not run.records:
        raise ContentError(run.left_out[0] if run.left_out else "no problem was named", where=str(workspace.predictors))
    for visit in range(plan.visits):
        for name in list(run.records):
            if time.monotonic() - begun < plan.limit_s:
                run.visit(name, visit)
    return FidelityOutcome(records=tuple(run.records.values()), left_out=tuple(run.left_out))


class _FidelityRun:
    """The state of a run: the records by problem."""

    def __init__(self, workspace: Workspace, plan: FidelityPlan, progress: Callable[[RunProgress], None]) -> None:
        self._workspace, self._plan, self._progress = workspace, plan, progress
        self._here = device_slug()
        self._links: tuple[Link, Link] | None = None
        self._cut_costs: dict[str, CutCost] = {}
        self._begun = time.monotonic()
        self._done = 0
        self.records: dict[str, FidelityRecord] = {}
        self.left_out: list[str] = []

    def make(self) -> None:
        """Make or load every problem and its placements."""
        plan = self._plan
        total = len(plan.models) * len(plan.clusters)
        for number, (model, cluster) in enumerate((m, c) for m in plan.models for c in plan.clusters):
            name = f"{model}-{cluster}".replace("@", "-")
            self._show(number, total, f"plan {name}", left_s=None)
            try:
                self.records[name] = self._record(name, model, cluster)
            except OpMarkError as error:
                self.left_out.append(f"{name}: {error}")
        self._begun = time.monotonic()

    def visit(self, name: str, visit: int) -> None:
        """Execute the placements of one problem that have fewer visits."""
        record = self.records[name]
        due = [n for n, one in enumerate(record.placements) if not one.reason and len(one.visits_ns) <= visit]
        total = self._plan.visits * len(self.records)
        spent = time.monotonic() - self._begun
        left_s = spent / self._done * (total - self._done) if self._done else None
        self._show(self._done, total, f"execute {name}", left_s=left_s)
        if due:
            placements = list(record.placements)
            problem = load_problem(problem_path(self._workspace.leaderboards, self._here, name))
            while due:
                # A process that failed ends its stage: the rest needs a new one.
                with ExecutionStage(problem, dimensions=record.dimensions) as stage:
                    while due:
                        number = due.pop(0)
                        try:
                            placements[number] = self._executed(stage, placements[number], record.usual_ns)
                        except MeasurementError as error:
                            placements[number] = replace(placements[number], reason=str(error))
                            break
            self._store(replace(record, placements=tuple(placements)))
        self._done += 1

    def _executed(self, stage: ExecutionStage, one: ExecutedPlacement, usual: Sequence[Readings]) -> ExecutedPlacement:
        try:
            found = execute_solution(stage, one.solution, repeats=self._plan.repeats, usual=usual)
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
        path, stored = record_path(leaderboards, self._here, name), problem_path(leaderboards, self._here, name)
        if path.is_file() and stored.is_file():
            record, known = load_record(path), load_problem(stored)
            targets = [device.target for device in known.cluster.devices]
            if record.problem_id == known.id and targets == self._targets(cluster):
                return record
        made = problem_of_model(model, self._cluster(cluster), self._workspace, name=name)
        costs = {kind: self._cut_cost(kind) for kind in CLUSTERS[cluster]}
        problem = with_cut_costs(with_links(made, costs), costs)
        save_problem(problem, stored)
        record = FidelityRecord(
            device=self._here,
            track=self._plan.track,
            problem=name,
            problem_id=problem.id,
            model=model,
            placements=tuple(self._placements(problem)),
            usual_ns=usual_readings(problem, self._workspace),
            cut_costs={kind: asdict(cost) for kind, cost in costs.items()},
        )
        self._store(record)
        return record

    def _placements(self, problem: Problem) -> list[ExecutedPlacement]:
        """One entry per different placement, with all placers that gave it."""
        found: dict[object, ExecutedPlacement] = {}
        for name in self._plan.placers:
            try:
                answer = attempt(problem, name, budget_s=self._plan.budget_s)
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
            problem = problem_of_model(MODEL, self._cluster(cluster), self._workspace)
            with ExecutionStage(problem) as stage:
                self._cut_costs[kind] = measured_cut_cost(stage, usual_readings(problem, self._workspace))
        return self._cut_costs[kind]

    def _store(self, record: FidelityRecord) -> None:
        self.records[record.problem] = record
        save_record(record, record_path(self._workspace.leaderboards, self._here, record.problem))

    def _show(self, done: int, total: int, doing: str, *, left_s: float | None) -> None:
        seconds = time.monotonic() - self._begun
        self._progress(RunProgress(done=done, total=total, seconds=seconds, left_s=left_s, doing=doing))


def with_links(problem: Problem, costs: Mapping[str, CutCost]) -> Problem:
    """`problem` with the time of transfers between processes that also compute: the mean ratio of its targets."""
    ratio = fmean(costs[device.type].transfer_ratio for device in problem.cluster.devices)
    links = tuple(slowed_link(link, ratio) for link in problem.cluster.links)
    return replace(problem, cluster=replace(problem.cluster, links=links))
