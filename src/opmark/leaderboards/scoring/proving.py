"""Better lower bounds for a track's problems, proved by solvers from the best stored answers, and checked again."""

from collections.abc import Callable, Collection
from dataclasses import replace

from opmark.core.errors import CheckFailedError, NothingSelectedError
from opmark.core.parallel.task_map import InTurn, MapProgress, TaskMap
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.certificate import (
    BoundCertificate,
    best_proof,
    certificate_of,
    holds,
    read_certificates,
    write_certificates,
)
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.simulator.simulate import simulate


def prove_bounds(
    track: Track,
    *,
    seconds: float,
    only: Collection[str] = (),
    progress: Callable[[str, MapProgress], None] = lambda _name, _progress: None,
    place: TaskMap | None = None,
) -> dict[str, int]:
    """Prove bounds for every scored problem whose bound is below its best known cost; the gains by problem.

    With `only`, for the problems of these names, in that order. Each problem gets `seconds`. A bound is stored with its
    problem as soon as it is proved, and never falls, so that an interrupted run goes on from where it was; its
    certificate stands in `bounds.json`. The standings are ranked and written again.
    """
    gained: dict[str, int] = {}
    with track.lock():
        asked = [
            (problem, known, seconds)
            for problem, known in _best_answers(track, only)
            if problem.reference is not None and problem.reference.bound_ns < problem.reference.best_known_ns
        ]
        for done, (number, found) in enumerate((place or InTurn()).run(_proved, asked, shared=None), start=1):
            problem, known, _ = asked[number]
            reference = problem.reference
            assert reference is not None
            better = {name: value for name, value in found.items() if value > reference.bounds.get(name, 0)}
            bound_ns = max(reference.bound_ns, *found.values())
            if better:
                proof = best_proof(found)
                if proof in better:
                    answer_ns = simulate(problem, known).cost_ns
                    made = certificate_of(problem, better[proof], answer_ns, seconds, bound=proof)
                    _keep(track, problem.name, made)
                written = replace(reference, bounds={**reference.bounds, **better}, bound_ns=bound_ns)
                save_problem(replace(problem, reference=written), track.path_of(problem.name))
            gained[problem.name] = bound_ns - reference.bound_ns
            progress(problem.name, MapProgress(done=done, total=len(asked)))
        if any(gained.values()):
            track.write_standings(track.standings())
    return gained


def check_bounds(
    track: Track,
    *,
    seconds: float,
    only: Collection[str] = (),
    progress: Callable[[str, MapProgress], None] = lambda _name, _progress: None,
    place: TaskMap | None = None,
) -> dict[str, bool]:
    """Decide again, within `seconds` each, what the track's certificates claim; True by problem where it was decided.

    With `only`, for the problems of these names. A certificate that was decided again is not decided a third time.
    Raises `CheckFailedError` for a wrong one.
    """
    problems = _problems(track, only)
    found: dict[str, bool] = {}
    with track.lock():
        known = {name: one for name, one in read_certificates(track.folder).items() if name in problems}
        found = {name: True for name, one in known.items() if one.decided_again and one.problem == problems[name].id}
        asked = [(problems[name], one, seconds) for name, one in known.items() if name not in found]
        for done, (number, verdict) in enumerate((place or InTurn()).run(_decided, asked, shared=None), start=1):
            problem, certificate, _ = asked[number]
            if verdict is False:
                raise CheckFailedError(f"the bound {certificate.bound_ns} does not hold", where=problem.name)
            found[problem.name] = bool(verdict)
            if verdict:
                _keep(track, problem.name, replace(certificate, decided_again=True))
            progress(problem.name, MapProgress(done=done, total=len(asked)))
    return dict(sorted(found.items()))


def _keep(track: Track, name: str, certificate: BoundCertificate) -> None:
    write_certificates(track.folder, {**read_certificates(track.folder), name: certificate})


def _decided(_shared: None, asked: tuple[Problem, BoundCertificate, float]) -> bool | None:
    problem, certificate, seconds = asked
    return holds(problem, certificate, seconds=seconds)


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


def _problems(track: Track, only: Collection[str]) -> dict[str, Problem]:
    """The problems by name, all of them or `only` some. Raises `NothingSelectedError` for an unknown name."""
    problems = {problem.name: problem for problem in track.problems()}
    unknown = [name for name in only if name not in problems]
    if unknown:
        raise NothingSelectedError(f"no problem is called {unknown[0]!r}", where=track.name)
    return {name: problems[name] for name in only or problems}


def _best_answers(track: Track, only: Collection[str]) -> list[tuple[Problem, Placement]]:
    """The problems with a valid stored answer, each with the cheapest one that leaves all units whole and alone."""
    standings = track.standings(draws=False)
    entries = track.solutions()
    costs = {
        (result.problem, row.name): result.cost
        for row in standings.rows
        for result in row.results
        if result.cost is not None
    }
    found = []
    for problem in _problems(track, only).values():
        own = sorted((cost, entry) for (name, entry), cost in costs.items() if name == problem.name)
        answers = (entries[entry][problem.name] for _, entry in own)
        plain = (one for one in answers if isinstance(one, Solution) and not (one.splits or one.recompute))
        solution = next(plain, None)
        if solution is not None:
            found.append((problem, placement_of(problem, solution)))
    return found
