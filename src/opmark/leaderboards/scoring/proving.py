"""Better lower bounds for the problems of a track, proved by solvers from the best stored answers."""

from collections.abc import Callable
from dataclasses import replace

from opmark.core.errors import CheckFailedError
from opmark.core.parallel.task_map import InTurn, MapProgress, TaskMap
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.simulator.simulate import simulate


def prove_bounds(
    track: Track,
    *,
    seconds: float,
    progress: Callable[[str, MapProgress], None] = lambda _name, _progress: None,
    place: TaskMap | None = None,
) -> dict[str, int]:
    """Prove bounds for every scored problem whose bound is below its best known cost; the gains by problem.

    Each problem gets `seconds`. A bound is stored with its problem as soon as it is proved, and never falls, so that an
    interrupted run goes on from where it was. The standings are ranked and written again.
    """
    gained: dict[str, int] = {}
    with track.lock():
        asked = [
            (problem, known, seconds)
            for problem, known in _best_answers(track)
            if problem.reference is not None and problem.reference.bound_ns < problem.reference.best_known_ns
        ]
        for done, (number, found) in enumerate((place or InTurn()).run(_proved, asked, shared=None), start=1):
            problem = asked[number][0]
            reference = problem.reference
            assert reference is not None
            better = {name: value for name, value in found.items() if value > reference.bounds.get(name, 0)}
            bound_ns = max(reference.bound_ns, *found.values())
            if better:
                written = replace(reference, bounds={**reference.bounds, **better}, bound_ns=bound_ns)
                save_problem(replace(problem, reference=written), track.path_of(problem.name))
            gained[problem.name] = bound_ns - reference.bound_ns
            progress(problem.name, MapProgress(done=done, total=len(asked)))
        if any(gained.values()):
            track.write_standings(track.standings())
    return gained


def _proved(_shared: None, asked: tuple[Problem, Placement, float]) -> dict[str, int]:
    """All bounds of one problem. Raises `CheckFailedError` where one exceeds the cost of a valid answer."""
    problem, known, seconds = asked
    found = bounds(problem, solver_s=seconds, known=known)
    cost = simulate(problem, known).cost_ns
    wrong = {name: value for name, value in found.items() if value > cost}
    if wrong:
        name, value = next(iter(wrong.items()))
        raise CheckFailedError(f"the bound {name} is {value}, and a valid answer costs {cost}", where=problem.name)
    return found


def _best_answers(track: Track) -> list[tuple[Problem, Placement]]:
    """The problems that have a valid stored answer, each with the cheapest one."""
    standings = track.standings()
    entries = track.solutions()
    costs = {
        (result.problem, row.name): result.cost
        for row in standings.rows
        for result in row.results
        if result.cost is not None
    }
    found = []
    for problem in track.problems():
        own = sorted((cost, entry) for (name, entry), cost in costs.items() if name == problem.name)
        solution = entries[own[0][1]][problem.name] if own else None
        if isinstance(solution, Solution):
            found.append((problem, placement_of(problem, solution)))
    return found
