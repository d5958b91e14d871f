"""Evaluate one solution: its cost, or the reason why it has none."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from opmark.core.errors import PlacementError
from opmark.core.units import format_bytes
from opmark.leaderboards.problem.decisions.decided import decided
from opmark.leaderboards.problem.placement import FRONT_AT_MOST, Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES, in_unit
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.charges import missed_limit, used_devices
from opmark.leaderboards.simulator.fronts import MoneyAndTime, mean_time_ns, point_of
from opmark.leaderboards.simulator.several_passes import passes_of
from opmark.leaderboards.simulator.simulate import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A valid solution by numbers, its schedule and its cost in whole steps: ns, or 10⁻¹² of the currency.

    If the solution splits or recomputes units, numbers are those of the `decided` problem, and `decisions` is the
    solution. Where the cost is that of a front, `front` has an evaluation per placement, and placement and schedule are
    those of the first.
    """

    placement: Placement
    schedule: Schedule
    cost: int
    decided: Problem | None = None
    decisions: Solution | None = None
    front: "tuple[Evaluation, ...]" = ()

    def posed(self, problem: Problem) -> Problem:
        """The problem that was simulated: `problem`, or the one that the solution's decisions lead to."""
        return self.decided or problem

    def value(self, unit: str) -> int | float:
        """The cost in the problem's own `unit`, before it was rounded up to a whole step."""
        return in_unit(self.schedule.value, unit)

    def shown(self, problem: Problem) -> tuple[Problem, Placement, Schedule]:
        """The graph that ran: the decided problem, the parts that replicas shared, or the copies of several passes."""
        return self.schedule.expanded or (self.posed(problem), self.placement, self.schedule)

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Figures beside the cost: p50, p99 and misses of requests, the schedule of micro-batches."""
        if self.front:
            return {"front": [one.front_facts(problem) for one in self.front]}
        problem = self.posed(problem)
        passes = passes_of(problem)
        facts = {} if passes is None else passes.facts(problem, self.placement)
        return facts | OBJECTIVES.load(problem.objective).facts(problem, self.placement, self.schedule)

    def front_facts(self, problem: Problem) -> dict[str, Any]:
        """The devices of a point of a front, their price per hour, and its time."""
        point = self.point(problem)
        used = sorted(used_devices(self.placement))
        return {
            "devices": [problem.cluster.devices[number].name for number in used],
            "price_per_hour": float(point.price_per_hour),
            "time_ns": float(point.time_ns),
        }

    def point(self, problem: Problem) -> MoneyAndTime:
        """The price and the time of this placement, as a point of a front."""
        return point_of(self.posed(problem), self.placement, self.schedule.latency_ns)

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
    if problem.fronted:
        return _evaluated_front(problem, solution, profile)
    if solution.front:
        raise PlacementError("the solution is a front, and this problem asks for one placement")
    return _evaluated(problem, solution, profile)


def _evaluated_front(problem: Problem, solution: Solution, profile: PublishedModel | None) -> Evaluation:
    """Every placement must keep the limits; one that another beats in price and time adds nothing."""
    points = solution.points
    if len(points) > FRONT_AT_MOST:
        raise PlacementError(f"a front has at most {FRONT_AT_MOST} placements, not {len(points)}")
    found = []
    for number, one in enumerate(points):
        try:
            found.append(_evaluated(problem, one, profile))
        except PlacementError as error:
            raise PlacementError(f"placement {number + 1} of the front: {error.message}") from error
    cost: Fraction = mean_time_ns(problem.limits, [one.point(problem) for one in found])
    schedule = replace(found[0].schedule, cost_ns=math.ceil(cost), exact_cost=cost)
    return replace(found[0], schedule=schedule, cost=schedule.cost_ns, front=tuple(found))


def _evaluated(problem: Problem, solution: Solution, profile: PublishedModel | None) -> Evaluation:
    posed, told = decided(problem, solution)
    placement = placement_of(posed, told)
    schedule = simulate(posed, placement, profile)
    for device, peak in zip(problem.cluster.devices, schedule.peak_bytes.tolist(), strict=True):
        if peak > device.memory_bytes:
            raise PlacementError(
                f"device {device.name!r} needs {format_bytes(peak)} at its peak and has"
                f" {format_bytes(device.memory_bytes)}"
            )
    if missed := missed_limit(posed, placement, schedule):
        raise PlacementError(missed)
    if posed is problem:
        return Evaluation(placement=placement, schedule=schedule, cost=schedule.cost_ns)
    return Evaluation(placement=placement, schedule=schedule, cost=schedule.cost_ns, decided=posed, decisions=solution)
