"""SCT, Small Communication Times, with memory: m-SCT.

Hanen, Munier, "An approximation algorithm for scheduling dependent tasks on m processors with small communication
delays", Discrete Applied Mathematics 108(3), 2001: a linear program picks for each task at most one favourite child and
one favourite parent, whose transfer is saved; a processor waits for the favourite of its last task. Jeon et al.,
"Baechi", SoCC 2020, section 3.3, adds memory and rounds at one half.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.list_answer import list_answer
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_start
from opmark.leaderboards.search.lists.ranks import edges_of_units, mean_run_ns, upward_rank
from opmark.leaderboards.search.lists.travel import mean_travel_ns
from opmark.leaderboards.search.placer import Placer

# The linear program of a larger graph takes minutes; then each unit's longest transfer marks its favourite.
EDGES_AT_MOST = 20_000
# The share of the budget for the linear program.
LP_SHARE = 0.5


def sct_schedule(problem: Problem, *, contention: bool = True, seconds: float = 10.0) -> tuple[ListSchedule, Integers]:
    """SCT's schedule and the upward ranks (ns) that break ties; the linear program has `seconds`."""
    rank = upward_rank(problem)
    favourite, delay_ns = favourite_children(problem, seconds=seconds)
    schedule = schedule_by_earliest_start(
        problem, rank, contention=contention, favourite=favourite, reserved_ns=delay_ns
    )
    return schedule, rank


def favourite_children(problem: Problem, *, seconds: float) -> tuple[Integers, Integers]:
    """Per unit, its favourite reader (-1: none) and the mean time of the transfer to it, in ns."""
    tails, heads, delays = _delays(problem)
    paid = np.zeros(len(tails))
    if 0 < len(tails) <= EDGES_AT_MOST:
        solved = _relaxed_program(problem, tails, heads, delays, seconds)
        paid = paid if solved is None else solved
    favourite = np.full(problem.arrays.units, -1, dtype=np.int64)
    delay_ns = np.zeros(problem.arrays.units, dtype=np.int64)
    has_parent: set[int] = set()
    # The smallest values first: rounding then never gives a unit two favourites, nor two units the same one.
    for edge in np.lexsort((heads, tails, -delays, np.round(paid, 6))).tolist():
        tail, head = int(tails[edge]), int(heads[edge])
        if paid[edge] < 0.5 and favourite[tail] < 0 and head not in has_parent:
            favourite[tail], delay_ns[tail] = head, delays[edge]
            has_parent.add(head)
    return favourite, delay_ns


def _delays(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Producer, reader and mean transfer (ns) of every pair of units; of several tensors, the longest transfer."""
    travel = mean_travel_ns(problem).tolist()
    longest: dict[tuple[int, int], int] = {}
    for producer, edges in enumerate(edges_of_units(problem)):
        for tensor, reader in edges:
            longest[producer, reader] = max(longest.get((producer, reader), 0), travel[tensor])
    pairs = np.array(sorted(longest), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], np.array([longest[a, b] for a, b in pairs.tolist()], dtype=np.int64)


def _relaxed_program(
    problem: Problem, tails: Integers, heads: Integers, delays: Integers, seconds: float
) -> npt.NDArray[np.float64] | None:
    """Per edge, the relaxed 0 (favourite) or 1 (transfer paid) on infinitely many processors; None without a solution.

    Minimise the makespan, such that: reader's start ≥ producer's start + its time + delay · x(edge); makespan ≥ start +
    time of every unit; of a unit's outgoing edges, and of its incoming ones, all but one are paid.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    edges, units = len(tails), problem.arrays.units
    run_ns = mean_run_ns(problem)
    scale = float(max(1, run_ns.max(), delays.max()))
    edge, unit = np.arange(edges), np.arange(units)
    # Columns: x per edge, start per unit, makespan. Rows: per edge, per unit, then per unit with several edges.
    start, makespan = edges + unit, edges + units
    rows = [edge, edge, edge, edges + unit, edges + unit]
    columns = [edge, start[tails], start[heads], start, np.full(units, makespan)]
    values: list[npt.NDArray[np.float64]] = [
        delays / scale,
        np.ones(edges),
        -np.ones(edges),
        np.ones(units),
        -np.ones(units),
    ]
    limits: list[npt.NDArray[Any]] = [-run_ns[tails] / scale, -run_ns / scale]
    row = edges + units
    for ends in (tails, heads):
        count = np.bincount(ends, minlength=units)
        rows.append(row + (np.cumsum(count > 0) - 1)[ends])
        columns.append(edge)
        values.append(-np.ones(edges))
        limits.append(1.0 - count[count > 0])
        row += int((count > 0).sum())
    matrix = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(row, makespan + 1)
    )
    objective = np.zeros(makespan + 1)
    objective[makespan] = 1.0
    result = linprog(
        objective,
        A_ub=matrix,
        b_ub=np.concatenate(limits),
        bounds=[(0.0, 1.0)] * edges + [(0.0, None)] * (units + 1),
        method="highs",
        options={"time_limit": max(0.05, seconds)},
    )
    return None if result.x is None else np.asarray(result.x[:edges], dtype=np.float64)


class Sct(Placer):
    """ETF that keeps a device free for the unit whose transfer is the best one to avoid."""

    summary = "favourite children by linear program, then earliest start (Hanen 2001; Baechi's m-SCT)"
    paper = Placer.cites(
        "Hanen, Munier: An approximation algorithm for scheduling dependent tasks on m processors with small "
        "communication delays, Discrete Applied Mathematics 108(3)",
        2001,
        link="https://doi.org/10.1016/S0166-218X(00)00179-7",
    )

    def prepare(self) -> None:
        """Import the solver."""
        import scipy.optimize  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return SCT's schedule; if the program does not end in time, the longest transfers mark the favourites."""
        del seed
        schedule, rank = sct_schedule(problem, seconds=budget_s * LP_SHARE)
        return list_answer(problem, schedule, rank, placer="sct")


PLACER = Sct()
