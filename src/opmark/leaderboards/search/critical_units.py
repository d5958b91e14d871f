"""Which units decide what a placement costs: those on the chain that ends last, or those of the busiest server."""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.steady_state import server_loads


def critical_units(problem: Problem, placement: Placement, schedule: Schedule) -> Integers:
    """By number; more than strictly needed where several could be meant, never none."""
    if problem.objective == "throughput":
        return _of_the_busiest(problem, placement)
    return _of_the_last_chain(problem, placement, schedule)


def _of_the_busiest(problem: Problem, placement: Placement) -> Integers:
    """The units of the busiest device, or those that make or read what passes the busiest port."""
    arrays = problem.arrays
    loads = server_loads(problem, placement, profile_named(problem.profile))
    device = loads.device_ns.index(max(loads.device_ns))
    if not loads.port_ns or max(loads.port_ns) <= loads.device_ns[device]:
        return np.flatnonzero(placement.device == device)
    lengths = np.diff(arrays.consumer_offsets)
    tensor = np.repeat(np.arange(len(lengths)), lengths)
    maker = arrays.tensor_producer[tensor]
    source = np.where(maker >= 0, placement.device[maker], arrays.tensor_home[tensor])
    crossing = source != placement.device[arrays.consumer_units]
    ends = np.concatenate([maker[crossing], arrays.consumer_units[crossing]])
    found: Integers = np.unique(ends[ends >= 0])
    return found if len(found) else np.arange(arrays.units)


def _of_the_last_chain(problem: Problem, placement: Placement, schedule: Schedule) -> Integers:
    """Back from what ends last: to the input that came last, or to what held the device until then."""
    arrays = problem.arrays
    start, end = schedule.unit_start_ns, schedule.unit_end_ns
    place = placement.device
    # units that end when another starts, per device
    ending: dict[tuple[int, int], int] = {}
    for unit in range(arrays.units):
        if end[unit] > start[unit]:
            ending[int(place[unit]), int(end[unit])] = unit
    arrival: dict[tuple[int, int], int] = {}
    offsets = schedule.hop_offsets.tolist()
    for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
        if offsets[transfer + 1] > offsets[transfer]:
            key = tensor, int(schedule.transfer_destination[transfer])
            arrival[key] = int(schedule.hop_end_ns[offsets[transfer + 1] - 1])
    unit = _last(problem, placement, schedule, arrival)
    chain = [unit]
    while len(chain) <= arrays.units:
        begun, where = int(start[unit]), int(place[unit])
        before = -1
        for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
            maker = int(arrays.tensor_producer[tensor])
            if maker >= 0 and arrival.get((tensor, where), int(end[maker])) == begun:
                before = maker
        if before < 0:
            before = ending.get((where, begun), -1)
        if before < 0:
            break
        unit = before
        chain.append(unit)
    return np.unique(chain)


def _last(problem: Problem, placement: Placement, schedule: Schedule, arrival: dict[tuple[int, int], int]) -> int:
    arrays = problem.arrays
    best, unit = int(schedule.unit_end_ns.max()), int(schedule.unit_end_ns.argmax())
    for tensor in np.flatnonzero(arrays.tensor_output == 1).tolist():
        maker = int(arrays.tensor_producer[tensor])
        time = arrival.get((tensor, arrays.host), -1)
        if maker >= 0 and placement.device[maker] != arrays.host and time >= best:
            best, unit = time, maker
    return unit
