"""The doubt in an answer: the same placements over random draws of the predictors' errors."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opmark.core.parallel.task_map import MapProgress
from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.goal import Figures, Goal, samples_per_second
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.scoring.robustness import drawn_factors, robustness_of_all

DRAWS = 200
LOW, HIGH = 5, 95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doubt:
    """Figures of several answers over the same draws: `latency_ns` and `period_ns` are answers × draws."""

    answers: tuple[Answer, ...]
    batch: int
    latency_ns: npt.NDArray[np.float64]
    period_ns: npt.NDArray[np.float64]

    def interval_ns(self, answer: Answer) -> tuple[float, float]:
        """The 5th and the 95th percentile of an answer's latency."""
        low, high = np.percentile(self.latency_ns[self._place(answer)], [LOW, HIGH])
        return float(low), float(high)

    def probability_better(self, one: Answer, other: Answer, goal: Goal) -> float:
        """The share of draws in which the goal ranks `one` before `other`; 0.5 where they are the same fleet."""
        if one.fleet == other.fleet:
            return 0.5
        here, there = self._ranks(one, goal), self._ranks(other, goal)
        return sum((a < b) + 0.5 * (a == b) for a, b in zip(here, there, strict=True)) / len(here)

    def shares(self, goal: Goal) -> list[float]:
        """Per answer, the share of draws in which it is the best of all."""
        ranks = [self._ranks(answer, goal) for answer in self.answers]
        winners = [min(range(len(ranks)), key=lambda place: ranks[place][draw]) for draw in range(len(ranks[0]))]
        return [winners.count(place) / len(winners) for place in range(len(ranks))]

    def _ranks(self, answer: Answer, goal: Goal) -> list[tuple[float, float, float]]:
        place = self._place(answer)
        return [
            goal.rank(
                Figures(
                    latency_ns=latency,
                    samples_per_second=samples_per_second(self.batch, period),
                    price_per_hour=answer.price_per_hour,
                )
            )
            for latency, period in zip(self.latency_ns[place].tolist(), self.period_ns[place].tolist(), strict=True)
        ]

    def _place(self, answer: Answer) -> int:
        return next(place for place, one in enumerate(self.answers) if one is answer)


def doubt_in(
    job: Job,
    answers: Sequence[Answer],
    goal: Goal,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Callable[[MapProgress], None] = lambda _: None,
) -> Doubt:
    """Draw the errors of all types once, and simulate each answer with those of its own types."""
    begun = time.monotonic()
    factors = drawn_factors(job.whole, draws=draws, seed=seed)
    kinds = sorted(job.catalogue.types)
    latency, period = [], []
    for done, answer in enumerate(answers):
        left_s = (time.monotonic() - begun) / done * (len(answers) - done) if done else None
        progress(MapProgress(done=done, total=len(answers), left_s=left_s))
        own = np.ascontiguousarray(factors[:, :, [kinds.index(name) for name in sorted(answer.fleet.types)]])
        one_pass = replace(answer.placement, replicas={})
        runs = [(job.problem(answer.fleet, objective="latency"), one_pass)]
        runs += [(job.problem(answer.fleet, objective="throughput"), answer.placement)] if goal.in_a_pipeline else []
        costs = [robustness_of_all(problem, [placed], factors=own)[0].costs for problem, placed in runs]
        latency.append(costs[0])
        period.append(costs[-1])
    return Doubt(
        answers=tuple(answers),
        batch=job.batch,
        latency_ns=np.array(latency, dtype=np.float64),
        period_ns=np.array(period, dtype=np.float64),
    )
