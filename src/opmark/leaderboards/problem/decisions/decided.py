"""The problem that a solution leads to: units that it splits in parts, forward units that it runs again."""

from collections.abc import Mapping

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.decisions.recomputation import recomputed
from opmark.leaderboards.problem.decisions.splitting import split_problem
from opmark.leaderboards.problem.fields import UnitSplit
from opmark.leaderboards.problem.placement import Solution, SplitChoice
from opmark.leaderboards.problem.problem import Problem


def decided(problem: Problem, solution: Solution) -> tuple[Problem, Solution]:
    """The rewritten problem and the solution of it; both unchanged where the solution decides nothing but a placement.

    Devices, priorities and orders of a solution name the units of the split problem; a unit that runs again is where
    it ran before. Raises `PlacementError` for a decision that the problem does not offer.
    """
    if solution.splits:
        problem = split_problem(problem, chosen_splits(problem, solution.splits))
    if solution.recompute:
        problem, solution = recomputed(problem, solution)
    return problem, solution


def chosen_splits(problem: Problem, splits: Mapping[str, SplitChoice]) -> dict[str, UnitSplit]:
    """The split behind each choice. Raises `PlacementError` naming the first that its unit does not offer."""
    offered = {unit.name: unit.splits for unit in problem.units}
    found = {}
    for name, choice in splits.items():
        if name not in offered:
            raise PlacementError(f"splits names {name!r}, which is no unit of the problem")
        known = {(split.axis, split.parts): split for split in offered[name]}
        if (choice.axis, choice.parts) not in known:
            ways = ", ".join(f"{parts} by {axis}" for axis, parts in sorted(known)) or "none"
            raise PlacementError(
                f"unit {name!r} cannot be split into {choice.parts} by {choice.axis!r}: it offers {ways}"
            )
        found[name] = known[choice.axis, choice.parts]
    return found
