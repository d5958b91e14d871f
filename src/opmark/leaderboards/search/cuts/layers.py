"""Layers, the steps of a pipeline planner: stretches of one order of the blocks, with their costs as running sums."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.fields import PHASES
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.coarse_problem import stretches
from opmark.leaderboards.search.cuts.stages import device_rows
from opmark.leaderboards.search.lists.travel import mean_travel_ns

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """L layers and sums over the first 0 to L of them.

    `run_ns` is 3×D×(L+1), by phase; `unable` (D×(L+1)) counts the layers that a device cannot run. `weight_bytes` and
    `gradient_bytes` (L+1) are all weights with their optimiser's state, and those that are updated. `crossing_ns`
    (2×(L+1)) is the mean travel time of what passes between layers j - 1 and j forwards and backwards.
    """

    of_unit: Integers
    run_ns: Floats
    unable: Integers
    weight_bytes: Floats
    gradient_bytes: Floats
    crossing_ns: Floats
    fastest_first: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of layers."""
        return len(self.weight_bytes) - 1


def layers_of(problem: Problem, at_most: int) -> Layers:
    """At most `at_most` layers, as long as devices can run them: neighbours with the least work are joined."""
    blocks = blocks_of(problem)
    order = list(blocks.depth_first_orders[0])
    run = blocks.run_ns[order]
    work = np.where(run >= 0, run, 0).max(axis=1).astype(np.float64) + 1
    first = stretches(work.tolist(), [row >= 0 for row in run], at_most)
    of_block = np.empty(blocks.count, dtype=np.int64)
    of_block[order] = np.unique(first, return_inverse=True)[1]
    of_unit = of_block[blocks.of_unit]
    count = int(of_unit.max()) + 1
    return Layers(
        of_unit=of_unit,
        run_ns=_run_ns(problem, of_unit, count),
        unable=_unable(problem, of_unit, count),
        weight_bytes=_weights(problem, of_unit, count, updated=False),
        gradient_bytes=_weights(problem, of_unit, count, updated=True),
        crossing_ns=_crossing_ns(problem, of_unit, count),
        fastest_first=tuple(device_rows(problem, blocks)),
    )


def _run_ns(problem: Problem, of_unit: Integers, count: int) -> Floats:
    arrays = problem.arrays
    found = np.zeros((len(PHASES), arrays.devices, count + 1))
    phase = np.array([PHASES.index(unit.phase) for unit in problem.units], dtype=np.int64)
    for device in range(arrays.devices):
        np.add.at(found[:, device], (phase, of_unit + 1), np.maximum(0, arrays.run_ns[:, device]))
    return np.cumsum(found, axis=2)


def _unable(problem: Problem, of_unit: Integers, count: int) -> Integers:
    arrays = problem.arrays
    found = np.zeros((arrays.devices, count + 1), dtype=np.int64)
    for device in range(arrays.devices):
        np.add.at(found[device], of_unit[arrays.run_ns[:, device] < 0] + 1, 1)
    return np.cumsum(found, axis=1)


def _weights(problem: Problem, of_unit: Integers, count: int, *, updated: bool) -> Floats:
    """Every weight counts in the first layer that uses it; `updated` ones without their optimiser's state."""
    found = np.zeros(count + 1)
    layer: dict[str, int] = {}
    for unit, own in zip(problem.units, of_unit.tolist(), strict=True):
        for name in unit.weights:
            layer[name] = min(own, layer.get(name, own))
    for name, own in layer.items():
        if not updated:
            found[own + 1] += problem.held_bytes[name]
        elif name in problem.updated_weights:
            found[own + 1] += problem.weights[name]
    return np.cumsum(found)


def _crossing_ns(problem: Problem, of_unit: Integers, count: int) -> Floats:
    """A tensor passes every boundary between its producer and its farthest reader of the same phase, once."""
    arrays = problem.arrays
    travel, layer = mean_travel_ns(problem).tolist(), of_unit.tolist()
    phase = [PHASES.index(unit.phase) for unit in problem.units]
    change = np.zeros((2, count + 2))
    for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
        if maker < 0 or phase[maker] > 1:
            continue
        first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
        ends = [layer[unit] for unit in arrays.consumer_units[first:last].tolist() if phase[unit] == phase[maker]]
        low, high = min([layer[maker], *ends]), max([layer[maker], *ends])
        change[phase[maker], low + 1] += travel[tensor]
        change[phase[maker], high + 1] -= travel[tensor]
    found: Floats = np.cumsum(change, axis=1)[:, : count + 1]
    return found
