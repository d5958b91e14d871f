"""Optimal pipeline stages with replicas, over all ideals or along one order.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.1: A[j][m], the
time of the slowest stage of the best pipeline of layers 1 to j on m devices, is the minimum over the last stage, from
layer i on m' replicas, of max(A[i - 1][m - m'], T(i to j, m')). Here layers are blocks, and their prefixes are ideals.
"""

import numpy as np

from opmark.core.units import NS_PER_S
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks
from opmark.leaderboards.search.cuts.ideals import Ideals, run_in_slices
from opmark.leaderboards.search.groups import whole_graph_ns
from opmark.leaderboards.simulator.published.pipedream_stage import slowest_bandwidth


def replicated_stages(
    problem: Problem, blocks: Blocks, ideals: Ideals, size_bytes: Integers, deadline: float
) -> Placement | None:
    """The pipeline whose slowest stage takes the least time; `size_bytes` is the memory that each block needs.

    Devices are used from the fastest to the slowest. None if nothing fits, or at the `deadline` (as `time.monotonic`).
    """
    from opmark.leaderboards.search.cuts.ideal_programs import StageCosts, StagePrograms, stages_and_replicas

    arrays = problem.arrays
    fastest_first = np.argsort(whole_graph_ns(blocks.run_ns), kind="stable")
    replicate = problem.replication
    costs = StageCosts(
        run=np.ascontiguousarray(blocks.run_ns[:, fastest_first].T, dtype=np.float64),
        weight=blocks.weight_bytes.astype(np.float64),
        size=size_bytes.astype(np.float64),
        memory=arrays.device_memory_bytes[fastest_first].astype(np.float64),
        ns_per_byte=_ns_per_byte(problem) if replicate and arrays.devices > 1 else 0.0,
        replicate=replicate,
    )
    count, shape = ideals.number, (ideals.number, arrays.devices + 1)
    tables = StagePrograms(
        cost=np.full(shape, np.inf),
        parent=np.full(shape, -1, dtype=np.int64),
        replicas=np.zeros(shape, dtype=np.int64),
        mark=np.full(count, -1, dtype=np.int64),
        queue=np.empty(count, dtype=np.int64),
        compute=np.zeros((count, arrays.devices)),
        weight=np.zeros(count),
        held=np.zeros(count),
        position=np.zeros(4, dtype=np.int64),
    )
    tables.cost[0, 0] = 0
    solved = run_in_slices(
        lambda steps: stages_and_replicas(steps, ideals, costs, tables), tables.position, count, deadline
    )
    if not solved or not np.isfinite(tables.cost[-1, -1]):
        return None
    device, replicas = _stages(ideals, tables.parent, tables.replicas, fastest_first.tolist())
    return Placement(device=device[blocks.of_unit], replicas=replicas)


def _ns_per_byte(problem: Problem) -> float:
    return NS_PER_S / float(slowest_bandwidth(problem, list(range(problem.arrays.devices))))


def _stages(
    ideals: Ideals, parent: Integers, replicas: Integers, devices: list[int]
) -> tuple[Integers, dict[int, list[int]]]:
    """A device per block and the replicas of devices, read back from the whole graph to the empty ideal."""
    ideal, used = ideals.number - 1, len(devices)
    device = np.zeros(len(ideals.difference(ideal, 0)), dtype=np.int64)
    copies: dict[int, list[int]] = {}
    while ideal > 0:
        smaller, members = int(parent[ideal, used]), int(replicas[ideal, used])
        if members:
            primary, *others = devices[used - members : used]
            device[ideals.difference(ideal, smaller)] = primary
            if others:
                copies[primary] = others
        ideal, used = smaller, used - max(1, members)
    return device, copies
