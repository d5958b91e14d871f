"""The hunt for a fleet: placements on fleets of a pool, judged by the pool's goal, and the best of them.

A search of a fleet starts from the best placements that are known on the fleet and on parts of it, so that it never
ends worse than them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.anytime import listening
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.search.renting.device_pool import NS_PER_HOUR, DevicePool, Fleet
from opmark.leaderboards.search.renting.fleet_bounds import FleetBounds
from opmark.leaderboards.search.renting.front_incumbent import FrontIncumbent, incumbent_for
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.charges import used_devices
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.fronts import MoneyAndTime, mean_time_ns, undominated
from opmark.leaderboards.simulator.simulate import fits, simulate

# Placers without a clock, for a quick look at a fleet, by the objective of its placement.
QUICK = {"throughput": ("pipedream",), "latency": ("heft",), "training": ("dapple",)}
THOROUGH = {
    "throughput": ("pipedream", "dnn-partitioning-dp-linear"),
    "latency": ("heft", "peft", "etf", "m-topo"),
    "training": ("dapple", "gpipe", "pipedream", "heft"),
}
SEARCH = "opmark"
# The share of the budget that is searched; the rest is for handing the answer over.
SEARCH_SHARE = 0.95
# The known placements of parts of a fleet that its search starts from.
PARTS_AT_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """The figures of a fleet: the price per hour of its devices, and the time of a pass, or of a sample."""

    fleet: Fleet
    price_per_hour: float
    time_ns: float

    def shortfall(self, limits: GoalLimits) -> float:
        """The factor by which the goal is missed, at least 1; 1 where it is met."""
        time = self.time_ns / (limits.latency_ns or limits.period_ns or math.inf)
        money = self.price_per_hour / (limits.price_per_hour or math.inf)
        return max(1.0, time, money / (1 + 1e-9))

    def value(self, problem: Problem) -> float:
        """The quantity that the objective minimises: money for a pass, money per hour, or ns; a front of this alone."""
        if problem.objective == "cost":
            return self.price_per_hour * self.time_ns / NS_PER_HOUR
        if problem.fronted:
            return float(mean_time_ns(problem.limits, [self.point]))
        return self.price_per_hour if problem.objective == "rent" else self.time_ns

    @property
    def point(self) -> MoneyAndTime:
        """The figures as a point of a front."""
        return MoneyAndTime(price_per_hour=Fraction(self.price_per_hour), time_ns=Fraction(self.time_ns))

    def rank(self, problem: Problem) -> tuple[float, float, float]:
        """Fleets in order: those that meet the goal first, by value, then by time."""
        return self.shortfall(problem.limits), self.value(problem), self.time_ns


def front_fleets(figures: Iterable[FleetFigures]) -> list[Fleet]:
    """The fleets that no other one matches in both price and time, the cheapest first."""
    by_point: dict[MoneyAndTime, Fleet] = {}
    for one in sorted(figures, key=lambda one: one.fleet):
        by_point.setdefault(one.point, one.fleet)
    return [by_point[point] for point in undominated(by_point)]


class FleetHunt:
    """Fleets that were looked at, within a budget of seconds; good placements are offered at once."""

    def __init__(self, problem: Problem, placer: str, budget_s: float) -> None:
        self.problem = problem
        self.pool = DevicePool.of(problem)
        self.bounds = FleetBounds(self.pool)
        self.incumbent = incumbent_for(problem, placer, budget_s * SEARCH_SHARE)
        self.found: dict[Fleet, FleetFigures] = {}
        self.searched: set[Fleet] = set()
        self._known: dict[Fleet, Placement] = {}
        self._optimistic: dict[Fleet, FleetFigures] = {}
        self._looked: set[tuple[Fleet, str]] = set()
        self._inner: dict[Fleet, Problem] = {}

    @property
    def kind(self) -> str:
        """The key of `QUICK` and `THOROUGH` for this pool."""
        if self.problem.in_micro_batches:
            return "training"
        return "throughput" if self.pool.inner_objective == "throughput" else "latency"

    @property
    def over(self) -> bool:
        """True where no time is left."""
        return self.incumbent.left_s <= 0

    def look(
        self,
        fleet: Sequence[int],
        placers: Iterable[str] = (),
        *,
        seconds: float = math.inf,
        steps: int = 0,
        seed: int = 0,
    ) -> FleetFigures | None:
        """Place the problem on a fleet with `placers` (default: a quick one), each for `seconds` at most.

        A search makes `steps` steps at most, where that is given.
        Returns the best figures known for the devices that were asked for; a placement may leave some idle, and then
        also counts for the smaller fleet. None where nothing valid was found.
        """
        asked = tuple(fleet)
        best: FleetFigures | None = None
        for name in placers or QUICK[self.kind]:
            left_s = self.incumbent.left_s
            if left_s <= 0:
                break
            if name != SEARCH and (asked, name) in self._looked:
                continue
            self._looked.add((asked, name))
            found = self._placed(asked, name, min(seconds, left_s), steps, seed)
            if found is not None and (best is None or found.rank(self.problem) < best.rank(self.problem)):
                best = found
        known = self.found.get(asked)
        return min((one for one in (best, known) if one is not None), key=self.rank, default=None)

    def rank(self, figures: FleetFigures) -> tuple[float, float, float]:
        """Fleets in order, as `FleetFigures.rank`."""
        return figures.rank(self.problem)

    def best(self, among: Callable[[FleetFigures], bool] = lambda _: True) -> FleetFigures | None:
        """The best figures found, of those that `among` accepts."""
        return min(filter(among, self.found.values()), key=self.rank, default=None)

    def meets_goal(self, figures: FleetFigures | None) -> bool:
        """True where figures keep all limits."""
        return figures is not None and figures.shortfall(self.problem.limits) <= 1.0

    def optimistic(self, fleet: Fleet) -> FleetFigures:
        """Figures that no placement on a fleet can beat."""
        known = self._optimistic.get(fleet)
        if known is None:
            known = self._optimistic[fleet] = FleetFigures(
                fleet=fleet, price_per_hour=self.pool.price_per_hour(fleet), time_ns=self.bounds.least_ns(fleet)
            )
        return known

    def hopeless(self, fleet: Fleet) -> bool:
        """True where even the bound of a fleet misses the goal, or is no better than the best answer."""
        bound = self.optimistic(fleet)
        if bound.shortfall(self.problem.limits) > 1.0:
            return True
        if isinstance(self.incumbent, FrontIncumbent):
            return self.incumbent.matches(bound.price_per_hour, bound.time_ns)
        best = self.best()
        return self.meets_goal(best) and best is not None and self.rank(best) <= self.rank(bound)

    def note(self, placement: Placement) -> FleetFigures | None:
        """Count a placement on the whole pool; None where it is not valid."""
        self.incumbent.consider(placement)
        try:
            schedule = simulate(self._free, placement)
        except PlacementError:
            return None
        if not fits(self._free, schedule):
            return None
        return self._keep(placement, float(schedule.value))

    def first_single(self, order: Callable[[Fleet], tuple[float, ...]], *, seed: int) -> Solution:
        """The placement on the first single device, by `order`, that meets the goal.

        Raises `PlacementError` where none does.
        """
        for fleet in sorted(self.pool.singles(), key=order):
            if self.over or self.meets_goal(self.look(fleet, seed=seed)):
                break
        return self.solution()

    def solution(self) -> Solution:
        """The best placement. Raises `PlacementError` where none keeps the limits."""
        if self.incumbent.best is None:
            with suppress(PlacementError):
                self.incumbent.consider(Placement(device=best_single_device(self.problem)[0]))
        return self.incumbent.solution()

    @cached_property
    def _free(self) -> Problem:
        """The whole pool without limits, with the time as its cost."""
        return replace(self.problem, objective=self.pool.inner_objective, unit="ns", limits=GoalLimits())

    def _placed(self, fleet: Fleet, name: str, seconds: float, steps: int, seed: int) -> FleetFigures | None:
        inner = self._inner.get(fleet)
        if inner is None:
            inner = self._inner[fleet] = self.pool.problem_of(fleet)
        placer = PLACERS.load(name)
        try:
            with listening(None):  # offers for a part of the pool are no answers yet
                if name == SEARCH:
                    self.searched.add(fleet)
                    known = [self.pool.placement_on(inner, one) for one in self._starts(fleet)]
                    solution = placer.place_from(inner, known, budget_s=seconds, seed=seed, steps=steps)
                else:
                    solution = placer.place(inner, budget_s=seconds, seed=seed)
            evaluation = evaluate(inner, solution)
            placement = self.pool.placement_of(inner, placement_of(inner, solution))
        except PlacementError:  # nothing valid, or units that run again, which a fleet's placement cannot say
            return None
        self.incumbent.consider(placement)
        return self._keep(placement, float(evaluation.schedule.value))

    def _starts(self, fleet: Fleet) -> list[Placement]:
        """The best known placements on the fleet and on parts of it, the fastest first."""
        parts = [part for part in self._known if all(a <= b for a, b in zip(part, fleet, strict=True))]
        return [self._known[part] for part in sorted(parts, key=lambda one: self.found[one].time_ns)[:PARTS_AT_MOST]]

    def _keep(self, placement: Placement, time_ns: float) -> FleetFigures:
        used = used_devices(placement)
        rented = self.pool.fleet_of(used)
        figures = FleetFigures(fleet=rented, price_per_hour=self.pool.price_per_hour(rented), time_ns=time_ns)
        known = self.found.get(rented)
        if known is None or self.rank(figures) < self.rank(known):
            self.found[rented] = figures
            self._known.pop(rented, None)
            # A search of a larger fleet has the first devices of each type only.
            if used == set(self.pool.rented(rented)):
                self._known[rented] = placement
        return figures
