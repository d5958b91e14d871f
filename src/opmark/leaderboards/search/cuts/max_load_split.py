"""The cheapest contiguous split by maximum load, over all ideals or along one order.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5: f[ideal]
[devices used] = min over smaller ideals of max(f[smaller][one device less], load of the difference).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers, integers, rows
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks
from opmark.leaderboards.search.cuts.ideals import Lattice
from opmark.leaderboards.search.cuts.stepping import run_in_slices
from opmark.leaderboards.simulator.direct_models import device_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A device per block, and the largest load of a device in ns."""

    device: Integers
    load_ns: int


class Splitter:
    """Prepares a problem's loads once; `solve` may then be asked with several lattices.

    Devices that cannot be told apart form a class, so that only their number matters. `roomy` counts weights alone
    against a device's memory, else everything its blocks hold.
    """

    def __init__(self, problem: Problem, blocks: Blocks, *, roomy: bool) -> None:
        arrays = problem.arrays
        self.blocks = blocks
        self._size = blocks.weight_bytes if roomy else blocks.size_bytes
        out, into = device_prices(problem)
        numbers = np.arange(arrays.devices)
        home = arrays.tensor_home[:, None] == numbers[None, :]
        wanted = (arrays.tensor_output[:, None] == 1) & (numbers[None, :] == arrays.host) & ~home
        away = (arrays.tensor_output[:, None] == 1) & (numbers[None, :] != arrays.host)
        self._classes: list[list[int]] = []
        known: dict[tuple[Any, ...], int] = {}
        for device in range(arrays.devices):
            columns = (table[:, device].tobytes() for table in (blocks.run_ns, out, into, away, home, wanted))
            key = (int(arrays.device_memory_bytes[device]), *columns)
            if key not in known:
                known[key] = len(self._classes)
                self._classes.append([])
            self._classes[known[key]].append(device)
        first = [row[0] for row in self._classes]
        maker = np.where(arrays.tensor_producer >= 0, blocks.of_unit[arrays.tensor_producer], -1)
        offsets = arrays.consumer_offsets.tolist()
        of_unit = blocks.of_unit.tolist()
        readers = [
            sorted({of_unit[unit] for unit in arrays.consumer_units[a:b].tolist()}) for a, b in pairwise(offsets)
        ]
        touch: list[list[int]] = [[] for _ in range(blocks.count)]
        for tensor, made in enumerate(maker.tolist()):
            for block in {made, *readers[tensor]} - {-1}:
                touch[block].append(tensor)
        leaves = home & (away | (np.diff(arrays.consumer_offsets) > 0)[:, None])
        self._idle_ns = (np.where(leaves, out, 0) + np.where(wanted, into, 0)).sum(axis=0)[first]
        self._loads = (
            _columns(blocks.run_ns, first),
            self._size,
            arrays.device_memory_bytes[first],
            integers(len(row) for row in self._classes),
            (*(_columns(table, first) for table in (out, into, away, home, wanted)), self._idle_ns),
            maker,
            rows(readers),
            rows(touch),
        )

    @property
    def states(self) -> int:
        """How many numbers of used devices there are per ideal."""
        found = 1
        for row in self._classes:
            found *= len(row) + 1
        return found

    def solve(self, lattice: Lattice, bound_ns: int, deadline: float = math.inf) -> Split | None:
        """The split of least maximum load not above `bound_ns` along the lattice.

        None where there is none, or `deadline` (as `time.monotonic`) came first.
        """
        from opmark.leaderboards.search.cuts import ideal_programs as partition_dp

        compiled: Any = partition_dp.least_max_load
        count = lattice.count
        rows_of = (lattice.bits, lattice.offsets, lattice.child, lattice.added)
        cost = np.full((count, self.states), partition_dp.NEVER, dtype=np.int64)
        parent, chosen = np.full_like(cost, -1), np.full_like(cost, -1)
        cost[0, 0] = 0
        room = (np.full(count, -1, dtype=np.int64), *(np.empty(count, dtype=np.int64) for _ in range(4)))

        def grow(steps: int, at: Integers) -> None:
            compiled(rows_of, *self._loads, bound_ns, steps, (cost, parent, chosen), room, at)

        if not run_in_slices(grow, count, deadline):
            return None
        final = np.maximum(cost[-1], self._unused_ns())
        state = int(final.argmin())
        if final[state] > bound_ns:
            return None
        load = int(final[state])
        device = np.zeros(self.blocks.count, dtype=np.int64)
        unused = [list(row) for row in self._classes]
        strides = np.cumprod([1, *(len(row) + 1 for row in self._classes)]).tolist()
        ideal = count - 1
        while ideal > 0:
            kind, smaller = int(chosen[ideal, state]), int(parent[ideal, state])
            number = unused[kind].pop()
            gained = lattice.bits[ideal] & ~lattice.bits[smaller]
            for block in range(self.blocks.count):
                if gained[block // 62] >> block % 62 & 1:
                    device[block] = number
            ideal, state = smaller, state - strides[kind]
        return Split(device=device, load_ns=load)

    def _unused_ns(self) -> Integers:
        """Per state, what the devices that it leaves without units pay at most."""
        found = np.zeros(self.states, dtype=np.int64)
        stride = 1
        for row, idle in zip(self._classes, self._idle_ns.tolist(), strict=True):
            used = np.arange(self.states) // stride % (len(row) + 1)
            found = np.maximum(found, np.where(used < len(row), idle, 0))
            stride *= len(row) + 1
        return found


def _columns(table: Integers, devices: list[int]) -> Integers:
    return np.ascontiguousarray(table[:, devices].T, dtype=np.int64)
