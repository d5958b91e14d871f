"""A stored trace, checked again: against its problem, against its own words, and against the solution it shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, PlacementError
from opmark.core.files import read_json
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.trace import DEVICES, LINKS, chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTrace:
    """A trace that is possible and costs what it says; `same` is None where no solution was held against it."""

    profile: str
    cost_ns: int
    kernels: int
    transfers: int
    same: bool | None


def check_trace_file(problem: Problem, path: Path, solution: Solution | None = None) -> CheckedTrace:
    """Check the trace in `path`; with its `solution` it must also be the very trace that simulating gives.

    Raises `ContentError` for a file that is no trace of OpMark, `PlacementError` for one that cannot be or whose cost
    is another than it says. Both name the file.
    """
    trace = read_json(path)
    try:
        cost = check_trace(problem, trace)
        facts, rows = trace["otherData"], [event["pid"] for event in trace["traceEvents"] if event["ph"] == "X"]
        stated, profile = facts["cost_ns"], profile_named(facts["profile"])
    except PlacementError as error:
        raise PlacementError(error.message, where=error.where or str(path), hint=error.hint) from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ContentError(
            f"not a trace that OpMark wrote: {type(error).__name__} {error}",
            where=str(path),
            hint="`opmark leaderboards simulate … --trace FILE` writes one",
        ) from error
    if stated != cost:
        raise PlacementError(f"its events cost {cost} ns, and it says {stated} ns", where=f"{path}: otherData.cost_ns")
    same = None
    if solution is not None:
        same = True
        expected = plain(chrome_trace(problem, evaluate(problem, solution, profile), profile))
        if trace != expected:
            raise PlacementError(
                f"simulating the solution gives another trace: {_first(trace, expected)}", where=str(path)
            )
    return CheckedTrace(
        profile=profile.name,
        cost_ns=cost,
        kernels=rows.count(DEVICES),
        transfers=rows.count(LINKS),
        same=same,
    )


def _first(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Where two traces differ first."""
    events, wanted = found["traceEvents"], expected["traceEvents"]
    for number, (one, other) in enumerate(zip(events, wanted, strict=False)):
        if one != other:
            return f"event {number}, {one.get('name')!r}"
    if len(events) != len(wanted):
        return f"{len(events)} events instead of {len(wanted)}"
    return "in what is said beside its events"
