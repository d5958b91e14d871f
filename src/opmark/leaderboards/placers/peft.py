"""PEFT, Predict Earliest Finish Time.

Arabnejad, Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE TPDS 25(3),
2014: OCT[unit][device] is the shortest way from the unit's end to the exit if everything after it could choose its
device freely; units by falling mean OCT among the ready ones, each where finish + OCT is least.
"""

import heapq

import numpy as np

from opmark.leaderboards.integers import Integers
from opmark.leaderboards.list_schedule import ListSchedule, mean_travel_ns
from opmark.leaderboards.placement import Solution, solution_of
from opmark.leaderboards.placer import Placer
from opmark.leaderboards.placers.heft import cheapest
from opmark.leaderboards.problem import Problem

_NEVER = 2**50


def optimistic_cost(schedule: ListSchedule) -> Integers:
    """U×D, in ns; 2^50 where the device cannot run the unit."""
    arrays = schedule.problem.arrays
    run = np.where(arrays.run_ns < 0, _NEVER, arrays.run_ns)
    travel = mean_travel_ns(schedule)
    apart = 1 - np.eye(arrays.devices, dtype=np.int64)
    table = np.zeros((arrays.units, arrays.devices), dtype=np.int64)
    for unit in arrays.topological[::-1].tolist():
        for tensor in arrays.output_tensors[arrays.output_offsets[unit] : arrays.output_offsets[unit + 1]].tolist():
            first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
            for reader in arrays.consumer_units[first:last].tolist():
                onward = (table[reader] + run[reader])[None, :] + travel[tensor] * apart
                table[unit] = np.maximum(table[unit], onward.min(axis=1))
    return np.where(arrays.run_ns < 0, _NEVER, table)


def peft_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """The schedule PEFT builds and its cost table; without `contention` it is the paper's algorithm."""
    arrays = problem.arrays
    schedule = ListSchedule(problem, contention=contention)
    table = optimistic_cost(schedule)
    able = arrays.run_ns >= 0
    mean = (np.where(able, table, 0).sum(axis=1) / able.sum(axis=1)).tolist()
    waiting = [0] * arrays.units
    readers: list[list[int]] = [[] for _ in range(arrays.units)]
    offsets = arrays.consumer_offsets.tolist()
    for tensor, producer in enumerate(arrays.tensor_producer.tolist()):
        if producer >= 0:
            row = arrays.consumer_units[offsets[tensor] : offsets[tensor + 1]].tolist()
            readers[producer] += row
            for reader in row:
                waiting[reader] += 1
    ready = [(-mean[unit], unit) for unit in range(arrays.units) if not waiting[unit]]
    heapq.heapify(ready)
    while ready:
        _, unit = heapq.heappop(ready)
        ahead = table[unit].tolist()
        choices = [
            (end + max(ahead[device], schedule.return_ns(unit, device)), device)
            for device, _, end in schedule.options(unit)
        ]
        schedule.put(unit, min(choices)[1])
        for reader in readers[unit]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (-mean[reader], reader))
    return schedule, table


class Peft(Placer):
    """List scheduling that looks ahead at no extra cost."""

    summary = "optimistic cost table, least finish plus what must follow (Arabnejad 2014)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """PEFT's schedule."""
        del budget_s, seed
        schedule, _ = peft_schedule(problem)
        return solution_of(problem, cheapest(problem, schedule.placement()), placer="peft")


PLACER = Peft()
