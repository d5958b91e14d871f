"""Certificates of proved bounds: from which answer and on which grid, by which solver; each can be decided again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.files import json_text, write_sealed
from opmark.core.schema import load
from opmark.leaderboards.bounds.fleet_bound import decided_again, grid_for
from opmark.leaderboards.bounds.solver_bound import is_excluded
from opmark.leaderboards.bounds.stages.stages_bound import is_unreachable
from opmark.leaderboards.problem.problem import Problem

SCHEMA = 1
FILE = "bounds.json"
# The names of the bounds that certificates are about: constraint, dynamic and integer programming.
INTERVALS, STAGES, PROGRAM = "intervals", "stages", "solver"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCertificate:
    """A bound on the costs of the problem with an id, proved from a valid answer that costs `answer_ns`.

    `bound` is the name of the bound among those of the problem. For a pool the program is that of every fleet.
    `decided_again` is true once a second run, with another seed or order and nothing to minimise, found that no
    solution of the program on the same grid costs less.
    """

    problem: str
    bound_ns: int
    answer_ns: int
    grid_ns: int
    seconds: float
    solver: str
    decided_again: bool = False
    bound: str = INTERVALS


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    certificates: Mapping[str, BoundCertificate] = field(default_factory=dict)


def certificate_of(
    problem: Problem, bound_ns: int, answer_ns: int, seconds: float, *, bound: str = INTERVALS
) -> BoundCertificate:
    """The certificate of a bound that was just proved here."""
    return BoundCertificate(
        problem=problem.id,
        bound_ns=bound_ns,
        answer_ns=answer_ns,
        grid_ns=grid_for(problem, answer_ns) if bound == INTERVALS else 1,
        seconds=seconds,
        solver=_SOLVERS[bound](),
        bound=bound,
    )


def holds(problem: Problem, certificate: BoundCertificate, *, seconds: float) -> bool | None:
    """True if the bound is decided again within `seconds`, None if time is too short; False if it is wrong.

    A certificate for another problem is wrong.
    """
    if certificate.problem != problem.id or certificate.bound_ns > certificate.answer_ns:
        return False
    if certificate.bound == STAGES:
        return is_unreachable(problem, certificate.bound_ns, seconds=seconds)
    if certificate.bound == PROGRAM:
        return is_excluded(problem, certificate.bound_ns, seconds=seconds)
    return decided_again(problem, certificate.bound_ns, grid_ns=certificate.grid_ns, seconds=seconds)


def read_certificates(folder: Path) -> dict[str, BoundCertificate]:
    """The certificates of a track's folder by problem name; empty without a file. Raises `ContentError`."""
    path = folder / FILE
    if not path.is_file():
        return {}
    found = dict(load(path, _File, schema=SCHEMA, sealed=True).certificates)
    for name, one in found.items():
        where = f"{path}: certificates.{name}"
        if not (0 <= one.bound_ns <= one.answer_ns < 2**63 and one.grid_ns >= 1 and one.seconds >= 0):
            raise ContentError(
                "expected 0 ≤ bound_ns ≤ answer_ns, a grid_ns of at least 1, and seconds that are not negative",
                where=where,
            )
        if one.bound not in _SOLVERS:
            raise ContentError(f"bound: one of {', '.join(_SOLVERS)}, not {one.bound!r}", where=where)
    return found


def write_certificates(folder: Path, certificates: Mapping[str, BoundCertificate]) -> None:
    """Write the certificates of a track, by problem name."""
    content = {"schema": SCHEMA, "certificates": plain(dict(sorted(certificates.items())))}
    write_sealed(folder / FILE, json_text(content))


def best_proof(found: Mapping[str, int]) -> str | None:
    """The name of the largest of the bounds that get certificates; None if there is none."""
    return max((name for name in _SOLVERS if name in found), key=found.__getitem__, default=None)


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


_SOLVERS: dict[str, Callable[[], str]] = {
    INTERVALS: lambda: f"OR-tools CP-SAT {_version('ortools')}",
    STAGES: lambda: "dynamic programming over stages",
    PROGRAM: lambda: f"HiGHS in SciPy {_version('scipy')}",
}
