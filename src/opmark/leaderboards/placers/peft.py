"""PEFT, Predict Earliest Finish Time.

Arabnejad, Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE TPDS 25(3),
2014: OCT[unit][device] is the shortest way from the unit's end to the exit if everything after it could choose its
device freely; units by falling mean OCT among the ready ones, each where finish + OCT is least.
"""

import numpy as np

from opmark.leaderboards.placers.heft import cheapest
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.lists.list_schedule import (
    BuiltSchedule,
    build_in_sequence,
    mean_travel_ns,
    ready_sequence,
)
from opmark.leaderboards.search.placer import Placer

_NEVER = 2**50


def optimistic_cost(problem: Problem) -> Integers:
    """U×D, in ns; 2^50 where the device cannot run the unit."""
    arrays = problem.arrays
    run = np.where(arrays.run_ns < 0, _NEVER, arrays.run_ns)
    travel = mean_travel_ns(problem)
    apart = 1 - np.eye(arrays.devices, dtype=np.int64)
    table = np.zeros((arrays.units, arrays.devices), dtype=np.int64)
    for unit in arrays.topological[::-1].tolist():
        for tensor in arrays.output_tensors[arrays.output_offsets[unit] : arrays.output_offsets[unit + 1]].tolist():
            first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
            for reader in arrays.consumer_units[first:last].tolist():
                onward = (table[reader] + run[reader])[None, :] + travel[tensor] * apart
                table[unit] = np.maximum(table[unit], onward.min(axis=1))
    return np.where(arrays.run_ns < 0, _NEVER, table)


def peft_schedule(problem: Problem, *, contention: bool = True) -> tuple[BuiltSchedule, Integers]:
    """The schedule PEFT builds and its cost table; without `contention` it is the paper's algorithm."""
    table = optimistic_cost(problem)
    able = problem.arrays.run_ns >= 0
    mean = np.where(able, table, 0).sum(axis=1) / able.sum(axis=1)
    sequence = ready_sequence(problem, mean)
    return build_in_sequence(problem, sequence, contention=contention, ahead_ns=table), table


class Peft(Placer):
    """List scheduling that looks ahead at no extra cost."""

    summary = "optimistic cost table, least finish plus what must follow (Arabnejad 2014)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """PEFT's schedule."""
        del budget_s, seed
        schedule, _ = peft_schedule(problem)
        return solution_of(problem, cheapest(problem, schedule.placement()), placer="peft")


PLACER = Peft()
