"""Standings of placers that run in the test's own process."""

from collections.abc import Sequence
from dataclasses import replace

from opmark.core.errors import SubmissionError
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.standings import Standings, rank
from opmark.leaderboards.simulator.evaluation import Evaluation


def ranked(problems: Sequence[Problem], names: Sequence[str], *, budget_s: float) -> Standings:
    """Run every placer on every problem and rank them; a failed run keeps its reason."""
    outcomes: dict[tuple[str, str], Evaluation | str] = {}
    planning_s: dict[tuple[str, str], float] = {}
    for problem in problems:
        for name in names:
            try:
                found = attempt(problem, name, budget_s=budget_s)
            except SubmissionError as error:
                outcomes[name, problem.name] = error.message
                continue
            outcomes[name, problem.name] = found.evaluation
            planning_s[name, problem.name] = found.planning_s
    return replace(rank(problems, names, outcomes), planning_s=planning_s)
