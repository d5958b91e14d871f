"""Replicas on idle devices, for problems that allow replication."""

import numpy as np

from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of, whole_graph_ns
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.single import single_device_rows


def replicated(problem: Problem, incumbent: Incumbent) -> None:
    """Offer placements with replicas to the incumbent.

    First data parallelism: everything on the fastest device, with replicas on the next 1, 2, … devices. Then, greedily,
    replicas of the stages of the incumbent's best, on one idle device at a time.
    """
    groups = groups_of(problem)
    work = whole_graph_ns(groups.run_ns)
    able = [device for device in np.argsort(work, kind="stable").tolist() if np.isfinite(work[device])]
    rows = single_device_rows(groups)
    for count in range(2, len(able) + 1):
        if incumbent.left_s <= 0:
            return
        device = groups.spread(rows[able[0]])
        incumbent.consider(Placement(device=device, replicas={able[0]: able[1:count]}))
    improved = True
    while improved and incumbent.left_s > 0:
        improved = _add_replica(problem, incumbent)


def _add_replica(problem: Problem, incumbent: Incumbent) -> bool:
    """Offer the best placement with every idle device as a replica of every stage; true if one was better."""
    best = incumbent.best
    if best is None:
        return False
    used = {*best.device.tolist(), *(other for row in best.replicas.values() for other in row)}
    improved = False
    for idle in sorted(set(range(problem.arrays.devices)) - used):
        for stage in sorted(set(best.device.tolist())):
            able = (problem.arrays.run_ns[best.device == stage, idle] >= 0).all()
            if not able or incumbent.left_s <= 0:
                continue
            row = [*best.replicas.get(stage, ()), idle]
            improved |= incumbent.consider(
                Placement(device=best.device, priority=best.priority, replicas={**best.replicas, stage: row})
            )
    return improved
