"""The best front that a placer has found so far: every placement that no other one beats in price and time."""

import time

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import (
    FRONT_AT_MOST,
    Placement,
    Solution,
    front_of,
    placement_of,
    solution_of,
)
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.anytime import listening
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.simulator.charges import missed_limit
from opmark.leaderboards.simulator.fronts import MoneyAndTime, mean_time_ns, point_of, undominated
from opmark.leaderboards.simulator.simulate import fits, simulate


class FrontIncumbent(Incumbent):
    """For the objective hypervolume: `value` is the cost of the front, `best` its cheapest placement."""

    def __init__(self, problem: Problem, placer: str, budget_s: float) -> None:
        super().__init__(problem, placer, budget_s)
        self.front: dict[MoneyAndTime, Placement] = {}
        # The points of the front as numbers that are quick to compare, the cheapest first.
        self._corners: list[tuple[float, float]] = []

    def consider(self, placement: Placement) -> bool:
        """Keep a placement that the front lacks; True if it made the front better."""
        point = self._point(placement)
        if point is None:
            return False
        kept = undominated([*self.front, point])
        if point in self.front or point not in kept or len(kept) > FRONT_AT_MOST:
            return False
        known = {**self.front, point: placement}
        self.front = {one: known[one] for one in kept}
        self._corners = [(float(one.price_per_hour), float(one.time_ns)) for one in kept]
        self.best = self.front[kept[0]]
        self.value = mean_time_ns(self.problem.limits, kept)
        if time.monotonic() - self._offered >= self._pause_s:
            self._hand_over()
        return True

    def consider_placer(self, placer: Placer, seed: int, *, share: float = 1.0) -> Placement | None:
        """Let another placer try in a share of the time that is left, and keep all placements of its front."""
        self._hand_over()
        try:
            with listening(None):
                answer = placer.place(self.problem, budget_s=max(0.0, self.left_s * share), seed=seed)
            placements = [placement_of(self.problem, one) for one in answer.points]
        except PlacementError:
            return None
        for placement in placements:
            self.consider(placement)
        return placements[0]

    def matches(self, price_per_hour: float, time_ns: float) -> bool:
        """True where a point of the front is as cheap and as fast as that."""
        return any(price <= price_per_hour and time <= time_ns for price, time in self._corners)

    def gain(self, price_per_hour: float, time_ns: float) -> float:
        """The fall of the front's cost, about, if it had this point too."""
        limits = self.problem.limits
        budget, saved = price_per_hour, 0.0
        least = float(limits.latency_ns or limits.period_ns)
        for price, time_there in self._corners:
            if price > budget:
                saved += max(0.0, least - time_ns) * (min(price, limits.price_per_hour) - budget)
                budget = price
            least = time_there
        saved += max(0.0, least - time_ns) * max(0.0, limits.price_per_hour - budget)
        return saved / limits.price_per_hour

    def solution(self) -> Solution:
        """The front so far. Raises `PlacementError` where nothing was valid."""
        if not self.front:
            return super().solution()
        return front_of([solution_of(self.problem, one, placer=self.placer) for one in self.front.values()])

    def _point(self, placement: Placement) -> MoneyAndTime | None:
        try:
            schedule = simulate(self.problem, placement)
        except PlacementError:
            return None
        if not fits(self.problem, schedule) or missed_limit(self.problem, placement, schedule):
            return None
        return point_of(self.problem, placement, schedule.latency_ns)


def incumbent_for(problem: Problem, placer: str, budget_s: float) -> Incumbent:
    """The incumbent of one placement, or of a front where the problem asks for one."""
    return (FrontIncumbent if problem.fronted else Incumbent)(problem, placer, budget_s)
