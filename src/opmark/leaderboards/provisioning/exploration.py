"""The search over fleets: bounds rule most of them out, short runs of a placer rank the rest, longer ones decide.

Fleets of equal types come first, then the others, each in the order of their bounds. Successive halving: Karnin, Koren,
Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013. A fleet that a lower bound on its time shows to
be no better than the best answer is never searched.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.provisioning.answer import Answer, answer_on, without_idle
from opmark.leaderboards.provisioning.fleet import Fleet, all_fleets
from opmark.leaderboards.provisioning.fleet_limits import FleetLimits
from opmark.leaderboards.provisioning.goal import Figures, Goal
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.provisioning.rivals import Rank, Rivals
from opmark.leaderboards.search.placer import PLACERS

# The placer of the first pass over all fleets, by objective, and the one that decides.
QUICK = {"latency": "heft", "throughput": "pipedream"}
# HEFT does not look at memory, which the stages of a step of micro-batches need most.
QUICK_STEP = "dapple"
DECIDING = "opmark"
# The first budget of the deciding placer, the factor from round to round, and the share of fleets that stay.
FIRST_S, LONGER, STAY = 0.15, 2.5, 0.4
# The share of the time for one round, for unequal types and for equal ones.
ROUND_SHARE = 0.1
# Fleets that stay in every round, and rounds in a row without a better answer after which a search ends.
FEWEST, IDLE_ROUNDS = 4, 4
# A placement usually takes so much longer than its bound. Without it, fleets that just miss the goal would come first.
SLACK = 1.25
# Fleets that are put in order together, and problems of fleets that stay compiled.
SORTED_AT_ONCE, COMPILED_AT_MOST = 5000, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationProgress:
    """The state of a search: seconds spent of all, fleets looked at and ruled out, and the best answer."""

    spent_s: float
    planned_s: float
    looked_at: int
    ruled_out: int
    best: Answer | None


class Exploration:
    """The search for one goal; `answers` has the best answer of every fleet that was looked at."""

    def __init__(self, job: Job, goal: Goal, *, devices_at_most: int, seed: int = 0) -> None:
        self.job, self.goal, self.seed = job, goal, seed
        self.objective = "throughput" if goal.in_a_pipeline else "latency"
        self.answers: dict[Fleet, Answer] = {}
        self._quick = QUICK_STEP if job.whole.in_micro_batches else QUICK[self.objective]
        self.ruled_out = 0
        self._rivals, self._equal_rivals = Rivals(), Rivals()
        self._ranks: dict[Fleet, Rank] = {}
        self._looked: set[Fleet] = set()
        self._searched: set[Fleet] = set()
        self._judged: set[tuple[object, ...]] = set()
        self._devices_at_most = devices_at_most
        self._limits = FleetLimits(job, self.objective)
        self._problem = lru_cache(COMPILED_AT_MOST)(partial(job.problem, objective=self.objective))
        self._begun = time.monotonic()

    def run(
        self,
        planned_s: float,
        *,
        progress: Callable[[ExplorationProgress], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Search for `planned_s` seconds, or until `stop` says so; what was found until then is kept.

        A second run goes on from what the first one found.
        """
        self._begun = time.monotonic()

        def over() -> bool:
            progress(self._progress(planned_s))
            return stop() or time.monotonic() - self._begun >= planned_s

        self.look_at_all(over)
        budget_s, idle = FIRST_S, 0
        most_s = ROUND_SHARE * planned_s
        while not over() and idle < IDLE_ROUNDS:
            before = self._best_rank()
            for fleet in self._worth_a_run(budget_s, most_s):
                if over():
                    return
                left_s = planned_s - (time.monotonic() - self._begun)
                self._search(fleet, DECIDING, min(budget_s, left_s))
            idle = 0 if self._best_rank() != before else idle + 1
            budget_s *= LONGER
        self._complete_front(over)

    def best(self, among: Callable[[Answer], bool] | None = None) -> Answer | None:
        """The best answer by the goal, of those that `among` accepts."""
        if among is None:
            leaders = self._rivals.leaders
            return self.answers[leaders[0][1]] if leaders else None
        found = [answer for answer in self.answers.values() if among(answer)]
        return min(found, key=self.goal.rank, default=None)

    def front(self) -> list[Answer]:
        """The answers that no other one beats in both price per hour and time per sample, cheapest first."""
        found: list[Answer] = []
        for answer in sorted(self.answers.values(), key=lambda one: (one.price_per_hour, self._time(one))):
            if not found or self._time(answer) < self._time(found[-1]):
                found.append(answer)
        return found

    def _time(self, figures: Figures) -> float:
        """The time of one sample, or of one pass."""
        return 1.0 / figures.samples_per_second if self.goal.in_a_pipeline else figures.latency_ns

    def look_at_all(self, over: Callable[[], bool]) -> None:
        """Give every fleet that can matter a short look, in the order of `fleets`."""
        for fleet in self.fleets():
            if over() and fleet.size > 1:
                return
            if fleet in self._looked:
                continue
            if fleet.size > 1 and self._hopeless(fleet):
                self.ruled_out += 1
                continue
            self._looked.add(fleet)
            self._search(fleet, self._quick, FIRST_S)

    def _complete_front(self, over: Callable[[], bool]) -> None:
        """Give fleets that miss the goal, but may lie on the front, a short look."""
        for fleet in self.fleets():
            if over():
                return
            if fleet not in self._looked and not self._off_the_front(fleet):
                self._looked.add(fleet)
                self._search(fleet, self._quick, FIRST_S)

    def fleets(self) -> Iterator[Fleet]:
        """Every fleet once: single devices, equal types, then the others, thousands at a time, by their bounds."""
        available = {kind: offer.available for kind, offer in self.job.catalogue.offers.items()}
        yield from all_fleets(available, 1)
        for kind, count in available.items():
            yield from (fleet for fleet in all_fleets({kind: count}, self._devices_at_most) if fleet.size > 1)
        unequal = (fleet for fleet in all_fleets(available, self._devices_at_most) if not fleet.equal)
        while chunk := list(itertools.islice(unequal, SORTED_AT_ONCE)):
            yield from sorted(chunk, key=self._promise)

    def _promise(self, fleet: Fleet) -> tuple[float, float, float]:
        """The rank that a fleet would have if its placement took somewhat longer than its bound."""
        bound = self._limits.best_figures(fleet)
        if not math.isfinite(bound.latency_ns):
            return (math.inf,) * 3
        usual = Figures(
            latency_ns=SLACK * bound.latency_ns,
            samples_per_second=bound.samples_per_second / SLACK,
            price_per_hour=bound.price_per_hour,
        )
        return self.goal.rank(usual)

    def _hopeless(self, fleet: Fleet) -> bool:
        """True where even the lower bound of a fleet is no better than the answer of another one."""
        bound = self._limits.best_figures(fleet)
        if not math.isfinite(bound.latency_ns):
            return True
        # An equal-type answer is a result of its own: it is compared with its own kind.
        rivals = self._equal_rivals if fleet.equal else self._rivals
        if self.goal == Goal():
            return rivals.dominate(fleet, bound.price_per_hour, self._time(bound))
        return rivals.lead(fleet, self.goal.rank(bound))

    def _off_the_front(self, fleet: Fleet) -> bool:
        """True where a known answer costs no more per hour and is no slower than the bound, or where nothing runs."""
        bound = self._limits.best_figures(fleet)
        if not math.isfinite(bound.latency_ns):
            return True
        return self._rivals.dominate(fleet, bound.price_per_hour, self._time(bound))

    def _search(self, fleet: Fleet, placer: str, budget_s: float) -> None:
        problem = self._problem(fleet)
        try:
            known = self.answers.get(fleet)
            starts = [known.placement] if known is not None and fleet in self._searched else []
            if placer == DECIDING:
                self._searched.add(fleet)
            solution = PLACERS.load(placer).place_from(problem, starts, budget_s=budget_s, seed=self.seed)
            rented, solution = without_idle(problem, fleet, solution)
            if self._is_judged(rented, solution):
                return
            answer = answer_on(self.job, rented, self._problem(rented), solution)
        except PlacementError:
            return
        best = self.answers.get(answer.fleet)
        rank = self.goal.rank(answer)
        if best is None or rank < self._ranks[best.fleet]:
            self.answers[answer.fleet], self._ranks[answer.fleet] = answer, rank
            for rivals in (self._rivals, *([self._equal_rivals] if answer.fleet.equal else [])):
                rivals.add(answer.fleet, rank, answer.price_per_hour, self._time(answer))

    def _is_judged(self, fleet: Fleet, solution: Solution) -> bool:
        """True where the same placement was simulated before: larger fleets often leave the same devices idle."""
        parts = (solution.device, solution.priority, solution.order, solution.replicas)
        key = (fleet, solution.schedule, *(None if part is None else _frozen(part) for part in parts))
        if key in self._judged:
            return True
        self._judged.add(key)
        return False

    def _worth_a_run(self, budget_s: float, most_s: float) -> list[Fleet]:
        """The fleets of the next round: fewer and fewer of the most promising, of equal and of unequal types.

        Beyond the fewest they take `most_s` seconds at most.
        """
        rounds = 0
        while FIRST_S * LONGER**rounds < budget_s:
            rounds += 1
        open_fleets = [fleet for fleet in self.answers if fleet.size > 1 and not self._hopeless(fleet)]
        equal = [fleet for fleet in open_fleets if fleet.equal]
        unequal = [fleet for fleet in open_fleets if not fleet.equal]
        chosen: list[Fleet] = []
        for group in (unequal, equal):
            count = max(FEWEST, min(int(len(group) * STAY ** (rounds + 1)), int(most_s / budget_s)))
            chosen += self._most_promising(group)[:count]
        return list(dict.fromkeys(chosen))

    def _most_promising(self, fleets: Iterable[Fleet]) -> list[Fleet]:
        if self.goal != Goal():
            return sorted(fleets, key=lambda fleet: self.goal.rank(self.answers[fleet]))
        front = self.front()

        def behind(fleet: Fleet) -> float:
            """The factor by which the front is faster at this price."""
            own = self.answers[fleet]
            return own.latency_ns / min(one.latency_ns for one in front if one.price_per_hour <= own.price_per_hour)

        best = self.best()
        first = [best.fleet] if best is not None else []
        return list(dict.fromkeys([*(one for one in first if one in fleets), *sorted(fleets, key=behind)]))

    def _best_rank(self) -> Sequence[object]:
        best = self.best()
        return () if best is None else (self.goal.rank(best), len(self.front()))

    def _progress(self, planned_s: float) -> ExplorationProgress:
        return ExplorationProgress(
            spent_s=min(planned_s, time.monotonic() - self._begun),
            planned_s=planned_s,
            looked_at=len(self.answers),
            ruled_out=self.ruled_out,
            best=self.best(),
        )


def _frozen(mapping: Mapping[str, Any]) -> tuple[object, ...]:
    """The content of a mapping, so that it can be looked up."""
    rows = ((name, tuple(value) if isinstance(value, list | tuple) else value) for name, value in mapping.items())
    return tuple(sorted(rows))
