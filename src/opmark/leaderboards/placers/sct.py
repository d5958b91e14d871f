"""SCT, Small Communication Times, with memory: m-SCT.

Hanen, Munier, "An approximation algorithm for scheduling dependent tasks on m processors with small communication
delays", Discrete Applied Mathematics 108(3), 2001: a linear program picks at most one favourite child per task (and one
favourite parent), whose transfer is saved; a processor waits for the favourite of its last task as long as others could
not have it earlier. Jeon et al., "Baechi", SoCC 2020, section 3.3, adds memory and rounds at one half.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from opmark.leaderboards.placers.heft import cheapest, mean_ns, mean_upward_rank
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.lists.list_schedule import BuiltSchedule, build_earliest_first, mean_travel_ns
from opmark.leaderboards.search.placer import Placer

# Beyond this the program takes minutes; then the dearest transfer of each unit is its favourite.
EDGES_AT_MOST = 20_000
# Of the budget, for the linear program.
LP_SHARE = 0.5


def favourite_children(problem: Problem, *, seconds: float) -> tuple[Integers, Integers]:
    """Per unit, its favourite reader (-1: none) and what its transfer would take on the mean, in ns."""
    tails, heads, delays = _edges(problem)
    saved = np.zeros(len(tails))
    if 0 < len(tails) <= EDGES_AT_MOST:
        found = _relaxed(problem, tails, heads, delays, seconds)
        saved = saved if found is None else found
    favourite = np.full(problem.arrays.units, -1, dtype=np.int64)
    wake = np.zeros(problem.arrays.units, dtype=np.int64)
    taken: set[int] = set()
    # the smallest values first, so that rounding never gives a unit two favourites, or two parents one
    for edge in np.lexsort((heads, tails, -delays, np.round(saved, 6))).tolist():
        tail, head = int(tails[edge]), int(heads[edge])
        if saved[edge] < 0.5 and favourite[tail] < 0 and head not in taken:
            favourite[tail], wake[tail] = head, delays[edge]
            taken.add(head)
    return favourite, wake


def _edges(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Maker, reader and the mean transfer (ns) of every pair of units, the longest where several tensors pass."""
    arrays = problem.arrays
    travel = mean_travel_ns(problem).tolist()
    longest: dict[tuple[int, int], int] = {}
    readers = arrays.consumer_units.tolist()
    for tensor, (first, last) in enumerate(pairwise(arrays.consumer_offsets.tolist())):
        maker = int(arrays.tensor_producer[tensor])
        if maker >= 0:
            for reader in readers[first:last]:
                longest[maker, reader] = max(longest.get((maker, reader), 0), travel[tensor])
    pairs = np.array(sorted(longest), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], np.array([longest[a, b] for a, b in pairs.tolist()], dtype=np.int64)


def _relaxed(
    problem: Problem, tails: Integers, heads: Integers, delays: Integers, seconds: float
) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
    """Per edge, the relaxed 0 (favourite) or 1 of the program on infinitely many processors."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    edges, units = len(tails), problem.arrays.units
    mean = mean_ns(problem)
    scale = float(max(1, mean.max(), delays.max()))
    number = np.arange(edges)
    # variables: x per edge, start per unit, makespan
    starts = edges + np.arange(units)
    rows = [number, number, number, edges + np.arange(units), edges + np.arange(units)]
    columns = [number, starts[tails], starts[heads], starts, np.full(units, edges + units)]
    values: list[Any] = [delays / scale, np.ones(edges), -np.ones(edges), np.ones(units), -np.ones(units)]
    limits: list[Any] = [-mean[tails] / scale, -mean / scale]
    line = edges + units
    for ends in (tails, heads):  # at most one favourite: all but one of the edges of a unit are paid
        count = np.bincount(ends, minlength=units)
        place = np.cumsum(count > 0) - 1
        rows.append(line + place[ends])
        columns.append(number)
        values.append(-np.ones(edges))
        limits.append(1.0 - count[count > 0])
        line += int((count > 0).sum())
    matrix = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(line, edges + units + 1)
    )
    objective = np.zeros(edges + units + 1)
    objective[-1] = 1.0
    bounds = [(0.0, 1.0)] * edges + [(0.0, None)] * (units + 1)
    result: Any = linprog(
        objective,
        A_ub=matrix,
        b_ub=np.concatenate(limits),
        bounds=bounds,
        method="highs",
        options={"time_limit": max(0.05, seconds)},
    )
    return None if result.x is None else np.asarray(result.x[:edges], dtype=np.float64)


def sct_schedule(problem: Problem, *, contention: bool = True, seconds: float = 10.0) -> tuple[BuiltSchedule, Integers]:
    """The schedule SCT builds and the ranks that break its ties; without `contention` links are infinitely wide."""
    rank = mean_upward_rank(problem)
    favourite, wake = favourite_children(problem, seconds=seconds)
    built = build_earliest_first(problem, rank, contention=contention, favourite=favourite, wake_ns=wake)
    return built, rank


class Sct(Placer):
    """ETF that leaves a device free for the one unit whose transfer is best avoided."""

    summary = "favourite children by linear program, then earliest start (Hanen 2001; Baechi's m-SCT)"

    def prepare(self) -> None:
        """Import the solver."""
        import scipy.optimize  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """SCT's schedule; where the program does not end in time, the dearest transfers are the favourites."""
        del seed
        schedule, rank = sct_schedule(problem, seconds=budget_s * LP_SHARE)
        return solution_of(problem, cheapest(problem, schedule.placement(rank)), placer="sct")


PLACER = Sct()
