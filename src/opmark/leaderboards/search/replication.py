"""Idle devices put to work: as replicas of the stages of a placement, where a problem allows it."""

import numpy as np

from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.single import single_device_rows


def replicated(problem: Problem, incumbent: Incumbent) -> None:
    """Give the incumbent data-parallel placements, and its best with idle devices added one by one where they help.

    Everything on one device, shared by the fastest 2, 3, … (data parallelism); then, greedily, the idle device and the
    stage that save most.
    """
    groups = groups_of(problem)
    unable = np.where(groups.allowed, 0.0, np.inf).sum(axis=0)
    work = np.where(groups.allowed, groups.run_ns, 0).sum(axis=0) + unable
    order = [number for number in np.argsort(work, kind="stable").tolist() if np.isfinite(work[number])]
    rows = single_device_rows(groups)
    for count in range(2, len(order) + 1):
        if incumbent.left_s <= 0:
            return
        device = groups.spread(rows[order[0]])
        incumbent.consider(Placement(device=device, replicas={order[0]: order[1:count]}))
    while incumbent.best is not None and incumbent.left_s > 0:
        best = incumbent.best
        used = {*best.device.tolist(), *(other for row in best.replicas.values() for other in row)}
        improved = False
        for idle in range(problem.arrays.devices):
            for stage in sorted(set(best.device.tolist())):
                able = (problem.arrays.run_ns[best.device == stage, idle] >= 0).all()
                if idle in used or not able or incumbent.left_s <= 0:
                    continue
                row = [*best.replicas.get(stage, ()), idle]
                improved |= incumbent.consider(
                    Placement(device=best.device, priority=best.priority, replicas={**best.replicas, stage: row})
                )
        if not improved:
            return
