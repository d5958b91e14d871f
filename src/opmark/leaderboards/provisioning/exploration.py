"""The search over fleets: bounds rule most of them out, short runs of a placer rank the rest, longer ones decide.

Successive halving: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013. A fleet
that a lower bound on its latency shows to be no better than the best answer is never searched.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.core.errors import PlacementError
from opmark.leaderboards.provisioning.answer import Answer, answer_of
from opmark.leaderboards.provisioning.fleet import Fleet, all_fleets
from opmark.leaderboards.provisioning.goal import Figures, Goal, samples_per_second
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.search.placer import PLACERS

# The placer of the first pass over all fleets, by objective, and the one that decides.
QUICK = {"latency": "heft", "throughput": "pipedream"}
DECIDING = "opmark"
# The first budget of the deciding placer, the factor from round to round, and the share of fleets that stay.
FIRST_S, LONGER, STAY = 0.15, 2.5, 0.4
# Fleets that stay in every round, and rounds in a row without a better answer after which a search ends.
FEWEST, IDLE_ROUNDS = 4, 4


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
        self.ruled_out = 0
        self._searched: set[Fleet] = set()
        self._devices_at_most = devices_at_most
        self._bounds = _FleetBounds(job)
        self._begun = time.monotonic()

    def run(
        self,
        planned_s: float,
        *,
        progress: Callable[[ExplorationProgress], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Search for `planned_s` seconds, or until `stop` says so; what was found until then is kept."""
        self._begun = time.monotonic()

        def over() -> bool:
            progress(self._progress(planned_s))
            return stop() or time.monotonic() - self._begun >= planned_s

        self.look_at_all(over)
        budget_s, idle = FIRST_S, 0
        while not over() and idle < IDLE_ROUNDS:
            before = self._best_rank()
            for fleet in self._worth_a_run(budget_s):
                if over():
                    return
                left_s = planned_s - (time.monotonic() - self._begun)
                self._search(fleet, DECIDING, min(budget_s, left_s))
            idle = 0 if self._best_rank() != before else idle + 1
            budget_s *= LONGER
        self._complete_front(over)

    def best(self, among: Callable[[Answer], bool] = lambda _: True) -> Answer | None:
        """The best answer by the goal, of those that `among` accepts."""
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
        """Give every fleet that can matter a short look, single devices first."""
        for fleet in self._fleets():
            if fleet.size > 1 and over():
                return
            if fleet.size > 1 and self._hopeless(fleet):
                self.ruled_out += 1
                continue
            self._search(fleet, QUICK[self.objective], FIRST_S)

    def _complete_front(self, over: Callable[[], bool]) -> None:
        """Give fleets that miss the goal, but may lie on the front, a short look."""
        for fleet in self._fleets():
            if over():
                return
            if fleet not in self.answers and not self._dominated(self._optimistic(fleet), self.answers.values()):
                self._search(fleet, QUICK[self.objective], FIRST_S)

    def _fleets(self) -> Iterable[Fleet]:
        available = {kind: offer.available for kind, offer in self.job.catalogue.offers.items()}
        return all_fleets(available, self._devices_at_most)

    def _hopeless(self, fleet: Fleet) -> bool:
        """True where even the lower bound of a fleet is no better than the answer of another one."""
        bound = self._optimistic(fleet)
        # An equal-type answer is a result of its own: it is compared with its own kind.
        rivals = [one for one in self.answers.values() if one.fleet != fleet and (one.fleet.equal or not fleet.equal)]
        if self.goal == Goal():
            return self._dominated(bound, rivals)
        return any(self.goal.rank(one) <= self.goal.rank(bound) for one in rivals)

    def _dominated(self, bound: Figures, rivals: Iterable[Answer]) -> bool:
        """True where a rival costs no more per hour and is no slower."""
        return any(
            one.price_per_hour <= bound.price_per_hour and self._time(one) <= self._time(bound) for one in rivals
        )

    def _optimistic(self, fleet: Fleet) -> Figures:
        """Figures that no placement on a fleet can beat."""
        least_ns = self._bounds.least_ns(fleet, self.objective)
        return Figures(
            latency_ns=least_ns,
            samples_per_second=samples_per_second(self.job.batch, least_ns),
            price_per_hour=self.job.catalogue.price_per_hour(fleet),
        )

    def _search(self, fleet: Fleet, placer: str, budget_s: float) -> None:
        problem = self.job.problem(fleet, objective=self.objective)
        try:
            known = self.answers.get(fleet)
            starts = [known.placement] if known is not None and fleet in self._searched else []
            if placer == DECIDING:
                self._searched.add(fleet)
            solution = PLACERS.load(placer).place_from(problem, starts, budget_s=budget_s, seed=self.seed)
            answer = answer_of(self.job, fleet, solution, objective=self.objective)
        except PlacementError:
            return
        best = self.answers.get(answer.fleet)
        if best is None or self.goal.rank(answer) < self.goal.rank(best) or self._time(answer) < self._time(best):
            self.answers[answer.fleet] = answer

    def _worth_a_run(self, budget_s: float) -> list[Fleet]:
        """The fleets of the next round: fewer and fewer of the most promising, of equal and of unequal types."""
        rounds = 0
        while FIRST_S * LONGER**rounds < budget_s:
            rounds += 1
        open_fleets = [fleet for fleet in self.answers if fleet.size > 1 and not self._hopeless(fleet)]
        equal = [fleet for fleet in open_fleets if fleet.equal]
        unequal = [fleet for fleet in open_fleets if not fleet.equal]
        chosen: list[Fleet] = []
        for group in (unequal, equal):
            count = max(FEWEST, int(len(group) * STAY ** (rounds + 1)))
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


class _FleetBounds:
    """Lower bounds for any fleet of a job, from its units' times alone."""

    def __init__(self, job: Job) -> None:
        self._types = {name: number for number, name in enumerate(job.catalogue.types)}
        self._unit_ns: npt.NDArray[np.float64] = job.unit_ns()
        self._runs = np.array([job.runs_of(unit) for unit in job.whole.units])
        self._job = job
        self._paths: dict[tuple[str, ...], float] = {}

    def least_ns(self, fleet: Fleet, objective: str) -> float:
        """The work of all units, each on its fastest type, shared by all devices; and the longest path of one pass."""
        columns = [self._types[name] for name in fleet.types]
        fastest = self._unit_ns[:, columns].min(axis=1)
        shared = float((fastest * self._runs).sum()) / fleet.size
        if not np.isfinite(shared):
            return float("inf")
        return max(1.0, shared if objective == "throughput" else max(shared, self._path_ns(fleet.types, fastest)))

    def _path_ns(self, types: tuple[str, ...], fastest: npt.NDArray[np.float64]) -> float:
        found = self._paths.get(types)
        if found is None:
            arrays = self._job.whole.arrays
            tail = np.zeros(len(fastest))
            readers = self._readers()
            for unit in reversed(arrays.topological.tolist()):
                tail[unit] = fastest[unit] + max((tail[one] for one in readers[unit]), default=0.0)
            found = self._paths[types] = float(tail.max())
        return found

    def _readers(self) -> list[list[int]]:
        number = {unit.name: place for place, unit in enumerate(self._job.whole.units)}
        readers: list[list[int]] = [[] for _ in number]
        for tensor in self._job.whole.tensors:
            if tensor.producer:
                readers[number[tensor.producer]] += [number[name] for name in tensor.consumers]
        return [list(itertools.chain(dict.fromkeys(row))) for row in readers]
