"""The earliest start of every unit on every device, and the least time that must follow its end there.

Longest paths over devices: before a unit runs on a device, each of its inputs was made on some device and travelled
from there. Carlier, "The one-machine sequencing problem", EJOR 11(1), 1982, calls the two numbers head and tail.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.relaxation import NEVER_NS
from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """U×D tables in ns, `NEVER_NS` where a unit cannot run: the earliest start, and the least time after the end."""

    head_ns: Integers
    tail_ns: Integers

    def least_ns(self, run_ns: Integers) -> int:
        """The longest path through any unit, on the device where that path is shortest."""
        able = run_ns >= 0
        total = np.where(able, self.head_ns + np.maximum(run_ns, 0) + self.tail_ns, NEVER_NS)
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


def windows_of(problem: Problem) -> Windows:
    """Heads and tails of all units, for latency under opsim 1."""
    arrays, of_unit = problem.arrays, groups_of(problem).of_unit
    travel = _travel_ns(arrays)
    run = np.where(arrays.run_ns < 0, NEVER_NS, arrays.run_ns)
    head = np.zeros_like(run)
    tail = np.zeros_like(run)
    together = np.where(np.eye(arrays.devices, dtype=bool), 0, NEVER_NS)
    for unit in arrays.topological.tolist():
        for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
            maker = int(arrays.tensor_producer[tensor])
            if maker < 0:
                arrived = travel[tensor, int(arrays.tensor_home[tensor])]
            else:
                ways = together if of_unit[maker] == of_unit[unit] else travel[tensor]
                ended = _sum(head[maker], run[maker])
                arrived = _sum(ended[:, None], ways).min(axis=0)
            head[unit] = np.maximum(head[unit], arrived)
    for unit in reversed(arrays.topological.tolist()):
        for tensor in arrays.output_tensors[arrays.output_offsets[unit] : arrays.output_offsets[unit + 1]].tolist():
            if arrays.tensor_output[tensor]:
                tail[unit] = np.maximum(tail[unit], travel[tensor][:, arrays.host])
            first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
            for reader in arrays.consumer_units[first:last].tolist():
                ways = together if of_unit[reader] == of_unit[unit] else travel[tensor]
                follows = _sum(run[reader], tail[reader])
                tail[unit] = np.maximum(tail[unit], _sum(ways, follows[None, :]).min(axis=1))
    return Windows(head_ns=head, tail_ns=tail)


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
