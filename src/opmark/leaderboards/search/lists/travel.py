"""Travel times of tensors over links that carry nothing else."""

from collections.abc import Sequence

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem

# The travel time between devices without a route.
NEVER_NS = 2**50


def travel_ns(problem: Problem, tensors: Integers | None = None, *, to: Sequence[int] | None = None) -> Integers:
    """M×D×D: the travel time of each tensor (or of the given ones) in ns; `NEVER_NS` without a route.

    With `to`, only the columns of these destinations are computed; the others are 0.
    """
    arrays = problem.arrays
    count, devices = len(arrays.tensor_bytes), arrays.devices
    links = max(1, len(arrays.link_port))
    chosen = slice(None) if tensors is None else tensors
    hops = arrays.hop_ns.reshape(-1, links)[arrays.tensor_size_class[chosen]] if len(arrays.link_port) else None
    layout = arrays.boundary_ns.reshape(count, arrays.sizes[3])[chosen][:, arrays.device_type]
    found = np.zeros((len(layout), devices, devices), dtype=np.int64)
    for source in range(devices):
        for destination in range(devices) if to is None else to:
            pair = source * devices + destination
            route = arrays.route_links[arrays.route_offsets[pair] : arrays.route_offsets[pair + 1]]
            if source != destination:
                found[:, source, destination] = NEVER_NS if hops is None or not len(route) else hops[:, route].sum(1)
                if len(route):
                    found[:, source, destination] += layout[:, source] + layout[:, destination]
    return found


def mean_travel_ns(problem: Problem) -> Integers:
    """Per tensor, the mean travel time over all ordered pairs of devices with a route, in ns."""
    arrays = problem.arrays
    joined = np.diff(arrays.route_offsets).reshape(arrays.devices, arrays.devices) > 0
    np.fill_diagonal(joined, val=False)
    # All pairs at once: a link's share of the sum is its hop time, times the number of routes that use the link.
    pair = np.repeat(joined.reshape(-1), np.diff(arrays.route_offsets))
    links = max(1, len(arrays.link_port))
    uses = np.bincount(arrays.route_links[pair], minlength=links)
    total = (arrays.hop_ns.reshape(-1, links) @ uses)[arrays.tensor_size_class] if pair.any() else 0
    ends = np.bincount(arrays.device_type, weights=joined.sum(axis=0) + joined.sum(axis=1), minlength=arrays.sizes[3])
    total = total + arrays.boundary_ns.reshape(-1, int(arrays.sizes[3])) @ ends.astype(np.int64)
    mean: Integers = np.rint(total / max(1, int(joined.sum()))).astype(np.int64)
    return mean


def return_ns(problem: Problem) -> Integers:
    """U×D: the time that a unit's graph outputs need from each device to the host, in ns."""
    arrays = problem.arrays
    found = np.zeros((arrays.units, arrays.devices), dtype=np.int64)
    outputs = np.flatnonzero((arrays.tensor_output == 1) & (arrays.tensor_producer >= 0))
    if not len(outputs):
        return found
    host = arrays.host
    np.maximum.at(found, arrays.tensor_producer[outputs], travel_ns(problem, outputs, to=(host,))[:, :, host])
    return found
