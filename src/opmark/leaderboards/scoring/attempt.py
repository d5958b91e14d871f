"""Run a placer on a problem in this process (any failure becomes one sentence), and the time limits of all entries."""

import time
from contextlib import suppress
from dataclasses import dataclass

from opmark.core.errors import MissingExtraError, OpMarkError, SubmissionError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate

# Planning budgets by problem size: (units at most, seconds).
BUDGETS_S = ((200, 2.0), (2000, 10.0))
BUDGET_LARGE_S = 60.0
# Extra time for a program to notice that its time is over and to print its answer.
EXTRA_S = 1.0
EXTRA_SHARE = 0.1


def budget_by_size_s(units: int) -> float:
    """The planning budget of a problem with `units` units, in seconds."""
    return next((seconds for most, seconds in BUDGETS_S if units <= most), BUDGET_LARGE_S)


def hard_end_s(budget_s: float) -> float:
    """The seconds after which a run is ended and its later answers are ignored."""
    return budget_s * (1 + EXTRA_SHARE) + EXTRA_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A valid answer with its evaluation, and times in seconds.

    `planning_s` is the length of the run. `answered_s` is when this answer arrived (None: at the end).
    """

    solution: Solution
    evaluation: Evaluation
    planning_s: float
    answered_s: float | None = None


def attempt(problem: Problem, name: str, *, budget_s: float, seed: int = 0, placer: Placer | None = None) -> Attempt:
    """Run the placer `name` (or `placer` under that name) in this process, and evaluate its answer.

    Raises `UnknownNameError`, `MissingExtraError` where the placer lacks a package here, or `SubmissionError` where it
    raises or its answer is not a valid solution.
    """
    solution, planning_s = plan(problem, name, budget_s=budget_s, seed=seed, placer=placer)
    try:
        evaluation = evaluate(problem, solution)
    except OpMarkError as error:
        raise SubmissionError(f"placer {name!r} is invalid: {error}", where=problem.name) from error
    return Attempt(solution=solution, evaluation=evaluation, planning_s=planning_s)


def prepare(name: str) -> None:
    """Let the placer `name` import and compile; a failure here shows again, with its reason, when it plans."""
    with suppress(Exception):  # code of others may raise anything
        PLACERS.load(name).prepare()


def plan(
    problem: Problem, name: str, *, budget_s: float, seed: int = 0, placer: Placer | None = None
) -> tuple[Solution, float]:
    """A placer's answer, not yet evaluated, and its planning time in seconds. Raises as `attempt` does."""
    chosen = PLACERS.load(name) if placer is None else placer
    problem.arrays  # noqa: B018 (planning time does not include compiling the problem)
    try:
        chosen.prepare()
        begun = time.perf_counter()
        solution: object = chosen.place(problem, budget_s=budget_s, seed=seed)
    except MissingExtraError:
        raise  # a missing package says nothing about the algorithm
    except OpMarkError as error:
        raise SubmissionError(f"placer {name!r} found no placement: {error}", where=problem.name) from error
    except Exception as error:  # code of others may raise anything
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise SubmissionError(f"placer {name!r} raised {text}", where=problem.name) from error
    planning_s = time.perf_counter() - begun
    if not isinstance(solution, Solution):
        found = type(solution).__name__
        raise SubmissionError(f"placer {name!r} returned a {found}, not a Solution", where=problem.name)
    return solution, planning_s
