"""Evaluate one solution: its cost, or the reason why it has none."""

from dataclasses import dataclass
from typing import Any

from opmark.core.errors import PlacementError
from opmark.core.units import format_bytes
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES, in_unit
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.several_passes import passes_of
from opmark.leaderboards.simulator.simulate import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A valid solution by numbers, its schedule and its cost in whole steps: ns, or 10⁻¹² of the currency."""

    placement: Placement
    schedule: Schedule
    cost: int

    def value(self, unit: str) -> int | float:
        """The cost in the problem's own `unit`, before it was rounded up to a whole step."""
        return in_unit(self.schedule.value, unit)

    def shown(self, problem: Problem) -> tuple[Problem, Placement, Schedule]:
        """The graph that ran: the problem itself, the parts that replicas shared, or the copies of several passes."""
        return self.schedule.expanded or (problem, self.placement, self.schedule)

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Figures beside the cost: p50, p99 and misses of requests, the schedule of micro-batches."""
        passes = passes_of(problem)
        facts = {} if passes is None else passes.facts(problem, self.placement)
        return facts | OBJECTIVES.load(problem.objective).facts(problem, self.placement, self.schedule)

    def busy_ns(self, devices: int) -> list[int]:
        """The summed time of the units of each device."""
        spent = [0] * devices
        placement, schedule = self.placement, self.schedule
        if schedule.expanded is not None:
            _, placement, schedule = schedule.expanded
        runs = (schedule.unit_end_ns - schedule.unit_start_ns).tolist()
        for device, duration in zip(placement.device.tolist(), runs, strict=True):
            spent[device] += duration
        return spent


def evaluate(problem: Problem, solution: Solution, profile: PublishedModel | None = None) -> Evaluation:
    """Validate and simulate, under `profile` or the problem's own rules.

    Raises `PlacementError` with the first reason why the solution is invalid.
    """
    placement = placement_of(problem, solution)
    schedule = simulate(problem, placement, profile)
    for device, peak in zip(problem.cluster.devices, schedule.peak_bytes.tolist(), strict=True):
        if peak > device.memory_bytes:
            raise PlacementError(
                f"device {device.name!r} needs {format_bytes(peak)} at its peak and has"
                f" {format_bytes(device.memory_bytes)}"
            )
    return Evaluation(placement=placement, schedule=schedule, cost=schedule.cost_ns)
