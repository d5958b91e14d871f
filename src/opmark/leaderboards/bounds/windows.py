"""The earliest start of every unit on every device, and the least time that must follow its end there.

Longest paths over devices: before a unit runs on a device, each of its inputs was made on some device and travelled
from there, and all units before it were done by all devices together. Carlier, "The one-machine sequencing problem",
EJOR 11(1), 1982, calls the two numbers head and tail.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.ancestors import ancestors_of
from opmark.leaderboards.bounds.prices import Floats, least_work_ns, price_rows
from opmark.leaderboards.bounds.relaxation import NEVER_NS
from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of

# Units that a limit excludes from devices lengthen paths, which excludes more; so many rounds at most.
ROUNDS_AT_MOST = 8
# Sums of floating-point numbers are this share too large at most.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """U×D tables in ns, `NEVER_NS` where a unit cannot run: the earliest start, and the least time after the end."""

    head_ns: Integers
    tail_ns: Integers

    def least_ns(self, run_ns: Integers) -> int:
        """The longest path through any unit, on the device where that path is shortest."""
        able = run_ns >= 0
        total = np.where(able, _sum(_sum(self.head_ns, np.maximum(run_ns, 0)), self.tail_ns), NEVER_NS)
        return int(total.min(axis=1).max(initial=0))


def hops_ns(arrays: ProblemArrays, tensor: int, route: Sequence[int], ends: tuple[int, int]) -> list[int]:
    """The ns of each hop of a tensor's transfer along `route`; the first and the last one pay for the layout."""
    links, types = int(arrays.sizes.links), int(arrays.sizes.types)
    size_class = int(arrays.tensor_size_class[tensor])
    found = [int(arrays.hop_ns[size_class * links + link]) for link in route]
    if found:
        found[0] += int(arrays.boundary_ns[tensor * types + arrays.device_type[ends[0]]])
        found[-1] += int(arrays.boundary_ns[tensor * types + arrays.device_type[ends[1]]])
    return found


def windows_of(problem: Problem, *, limit_ns: int | None = None) -> Windows:
    """Heads and tails of all units, for latency under opsim 1; with a limit those of schedules that last no longer.

    A device on which a unit would exceed the limit has `NEVER_NS`, and so has it for all units of the same class.
    """
    groups = groups_of(problem)
    sweep = _Sweep(problem)
    run = np.where(problem.arrays.run_ns < 0, NEVER_NS, problem.arrays.run_ns)
    for _ in range(ROUNDS_AT_MOST):
        head, tail = sweep.forward(run), sweep.backward(run)
        if limit_ns is None:
            break
        late = _sum(_sum(head, run), tail) > limit_ns
        excluded = np.zeros((groups.count, run.shape[1]), dtype=bool)
        np.logical_or.at(excluded, groups.of_unit, late)
        now_late = excluded[groups.of_unit] & (run < NEVER_NS)
        if not now_late.any():
            break
        run = np.where(now_late, NEVER_NS, run)
    never = (run >= NEVER_NS) & (limit_ns is not None)
    return Windows(head_ns=np.where(never, NEVER_NS, head), tail_ns=np.where(never, NEVER_NS, tail))


class _Sweep:
    """Passes over the graph of one problem, for given times of its units."""

    def __init__(self, problem: Problem) -> None:
        self.arrays = problem.arrays
        self.of_unit = groups_of(problem).of_unit
        self.travel = _travel_ns(self.arrays)
        self.before = ancestors_of(self.arrays)
        self.together = np.where(np.eye(self.arrays.devices, dtype=bool), 0, NEVER_NS)
        phases = np.array([unit.phase for unit in problem.units])
        parts = np.array([phases != "", phases == "forward", phases != "forward"])
        self.prices = price_rows(self.arrays.run_ns, self.arrays.device_slots, parts)

    def forward(self, run: Integers) -> Integers:
        """U×D heads."""
        arrays = self.arrays
        head = np.zeros_like(run)
        work = self._work(run)
        for unit in arrays.topological.tolist():
            for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
                maker = int(arrays.tensor_producer[tensor])
                if maker < 0:
                    arrived = self.travel[tensor, int(arrays.tensor_home[tensor])]
                else:
                    ended = _sum(head[maker], run[maker])
                    arrived = _sum(ended[:, None], self._ways(tensor, maker, unit)).min(axis=0)
                head[unit] = np.maximum(head[unit], arrived)
            head[unit] = np.maximum(head[unit], _all_done_ns(work, head, self.before[unit]))
        return head

    def backward(self, run: Integers) -> Integers:
        """U×D tails."""
        arrays = self.arrays
        tail = np.zeros_like(run)
        work = self._work(run)
        for unit in reversed(arrays.topological.tolist()):
            for tensor in arrays.output_tensors[arrays.output_offsets[unit] : arrays.output_offsets[unit + 1]].tolist():
                if arrays.tensor_output[tensor]:
                    tail[unit] = np.maximum(tail[unit], self.travel[tensor][:, arrays.host])
                first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
                for reader in arrays.consumer_units[first:last].tolist():
                    follows = _sum(run[reader], tail[reader])
                    left = _sum(self._ways(tensor, unit, reader), follows[None, :]).min(axis=1)
                    tail[unit] = np.maximum(tail[unit], left)
            tail[unit] = np.maximum(tail[unit], _all_done_ns(work, tail, self.before[:, unit]))
        return tail

    def _ways(self, tensor: int, maker: int, reader: int) -> Integers:
        """D×D ns from a device of the maker to one of the reader."""
        apart: Integers = self.together if self.of_unit[maker] == self.of_unit[reader] else self.travel[tensor]
        return apart

    def _work(self, run: Integers) -> Floats:
        return least_work_ns(np.where(run >= NEVER_NS, -1, run), self.prices)


def _all_done_ns(work: Floats, head: Integers, units: npt.NDArray[np.bool_]) -> int:
    """The time by which all slots together can have done some units, none of which starts before its head.

    For the units whose heads are at least h, this is h and their work; the worst h counts. `work` is P×U.
    """
    chosen = np.flatnonzero(units)
    if not len(chosen):
        return 0
    earliest = head[chosen].min(axis=1)
    order = np.argsort(-earliest, kind="stable")
    if earliest[order[0]] >= NEVER_NS:
        return NEVER_NS
    done = np.cumsum(work[:, chosen[order]], axis=1) + earliest[order]
    return int(done.max() * (1 - ROUNDING))


def _sum(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Integers:
    """The sum, which stays at `NEVER_NS` where a part is."""
    found: Integers = np.where((one >= NEVER_NS) | (other >= NEVER_NS), NEVER_NS, one + other)
    return found


def _travel_ns(arrays: ProblemArrays) -> Integers:
    """T×D×D: the ns of a transfer on empty links, 0 within a device, `NEVER_NS` without a route."""
    tensors, devices = len(arrays.tensor_bytes), arrays.devices
    found = np.full((tensors, devices, devices), NEVER_NS, dtype=np.int64)
    for here in range(devices):
        found[:, here, here] = 0
        for there in range(devices):
            number = here * devices + there
            route = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]].tolist()
            if here != there and route:
                found[:, here, there] = [
                    sum(hops_ns(arrays, tensor, route, (here, there))) for tensor in range(tensors)
                ]
    return found
