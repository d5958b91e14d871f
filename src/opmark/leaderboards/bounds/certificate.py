"""Certificates of proved bounds: from which answer and on which grid, by which solver; each can be decided again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.files import json_text, write_sealed
from opmark.core.schema import load
from opmark.leaderboards.bounds.fleet_bound import decided_again, grid_for
from opmark.leaderboards.problem.problem import Problem

SCHEMA = 1
FILE = "bounds.json"
# The name of the bound that certificates are about.
PROVED = "intervals"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCertificate:
    """A bound on the costs of the problem with an id, proved from a valid answer that costs `answer_ns`.

    For a pool the program is that of every fleet. `decided_again` is true once a second run, with another seed and
    nothing to minimise, found that no solution of the program on the same grid costs less.
    """

    problem: str
    bound_ns: int
    answer_ns: int
    grid_ns: int
    seconds: float
    solver: str
    decided_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    certificates: Mapping[str, BoundCertificate] = field(default_factory=dict)


def certificate_of(problem: Problem, bound_ns: int, answer_ns: int, seconds: float) -> BoundCertificate:
    """The certificate of a bound that was just proved here."""
    from importlib.metadata import version

    return BoundCertificate(
        problem=problem.id,
        bound_ns=bound_ns,
        answer_ns=answer_ns,
        grid_ns=grid_for(problem, answer_ns),
        seconds=seconds,
        solver=f"OR-tools CP-SAT {version('ortools')}",
    )


def holds(problem: Problem, certificate: BoundCertificate, *, seconds: float) -> bool | None:
    """True if the bound is decided again within `seconds`, None if time is too short; False if it is wrong.

    A certificate for another problem is wrong.
    """
    if certificate.problem != problem.id or certificate.bound_ns > certificate.answer_ns:
        return False
    return decided_again(problem, certificate.bound_ns, grid_ns=certificate.grid_ns, seconds=seconds)


def read_certificates(folder: Path) -> dict[str, BoundCertificate]:
    """The certificates of a track's folder by problem name; empty without a file. Raises `ContentError`."""
    path = folder / FILE
    if not path.is_file():
        return {}
    found = dict(load(path, _File, schema=SCHEMA, sealed=True).certificates)
    for name, one in found.items():
        if not (0 <= one.bound_ns <= one.answer_ns < 2**63 and one.grid_ns >= 1 and one.seconds >= 0):
            raise ContentError(
                "expected 0 ≤ bound_ns ≤ answer_ns, a grid_ns of at least 1, and seconds that are not negative",
                where=f"{path}: certificates.{name}",
            )
    return found


def write_certificates(folder: Path, certificates: Mapping[str, BoundCertificate]) -> None:
    """Write the certificates of a track, by problem name."""
    content = {"schema": SCHEMA, "certificates": plain(dict(sorted(certificates.items())))}
    write_sealed(folder / FILE, json_text(content))
