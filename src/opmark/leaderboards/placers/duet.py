"""DUET: subgraphs by branches, profiled on every device, placed greedily and corrected by what the whole then takes.

Zhang et al., "DUET: A compiler-runtime subgraph scheduling approach for tensor programs on a coupled CPU-GPU
architecture", IPDPS 2021: section IV-B cuts the graph where only one path is open, and its branches in between;
section IV-C times each piece on each device (here by the predictors' exec times); section IV-D gives the longest branch
of a phase its fastest device, every other the one where it ends first, and then moves and swaps branches of a phase as
long as the whole gets faster.
"""

from itertools import combinations

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cluster_levels import group_edges
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.simulate import simulate_many

BUDGET_SHARE = 0.95
_NEVER = 2**60


def phases(problem: Problem, groups: Groups) -> list[list[list[int]]]:
    """Phases in topological order, each a list of subgraphs of groups; one subgraph where only one path is open.

    A subgraph of a phase with several shares no tensor with the others.
    """
    edges = sorted(group_edges(problem, groups))
    crossing = np.zeros(groups.count + 1, dtype=np.int64)
    for a, b in edges:  # the groups strictly between the two ends stand beside an open path
        crossing[a + 1] += 1
        crossing[b] -= 1
    alone = np.cumsum(crossing)[: groups.count] == 0
    near: list[list[int]] = [[] for _ in range(groups.count)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    found: list[list[list[int]]] = []
    single: list[bool] = []
    first = 0
    while first < groups.count:
        last = first
        while last < groups.count and alone[last] == alone[first]:
            last += 1
        parts = [list(range(first, last))] if alone[first] else _components(range(first, last), near)
        if single and single[-1] and len(parts) == 1:
            found[-1][0] += parts[0]
        else:
            found.append(parts)
            single.append(len(parts) == 1)
        first = last
    return found


def _components(members: range, near: list[list[int]]) -> list[list[int]]:
    seen: set[int] = set()
    parts = []
    for start in members:
        if start in seen:
            continue
        part = [start]
        seen.add(start)
        for group in part:
            for other in near[group]:
                if other in members and other not in seen:
                    seen.add(other)
                    part.append(other)
        parts.append(sorted(part))
    return parts


class Duet(Placer):
    """Only as fine as branches: a chain stays together."""

    summary = "branches of each phase placed greedily, then moved and swapped while it helps (DUET, IPDPS'21)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The corrected placement; where it fits into no memory, the best single device."""
        del seed
        incumbent = Incumbent(problem, "duet", budget_s * BUDGET_SHARE)
        groups = groups_of(problem)
        found = phases(problem, groups)
        chosen = _greedy(groups, found)
        incumbent.consider(Placement(device=groups.spread(chosen)))
        for parts in filter(lambda phase: len(phase) > 1, found):
            chosen = _corrected(problem, groups, chosen, parts, incumbent)
        incumbent.consider(Placement(device=groups.spread(chosen)))
        if incumbent.best is None:
            incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


def _profile(groups: Groups, part: list[int]) -> list[int]:
    """What a subgraph takes on each device; a very long time where it cannot run there."""
    table = groups.run_ns[part]
    costs: list[int] = np.where((table >= 0).all(axis=0), table.sum(axis=0), _NEVER).tolist()
    return costs


def _greedy(groups: Groups, found: list[list[list[int]]]) -> Integers:
    chosen: Integers = np.where(groups.allowed, groups.run_ns, _NEVER).argmin(axis=1).astype(np.int64)
    for parts in found:
        costs = [_profile(groups, part) for part in parts]
        load = [0] * groups.run_ns.shape[1]
        for number in sorted(range(len(parts)), key=lambda one: (-min(costs[one]), one)):
            ends = [load[device] + ns for device, ns in enumerate(costs[number])]
            device = ends.index(min(ends))
            if ends[device] < _NEVER:  # else each group keeps its own fastest device
                chosen[parts[number]] = device
                load[device] = ends[device]
    return chosen


def _corrected(
    problem: Problem, groups: Groups, chosen: Integers, parts: list[list[int]], incumbent: Incumbent
) -> Integers:
    """Moves of one subgraph and swaps of two, the best first, as long as the whole gets faster."""
    cost = int(simulate_many(problem, groups.spread(chosen[None, :]))[0])
    while incumbent.left_s > 0:
        rows = []
        for part in parts:
            for device, ns in enumerate(_profile(groups, part)):
                if ns < _NEVER and (chosen[part] != device).any():
                    rows.append(chosen.copy())
                    rows[-1][part] = device
        for one, other in combinations(parts[:16], 2):
            a, b = int(chosen[one[0]]), int(chosen[other[0]])
            if a != b and _profile(groups, one)[b] < _NEVER and _profile(groups, other)[a] < _NEVER:
                rows.append(chosen.copy())
                rows[-1][one], rows[-1][other] = b, a
        if not rows:
            return chosen
        costs = simulate_many(problem, groups.spread(np.array(rows)))
        least = int(costs.argmin())
        if costs[least] >= cost:
            return chosen
        chosen, cost = rows[least], int(costs[least])
    return chosen


PLACER = Duet()
