"""Stashed memory of a training step: every micro-batch between its forward and its backward pass keeps what it made."""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.passes._step.plan import StepPlan


def step_peaks(problem: Problem, plan: StepPlan) -> Integers:
    """Peak bytes per device: weights, what is made once, the largest workspace, and the micro-batches in flight.

    A stage's share of a micro-batch is what its forward pass makes or receives. Of what backward and update units make
    there is room for one micro-batch.
    """
    arrays = problem.arrays
    count = arrays.devices
    forward = np.array([unit.phase == "forward" for unit in problem.units])
    made = arrays.tensor_producer >= 0
    kept = ~made | forward[arrays.tensor_producer]
    lengths = np.diff(arrays.consumer_offsets)
    readers = np.repeat(np.arange(len(lengths)), lengths)
    outputs = np.flatnonzero(arrays.tensor_output == 1)
    peak = np.zeros(count, dtype=np.int64)
    work = np.zeros(count, dtype=np.int64)
    each = []
    holders = []
    for device in plan.lanes:
        source = np.where(made, device[arrays.tensor_producer], arrays.tensor_home)
        tensor = np.concatenate([np.arange(len(lengths)), readers, outputs])
        where = np.concatenate([source, device[arrays.consumer_units], np.full(len(outputs), arrays.host)])
        tensor, where = np.divmod(np.unique(tensor * count + where), count)
        each.append(_summed(where, np.where(kept, arrays.tensor_bytes, 0)[tensor], count))
        peak += _summed(where, np.where(kept, 0, arrays.tensor_bytes)[tensor], count)
        np.maximum.at(work, device, arrays.workspace_bytes)
        place = np.repeat(device, np.diff(arrays.weight_offsets))
        holders.append(arrays.weight_ids * count + place)
    weight, where = np.divmod(np.unique(np.concatenate(holders)), count)
    peak += _summed(where, arrays.weight_bytes[weight], count) + work
    for number in range(count):
        held = most = 0
        for lane, backward in plan.blocks[number]:
            held += int(each[lane][number]) * (-1 if backward else 1)
            most = max(most, held)
        # a device without a stage may still keep what it hands in or takes out: one micro-batch of it
        peak[number] += most if plan.blocks[number] else max(int(row[number]) for row in each)
    return peak


def micro_batches_in_flight(plan: StepPlan) -> list[int]:
    """Per device, the most micro-batches that are between their forward and their backward pass at once."""
    found = []
    for row in plan.blocks:
        held = most = 0
        for _, backward in row:
            held += -1 if backward else 1
            most = max(most, held)
        found.append(most)
    return found


def _summed(where: Integers, sizes: Integers, count: int) -> Integers:
    """Whole sums per device; floats would round above 2^53."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, where, sizes)
    return found
