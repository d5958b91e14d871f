"""DUET: subgraphs by branches, profiled on every device, placed greedily, then corrected by the latency of the whole.

Zhang et al., "DUET: A compiler-runtime subgraph scheduling approach for tensor programs on a coupled CPU-GPU
architecture", IPDPS 2021: section IV-B partitions the graph into phases, section IV-C profiles subgraphs, section IV-D
schedules them by greedy correction. A profile is the sum of predicted times here.
"""

from itertools import combinations

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.lists.travel import group_traffic_ns
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.simulate import simulate_many

BUDGET_SHARE = 0.95
# Swaps are tried between this many branches of a phase.
SWAPPED_AT_MOST = 16
_NEVER = 2**60

Subgraph = list[int]
Phase = list[Subgraph]


class Duet(Placer):
    """Only as fine as branches: a chain stays together."""

    summary = "branches of each phase placed greedily, then moved and swapped while it helps (DUET, IPDPS'21)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the corrected placement; if it does not fit into memory, the best single device."""
        del seed
        incumbent = Incumbent(problem, "duet", budget_s * BUDGET_SHARE)
        groups = groups_of(problem)
        partition = phases(problem, groups)
        device = _greedy(groups, partition)
        incumbent.consider(Placement(device=groups.spread(device)))
        for phase in partition:
            if len(phase) > 1:
                device = _corrected(problem, groups, device, phase, incumbent)
        incumbent.consider(Placement(device=groups.spread(device)))
        if incumbent.best is None:
            incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


def phases(problem: Problem, groups: Groups) -> list[Phase]:
    """Section IV-B: phases in topological order; a sequential phase is one subgraph, a multi-path phase one per branch.

    Branches of a phase share no tensor.
    """
    neighbours: list[set[int]] = [set() for _ in range(groups.count)]
    open_paths = np.zeros(groups.count + 1, dtype=np.int64)
    for a, b in {(min(edge), max(edge)) for edge in group_traffic_ns(problem, groups)}:
        # An edge is an open path beside all groups strictly between its ends.
        open_paths[a + 1] += 1
        open_paths[b] -= 1
        neighbours[a].add(b)
        neighbours[b].add(a)
    sequential = (np.cumsum(open_paths)[: groups.count] == 0).tolist()
    found: list[Phase] = []
    first = 0
    while first < groups.count:
        last = first
        while last < groups.count and sequential[last] == sequential[first]:
            last += 1
        stretch = range(first, last)
        phase = [list(stretch)] if sequential[first] else _branches(stretch, neighbours)
        if found and len(found[-1]) == 1 and len(phase) == 1:
            found[-1][0] += phase[0]
        else:
            found.append(phase)
        first = last
    return found


def _branches(stretch: range, neighbours: list[set[int]]) -> Phase:
    """The connected components of a stretch of groups."""
    seen: set[int] = set()
    branches = []
    for start in stretch:
        if start in seen:
            continue
        branch = [start]
        seen.add(start)
        for group in branch:  # The list grows during the loop.
            fresh = {other for other in neighbours[group] if other in stretch} - seen
            branch += fresh
            seen |= fresh
        branches.append(sorted(branch))
    return branches


def _profile(groups: Groups, subgraph: Subgraph) -> list[int]:
    """Section IV-C: the time of a subgraph on each device, in ns; `_NEVER` if the device cannot run it."""
    run_ns = groups.run_ns[subgraph]
    times: list[int] = np.where((run_ns >= 0).all(axis=0), run_ns.sum(axis=0), _NEVER).tolist()
    return times


def _greedy(groups: Groups, partition: list[Phase]) -> Integers:
    """Section IV-D, the greedy steps: a device per group.

    In every phase the longest subgraph gets its fastest device; each other one, the longest first, gets the device on
    which it ends first.
    """
    chosen: Integers = np.where(groups.allowed, groups.run_ns, _NEVER).argmin(axis=1).astype(np.int64)
    for phase in partition:
        times = [_profile(groups, subgraph) for subgraph in phase]
        load = [0] * groups.run_ns.shape[1]
        for number in sorted(range(len(phase)), key=lambda one: (-min(times[one]), one)):
            ends = [load[device] + ns for device, ns in enumerate(times[number])]
            device = ends.index(min(ends))
            if ends[device] < _NEVER:  # Without a common device, each group keeps its own fastest one.
                chosen[phase[number]] = device
                load[device] = ends[device]
    return chosen


def _corrected(problem: Problem, groups: Groups, device: Integers, phase: Phase, incumbent: Incumbent) -> Integers:
    """Section IV-D, the correction: move a subgraph or swap two, the best change first, while the whole gets faster."""
    cost = int(simulate_many(problem, groups.spread(device[None, :]))[0])
    while incumbent.left_s > 0:
        rows = _moves_and_swaps(groups, device, phase)
        if not rows:
            return device
        costs = simulate_many(problem, groups.spread(np.array(rows)))
        best = int(costs.argmin())
        if costs[best] >= cost:
            return device
        device, cost = rows[best], int(costs[best])
    return device


def _moves_and_swaps(groups: Groups, device: Integers, phase: Phase) -> list[Integers]:
    """All placements that differ by one subgraph moved to another device, or by two subgraphs swapped."""
    rows = []
    for subgraph in phase:
        for target, ns in enumerate(_profile(groups, subgraph)):
            if ns < _NEVER and (device[subgraph] != target).any():
                rows.append(device.copy())
                rows[-1][subgraph] = target
    for one, other in combinations(phase[:SWAPPED_AT_MOST], 2):
        a, b = int(device[one[0]]), int(device[other[0]])
        if a != b and _profile(groups, one)[b] < _NEVER and _profile(groups, other)[a] < _NEVER:
            rows.append(device.copy())
            rows[-1][one], rows[-1][other] = b, a
    return rows


PLACER = Duet()
