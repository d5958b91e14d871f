"""The recommendation for a job: the best fleet, beside the best equal one and the best single devices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opmark.core.errors import NothingSelectedError
from opmark.core.parallel.task_map import MapProgress
from opmark.core.units import format_ns
from opmark.leaderboards.problem.placement import solution_of
from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.doubt import DRAWS, Doubt, doubt_in
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.job import Job

# The answers that a recommendation is compared with over draws of the predictors' errors.
RIVALS = 8
# A recommendation that wins in this share of the draws does not waver.
STABLE = 0.9
# An unequal fleet is recommended where it beats the best equal one in at least this share of the draws.
LEAST_SURE = 0.5
# The answers of a recommendation by their keys in JSON, as people call them.
ROLE_NAMES = {
    "recommended": "recommended",
    "best_equal": "best of equal types",
    "cheapest_single": "cheapest single",
    "fastest_single": "fastest single",
}
ROLES = tuple(ROLE_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answers by role (None where there is none), the front, and the doubt in them.

    `probability_better` is the share of draws in which the recommended fleet beats the best equal one; `stability` the
    share in which it beats all rivals. Where that is less than 90 %, `wavering` has the fleets that win most of the
    other draws, with their shares: together with the recommended one they win 90 % of all. `by_type` has the best
    answer with devices of each type alone. `set_aside` is the best fleet by prediction where another one is
    recommended, because it beats the best equal one too seldom: in the share `set_aside_better` of the draws.
    """

    job: Job
    goal: Goal
    roles: Mapping[str, Answer | None]
    by_type: Mapping[str, Answer]
    front: tuple[Answer, ...]
    doubt: Doubt
    probability_better: float
    stability: float
    wavering: Mapping[str, float]
    seconds: float
    set_aside: Answer | None = None
    set_aside_better: float = 0.0

    @property
    def recommended(self) -> Answer:
        """The recommended answer."""
        found = self.roles["recommended"]
        assert found is not None
        return found

    @property
    def stable(self) -> bool:
        """True where the recommendation is the same for at least 90 % of the draws."""
        return self.stability >= STABLE

    def document(self) -> dict[str, Any]:
        """The recommendation as JSON values."""
        return {
            **{role: None if answer is None else self._figures(answer) for role, answer in self.roles.items()},
            "by_type": {kind: self._figures(answer) for kind, answer in self.by_type.items()},
            "front": [self._figures(answer) for answer in self.front],
            "placement": self._placement(),
            "probability_better": self.probability_better,
            "set_aside": self._set_aside(),
            "stability": self.stability,
            "stable": self.stable,
            "wavering": dict(self.wavering),
            "goal": self.goal.words,
            "model": self.job.model,
            "batch": self.job.batch,
            "currency": self.job.catalogue.currency,
            "left_out": dict(self.job.left_out),
            "seconds": self.seconds,
        }

    def _set_aside(self) -> dict[str, Any] | None:
        if self.set_aside is None:
            return None
        return {**self._figures(self.set_aside), "probability_better": self.set_aside_better}

    def _placement(self) -> dict[str, Any]:
        """The device of every unit of the recommended answer, and the devices that repeat others."""
        objective = "throughput" if self.goal.in_a_pipeline else "latency"
        found = solution_of(self.job.problem(self.recommended.fleet, objective=objective), self.recommended.placement)
        return {
            "device": dict(found.device),
            "replicas": {name: list(row) for name, row in (found.replicas or {}).items()},
        }

    def _figures(self, answer: Answer) -> dict[str, Any]:
        low, high = self.doubt.interval_ns(answer)
        return {
            "devices": dict(answer.fleet.items()),
            "latency_ns": answer.latency_ns,
            "samples_per_second": answer.samples_per_second,
            "price_per_hour": answer.price_per_hour,
            "cost_per_million": answer.cost_per_million,
            "low": low,
            "high": high,
            "meets_goal": self.goal.shortfall(answer) <= 1.0,
        }


def recommend(
    exploration: Exploration,
    seconds: float,
    *,
    draws: int = DRAWS,
    progress: Callable[[MapProgress], None] = lambda _: None,
) -> Recommendation:
    """The recommendation from what an exploration found.

    Raises `NothingSelectedError` where nothing fits into memory, or where nothing meets the goal.
    """
    job, goal = exploration.job, exploration.goal
    roles = _roles(exploration)
    best = roles["recommended"]
    if best is None:
        raise NothingSelectedError(
            f"{job.model} fits into no fleet that was tried",
            where=job.catalogue.name,
            hint="allow more devices with --devices-at-most, or a longer --planning-time",
        )
    if goal.shortfall(best) > 1.0:
        raise NothingSelectedError(
            f"no fleet that was tried meets the goal: {goal.words}",
            where=job.catalogue.name,
            hint=f"{best.fleet.title} comes closest, with {_closest(goal, best)}",
        )
    front = exploration.front()
    rivals = sorted(exploration.answers.values(), key=goal.rank)[:RIVALS]
    by_type = _by_type(exploration)
    named = [one for one in (*roles.values(), *by_type.values()) if one is not None]
    asked = list(dict.fromkeys([*named, *rivals, *front]))
    doubt = doubt_in(job, asked, goal, draws=draws, seed=exploration.seed, progress=progress)
    shares = dict(zip(asked, doubt.shares(goal), strict=True))
    first, equal = best, roles["best_equal"]
    better = first_better = 1.0 if equal is None else doubt.probability_better(best, equal, goal)
    if equal is not None and better < LEAST_SURE and goal.shortfall(equal) <= 1.0:
        best, better = _sure_enough(asked, equal, doubt, goal)
        roles["recommended"] = best
    others = sorted(((share, one) for one, share in shares.items() if one is not best), key=lambda pair: -pair[0])
    return Recommendation(
        job=job,
        goal=goal,
        roles=roles,
        by_type=by_type,
        front=tuple(front),
        doubt=doubt,
        probability_better=better,
        stability=shares[best],
        wavering=_wavering(shares[best], others),
        seconds=seconds,
        set_aside=None if best is first else first,
        set_aside_better=0.0 if best is first else first_better,
    )


def _sure_enough(answers: Sequence[Answer], equal: Answer, doubt: Doubt, goal: Goal) -> tuple[Answer, float]:
    """The best unequal answer that beats `equal` in enough draws, and their share; without one, `equal` itself.

    A gain that most draws deny is none.
    """
    promising = [one for one in answers if not one.fleet.equal and goal.rank(one) < goal.rank(equal)]
    for one in sorted(promising, key=goal.rank):
        better = doubt.probability_better(one, equal, goal)
        if better >= LEAST_SURE:
            return one, better
    return equal, 0.5


def _wavering(stability: float, others: Sequence[tuple[float, Answer]]) -> dict[str, float]:
    """The strongest rivals, until they and the recommendation win enough draws together; none where it does alone."""
    found: dict[str, float] = {}
    for share, answer in others:
        if stability + sum(found.values()) >= STABLE or not share:
            break
        found[answer.fleet.title] = share
    return found


def _roles(exploration: Exploration) -> dict[str, Answer | None]:
    """The answers by role; the single devices are judged by price per hour and latency alone."""
    answers = exploration.answers.values()
    singles = [answer for answer in answers if answer.fleet.size == 1]
    return {
        "recommended": exploration.best(),
        "best_equal": exploration.best(lambda answer: answer.fleet.equal),
        "cheapest_single": min(singles, key=lambda one: (one.price_per_hour, one.latency_ns), default=None),
        "fastest_single": min(singles, key=lambda one: (one.latency_ns, one.price_per_hour), default=None),
    }


def _by_type(exploration: Exploration) -> dict[str, Answer]:
    found = {kind: exploration.best(_only(kind)) for kind in exploration.job.catalogue.types}
    return {kind: answer for kind, answer in found.items() if answer is not None}


def _only(kind: str) -> Callable[[Answer], bool]:
    return lambda answer: answer.fleet.types == (kind,)


def _closest(goal: Goal, answer: Answer) -> str:
    if goal.latency_at_most_ns is not None:
        return format_ns(answer.latency_ns)
    if goal.samples_per_second is not None:
        return f"{answer.samples_per_second:.4g} samples per second"
    return f"{answer.price_per_hour:.4g} per hour"
