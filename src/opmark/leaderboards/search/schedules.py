"""Schedules within an annealing run, compiled: a lower bound, the simulation, and the memory of full pipelines.

Imported lazily. The bound says before the simulation that a candidate cannot pass, as in branch and bound.
"""

from typing import NamedTuple

import numpy as np

from opmark.leaderboards.problem.arrays import EventRules, ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.packing import Room
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.sweeps import returning_rows
from opmark.leaderboards.problem.tables import compiled, internal, uncounted
from opmark.leaderboards.search.lists.travel import travel_ns
from opmark.leaderboards.simulator import engine
from opmark.leaderboards.simulator.events import room_for
from opmark.leaderboards.simulator.loads import stash_rows

# No tensor of a bound takes longer than 18 minutes, so that sums over a path stay below 2^63.
LONGEST_NS = 2**40
LAST = np.iinfo(np.int64).max


class Schedules(NamedTuple):
    """The tables that a simulation reads, and room for its schedule.

    `run_ns` is U×D, `travel_ns` M×D×D on empty links; `tails_ns` is the least time from each unit's end to the end of
    the pass. Devices are free to choose: `no_order` is empty rows. `bounded` is 0 where the rules break the bound.
    `forward` is 1 for forward units. A full pipeline keeps at most `micro_batches` samples (0: all), and `alone` is
    one replica per device. `end`, `work`, `head` and `tail` are the bound's.
    """

    data: Integers
    starts: Integers
    contention: int
    bounded: int
    topological: Integers
    run_ns: Integers
    travel_ns: Integers
    tails_ns: Integers
    input_offsets: Integers
    input_tensors: Integers
    tensor_producer: Integers
    tensor_home: Integers
    device_slots: Integers
    no_order: Integers
    forward: Integers
    micro_batches: int
    alone: Integers
    room: Room
    end: Integers
    work: Integers
    head: Integers
    tail: Integers


def schedules_of(problem: Problem, rules: EventRules, *, needed: bool) -> Schedules:
    """The tables of a problem under `rules`; without a bound and its large tables where they are not `needed`."""
    arrays: ProblemArrays = problem.arrays.under(rules)
    run = arrays.run_ns
    fastest = np.where(run < 0, LAST, run).min(axis=1)
    travel = np.minimum(travel_ns(problem), LONGEST_NS) if needed else np.zeros((0, 1, 1), dtype=np.int64)
    own = {name: getattr(arrays, name) for name in Schedules._fields if name in ProblemArrays.__dataclass_fields__}
    return Schedules(
        **own,
        data=arrays.packed[0],
        starts=arrays.packed[1],
        contention=int(rules.contention),
        bounded=int(needed and not rules.multicast),
        run_ns=np.maximum(run, 0),
        travel_ns=travel,
        tails_ns=arrays.default_priority - fastest,
        no_order=np.zeros(arrays.devices + 1, dtype=np.int64),
        room=room_for(arrays),
        forward=np.array([unit.phase == "forward" for unit in problem.units], dtype=np.int64),
        micro_batches=problem.micro_batches,
        alone=np.ones(arrays.devices, dtype=np.int64),
        end=np.zeros(arrays.units, dtype=np.int64),
        work=np.zeros(arrays.devices, dtype=np.int64),
        head=np.zeros(arrays.devices, dtype=np.int64),
        tail=np.zeros(arrays.devices, dtype=np.int64),
    )


@uncounted
def least_ns(device, tables):  # type: ignore[no-untyped-def]
    """A lower bound on the latency: the longest path, and per device its work between the least head and tail."""
    # Local names: reading a field of a tuple within a loop counts references each time.
    end, work, head, tail = tables.end, tables.work, tables.head, tables.tail
    inputs, input_tensors, producer, home = (
        tables.input_offsets,
        tables.input_tensors,
        tables.tensor_producer,
        tables.tensor_home,
    )
    topological, run, travel, tails = tables.topological, tables.run_ns, tables.travel_ns, tables.tails_ns
    work[:] = 0
    head[:] = LAST
    tail[:] = LAST
    longest = 0
    for k in range(len(topological)):
        u = topological[k]
        d = device[u]
        ready = 0
        for j in range(inputs[u], inputs[u + 1]):
            m = input_tensors[j]
            maker = producer[m]
            source = home[m] if maker < 0 else device[maker]
            there = 0 if maker < 0 else end[maker]
            if source != d:
                there += travel[m, source, d]
            ready = max(ready, there)
        spent = run[u, d]
        end[u] = ready + spent
        longest = max(longest, end[u] + tails[u])
        if spent > 0:
            work[d] += spent
            head[d] = min(head[d], ready)
            tail[d] = min(tail[d], tails[u])
    slots = tables.device_slots
    for d in range(len(work)):
        if work[d] > 0:
            longest = max(longest, head[d] + -(-work[d] // slots[d]) + tail[d])
    return longest


@compiled
def simulated_ns(device, rank, tables):  # type: ignore[no-untyped-def]
    """The latency of a placement, `engine.INVALID` where it cannot run; `tables.room` holds its schedule."""
    data, starts, room, contention = tables.data, tables.starts, tables.room, tables.contention
    order_offsets, order_units = tables.no_order, tables.no_order[:0]
    status = engine.run(data, starts, device, rank, order_offsets, order_units, contention, room)
    return room.info[0] if status == engine.FINISHED else engine.INVALID


@compiled(no_cpython_wrapper=True)
def returns(device, tables):  # type: ignore[no-untyped-def]
    """True where a path over forward units leaves a device and returns to it."""
    return returning_rows(tables.data, tables.starts, tables.topological, tables.forward, device)[0] == 1


@internal
def excess_of(held, memory):  # type: ignore[no-untyped-def]
    """Bytes beyond each device's memory, as shares of it, summed."""
    total = 0.0
    for d in range(len(memory)):
        if held[d] > memory[d]:
            total += (held[d] - memory[d]) / memory[d]
    return total


@compiled(no_cpython_wrapper=True)
def stashed_excess(device, memory, tables):  # type: ignore[no-untyped-def]
    """The excess of a full pipeline, in which every sample in flight keeps its forward tensors."""
    peak = stash_rows(tables.data, tables.starts, device, tables.alone, tables.forward, tables.micro_batches)
    return excess_of(peak, memory)
