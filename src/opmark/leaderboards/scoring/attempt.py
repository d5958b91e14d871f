"""Let a placer try a problem: whatever it does wrong becomes one sentence."""

import time
from contextlib import suppress
from dataclasses import dataclass

from opmark.core.errors import OpMarkError, SubmissionError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A valid answer, what it costs, how long planning took, and after how long this answer was there (None: then)."""

    solution: Solution
    evaluation: Evaluation
    planning_s: float
    answered_s: float | None = None


def attempt(problem: Problem, name: str, *, budget_s: float, seed: int = 0, placer: Placer | None = None) -> Attempt:
    """Run the placer called `name` (or the one given under that name) in this process, and judge its answer.

    Raises `UnknownNameError`, or `SubmissionError` where it raises, answers with no solution, or an invalid one.
    """
    solution, planning_s = plan(problem, name, budget_s=budget_s, seed=seed, placer=placer)
    try:
        evaluation = evaluate(problem, solution)
    except OpMarkError as error:
        raise SubmissionError(f"placer {name!r} is invalid: {error}", where=problem.name) from error
    return Attempt(solution=solution, evaluation=evaluation, planning_s=planning_s)


def prepare(name: str) -> None:
    """Let the placer called `name` import and compile; whatever goes wrong it will say itself when it plans."""
    with suppress(Exception):  # the boundary to code that others submit: it may raise anything
        PLACERS.load(name).prepare()


def plan(
    problem: Problem, name: str, *, budget_s: float, seed: int = 0, placer: Placer | None = None
) -> tuple[Solution, float]:
    """What a placer answers, not yet judged, and how many seconds it took. Raises like `attempt`."""
    chosen = PLACERS.load(name) if placer is None else placer
    problem.arrays  # noqa: B018 (compiling is not the placer's work)
    try:
        chosen.prepare()
        begun = time.perf_counter()
        solution: object = chosen.place(problem, budget_s=budget_s, seed=seed)
    except OpMarkError as error:
        raise SubmissionError(f"placer {name!r} found no placement: {error}", where=problem.name) from error
    except Exception as error:  # the boundary to code that others submit: it may raise anything
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise SubmissionError(f"placer {name!r} raised {text}", where=problem.name) from error
    planning_s = time.perf_counter() - begun
    if not isinstance(solution, Solution):
        found = type(solution).__name__
        raise SubmissionError(f"placer {name!r} returned a {found}, not a Solution", where=problem.name)
    return solution, planning_s
