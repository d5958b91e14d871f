"""Memory of the devices: over time from a finished schedule, and at its peak in a full training pipeline.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.3: every sample
in flight keeps what its backward pass will read; a stage keeps as many samples as there are workers from it to the end,
over its own replicas.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import Schedule

Steps = list[tuple[int, int]]


def memory_steps(problem: Problem, placement: Placement, schedule: Schedule) -> list[Steps]:
    """Per device, (time in ns, bytes from then on), starting at 0 with the weights; by liveness.

    If the schedule says when inputs arrive, outputs leave the host as soon as nothing there needs them.
    """
    device = placement.device.tolist()
    start, end = schedule.unit_start_ns.tolist(), schedule.unit_end_ns.tolist()
    names = [item.name for item in problem.cluster.devices]
    host = names.index(problem.host)
    forever = schedule.latency_ns + 1
    leave = schedule.release_ns is not None
    release = [0] * len(problem.tensors) if schedule.release_ns is None else schedule.release_ns.tolist()
    changes: list[list[tuple[int, int]]] = [[] for _ in names]
    outgoing: dict[int, list[tuple[int, int, int]]] = {}
    offsets = schedule.hop_offsets.tolist()
    first, last = schedule.hop_start_ns.tolist(), schedule.hop_end_ns.tolist()
    destinations = schedule.transfer_destination.tolist()
    for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
        if offsets[transfer] < offsets[transfer + 1]:  # else it travels with the tensor's first transfer
            begun, done = first[offsets[transfer]], last[offsets[transfer + 1] - 1]
        outgoing.setdefault(tensor, []).append((destinations[transfer], begun, done))
    producers, readers_of = _ends(problem)
    for index, tensor in enumerate(problem.tensors):
        readers, producer = readers_of[index], producers[index]
        source = device[producer] if producer >= 0 else names.index(tensor.home or problem.host)
        sent = outgoing.get(index, [])
        births = [
            (source, start[producer] if producer >= 0 else release[index]),
            *((to, begun) for to, begun, _ in sent),
        ]
        for where, born in births:
            uses = [end[reader] for reader in readers if device[reader] == where]
            if where == source:
                uses += [done for _, _, done in sent] + ([end[producer]] if producer >= 0 else [])
            if where != source and leave:
                uses += [done for to, _, done in sent if to == where]
            died = forever if tensor.output and where == host and not leave else max(uses, default=born)
            changes[where] += [(born, tensor.size_bytes), (died, -tensor.size_bytes)]
    held: list[set[str]] = [set() for _ in names]
    for index, unit in enumerate(problem.units):
        held[device[index]].update(unit.weights)
        changes[device[index]] += [(start[index], unit.workspace_bytes), (end[index], -unit.workspace_bytes)]
    weights = [sum(problem.held_bytes[name] for name in row) for row in held]
    return [_steps(row, base) for row, base in zip(changes, weights, strict=True)]


def _ends(problem: Problem) -> tuple[list[int], list[list[int]]]:
    """The producer of each tensor (-1: none) and its consumers, by numbers, worked out once."""
    known = problem.worked_out.get("tensor_ends")
    if known is None:
        number = {unit.name: index for index, unit in enumerate(problem.units)}
        producers = [number.get(tensor.producer, -1) for tensor in problem.tensors]
        known = producers, [[number[name] for name in tensor.consumers] for tensor in problem.tensors]
        problem.worked_out["tensor_ends"] = known
    producers, readers = known
    return producers, readers


def _steps(changes: list[tuple[int, int]], base: int) -> Steps:
    """Running totals, one per instant: what is freed and taken at one instant counts together."""
    by_time: dict[int, int] = {0: base}
    for time, size in changes:
        by_time[time] = by_time.get(time, 0) + size
    total = 0
    steps: Steps = []
    for time in sorted(by_time):
        total += by_time[time]
        if not steps or total != steps[-1][1]:
            steps.append((time, total))
    return steps


def stashed_rows(problem: Problem, devices: Integers) -> Integers:
    """Peak bytes per row of devices (rows x units) and device, without replicas."""
    return _rows(problem, devices, np.ones(problem.arrays.devices, dtype=np.int64))


def stashed_bytes(problem: Problem, placement: Placement) -> Integers:
    """Peak bytes per device of one placement; a replica holds what its stage holds."""
    replicas = np.ones(problem.arrays.devices, dtype=np.int64)
    for number, row in placement.replicas.items():
        replicas[number] += len(row)
    peak = _rows(problem, placement.device[None, :], replicas)[0]
    return with_replicas(peak, placement)


def with_replicas(peak: Integers, placement: Placement) -> Integers:
    """The peaks with every replica holding what its stage holds."""
    for number, row in placement.replicas.items():
        for other in row:
            peak[other] += peak[number]
    return peak


def _rows(problem: Problem, devices: Integers, replicas: Integers) -> Integers:
    from opmark.leaderboards.simulator.loads import stash_rows

    forward = np.array([unit.phase == "forward" for unit in problem.units], dtype=np.int64)
    flat = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1)
    found: Integers = stash_rows(*problem.arrays.packed, flat, replicas, forward, problem.micro_batches)
    return found.reshape(-1, problem.arrays.devices)
