"""The contiguous split of least maximum load, over all ideals or along one order.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1:
f[ideal][devices used] = min over smaller ideals of max(f[smaller][one device less], load of the difference).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers, integers, rows
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks
from opmark.leaderboards.search.cuts.ideals import Ideals, prefixes, run_in_slices
from opmark.leaderboards.simulator.direct_models import device_prices

# No load is larger.
UNBOUNDED_NS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A device per block, and the largest load of a device in ns."""

    device: Integers
    load_ns: int


class Splitter:
    """Prepares the loads of a problem once, so that `solve` can be called with several sets of ideals.

    Equal devices form a class, of which only the number of used devices matters. With `weights_only`, a device's memory
    must hold the weights of its blocks, else everything that its blocks hold.
    """

    def __init__(self, problem: Problem, blocks: Blocks, *, weights_only: bool) -> None:
        self.blocks = blocks
        arrays = problem.arrays
        prices = _prices(problem)
        self._classes = _equal_devices(arrays.device_memory_bytes, [blocks.run_ns, *prices.values()])
        first = [row[0] for row in self._classes]
        size = blocks.weight_bytes if weights_only else blocks.size_bytes
        leaves = (prices["home"] == 1) & ((prices["away"] == 1) | (np.diff(arrays.consumer_offsets) > 0)[:, None])
        idle = np.where(leaves, prices["out"], 0) + np.where(prices["wanted"], prices["into"], 0)
        self._loads: dict[str, Integers] = {
            "run": _columns(blocks.run_ns, first),
            "size": size,
            "memory": arrays.device_memory_bytes[first],
            "devices": integers(len(row) for row in self._classes),
            **{name: _columns(table, first) for name, table in prices.items()},
            "idle": idle.sum(axis=0)[first],
            **_tensors_of_blocks(problem, blocks),
        }

    @property
    def states(self) -> int:
        """The number of combinations of used devices per class."""
        return math.prod(len(row) + 1 for row in self._classes)

    def along_orders(self, deadline: float) -> Split | None:
        """The best split along either depth-first order; None if the `deadline` (as `time.monotonic`) comes first."""
        chains = [prefixes(self.blocks, order) for order in self.blocks.depth_first_orders]
        splits = [self.solve(chain, UNBOUNDED_NS, deadline) for chain in chains]
        return min((split for split in splits if split is not None), key=lambda split: split.load_ns, default=None)

    def solve(self, ideals: Ideals, bound_ns: int, deadline: float = math.inf) -> Split | None:
        """The split along the ideals with the least maximum load, if that is at most `bound_ns`.

        None if there is no such split, or at the `deadline` (as `time.monotonic`).
        """
        from opmark.leaderboards.search.cuts.ideal_programs import NEVER, LoadPrograms, PartLoads, least_max_load

        count = ideals.number
        cost = np.full((count, self.states), NEVER, dtype=np.int64)
        cost[0, 0] = 0
        parent, device_class = np.full_like(cost, -1), np.full_like(cost, -1)
        growing = {name: np.empty(count, dtype=np.int64) for name in ("queue", "load", "floor", "held")}
        loads = PartLoads(**self._loads)
        tables = LoadPrograms(
            cost=cost,
            parent=parent,
            device_class=device_class,
            mark=np.full(count, -1, dtype=np.int64),
            position=np.zeros(4, dtype=np.int64),
            **growing,
        )
        if not run_in_slices(
            lambda steps: least_max_load(steps, bound_ns, ideals, loads, tables), tables.position, count, deadline
        ):
            return None
        final = np.maximum(cost[-1], self._unused_ns())
        state = int(final.argmin())
        if final[state] > bound_ns:
            return None
        return Split(device=self._devices(ideals, parent, device_class, state), load_ns=int(final[state]))

    def _devices(self, ideals: Ideals, parent: Integers, device_class: Integers, state: int) -> Integers:
        """The device of each block, read back from the whole graph in the final `state` to the empty ideal."""
        device = np.zeros(self.blocks.count, dtype=np.int64)
        unused = [list(row) for row in self._classes]
        strides = np.cumprod([1, *(len(row) + 1 for row in self._classes)]).tolist()
        ideal = ideals.number - 1
        while ideal > 0:
            own_class, smaller = int(device_class[ideal, state]), int(parent[ideal, state])
            device[ideals.difference(ideal, smaller)] = unused[own_class].pop()
            ideal, state = smaller, state - strides[own_class]
        return device

    def _unused_ns(self) -> Integers:
        """Per state, the largest load of a device that it leaves without blocks."""
        found = np.zeros(self.states, dtype=np.int64)
        stride = 1
        for row, idle in zip(self._classes, self._loads["idle"].tolist(), strict=True):
            used = np.arange(self.states) // stride % (len(row) + 1)
            found = np.maximum(found, np.where(used < len(row), idle, 0))
            stride *= len(row) + 1
        return found


def _prices(problem: Problem) -> dict[str, Integers]:
    """M×D tables: the prices of tensors, and where graph inputs and outputs must be; fields of `PartLoads`."""
    arrays = problem.arrays
    out, into = device_prices(problem)
    device = np.arange(arrays.devices)[None, :]
    output = arrays.tensor_output[:, None] == 1
    home = arrays.tensor_home[:, None] == device
    tables = {
        "out": out,
        "into": into,
        "away": output & (device != arrays.host),
        "home": home,
        "wanted": output & (device == arrays.host) & ~home,
    }
    return {name: np.asarray(table, dtype=np.int64) for name, table in tables.items()}


def _equal_devices(memory: Integers, tables: list[Integers]) -> list[list[int]]:
    """Devices with the same memory and the same column in all tables, class by class."""
    classes: dict[tuple[Any, ...], list[int]] = {}
    for device, size in enumerate(memory.tolist()):
        key = (size, *(table[:, device].tobytes() for table in tables))
        classes.setdefault(key, []).append(device)
    return list(classes.values())


def _tensors_of_blocks(problem: Problem, blocks: Blocks) -> dict[str, Integers]:
    """Producer and readers of each tensor, and the tensors that touch each block; fields of `PartLoads`."""
    arrays = problem.arrays
    producer = np.where(arrays.tensor_producer >= 0, blocks.of_unit[arrays.tensor_producer], -1)
    of_unit = blocks.of_unit.tolist()
    readers = [
        sorted({of_unit[unit] for unit in arrays.consumer_units[first:last].tolist()})
        for first, last in pairwise(arrays.consumer_offsets.tolist())
    ]
    touching: list[list[int]] = [[] for _ in range(blocks.count)]
    for tensor, made in enumerate(producer.tolist()):
        for block in {made, *readers[tensor]} - {-1}:
            touching[block].append(tensor)
    reader_offsets, reader_blocks = rows(readers)
    touch_offsets, touching_tensors = rows(touching)
    return {
        "producer": producer,
        "reader_offsets": reader_offsets,
        "readers": reader_blocks,
        "touch_offsets": touch_offsets,
        "touching": touching_tensors,
    }


def _columns(table: Integers, devices: list[int]) -> Integers:
    return np.ascontiguousarray(table[:, devices].T, dtype=np.int64)
