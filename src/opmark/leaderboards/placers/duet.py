"""DUET: subgraphs by branches, profiled as compiled sessions, placed greedily, then corrected by the whole's latency.

Zhang, Hu, Li, "DUET: A compiler-runtime subgraph scheduling approach for tensor programs on a coupled CPU-GPU
architecture", IPDPS 2021: section IV-B partitions the graph into sequential and multi-path phases, section IV-C
profiles every subgraph as the compiler will run it, section IV-D schedules the subgraphs by greedy correction. The
paper has two devices; here there may be more. In a training step the forward pass is partitioned, and the rest
follows its weights.
"""

from itertools import combinations

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.sessions import session_ns
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.simulate import simulate_many

BUDGET_SHARE = 0.95
# Swaps are tried between this many branches of a phase.
SWAPPED_AT_MOST = 16
# A block with less of the whole work begins no path: a mask that every layer reads holds no paths together.
NEGLIGIBLE_SHARE = 0.001
_NEVER = 2**60

Subgraph = list[int]
Phase = list[Subgraph]
# Phases with the times of their subgraphs on each device.
Priced = list[tuple[Phase, list[list[int]]]]


class Duet(Placer):
    """Only as fine as branches: a chain stays together."""

    summary = "branches of each phase profiled as sessions, placed greedily, then corrected (DUET, IPDPS'21)"
    paper = Placer.cites(
        "Zhang, Hu, Li: DUET: a compiler-runtime subgraph scheduling approach for tensor programs on a coupled CPU-GPU "
        "architecture, IPDPS",
        2021,
        link="https://doi.org/10.1109/IPDPS49936.2021.00024",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the corrected placement; if it does not fit into memory, the best single device."""
        del seed
        incumbent = Incumbent(problem, "duet", budget_s * BUDGET_SHARE)
        blocks = blocks_of(problem)
        priced = [(phase, [_profile(problem, blocks, subgraph) for subgraph in phase]) for phase in phases(blocks)]
        device = _greedy(blocks, priced)
        incumbent.consider(Placement(device=device[blocks.of_unit]))
        device = _corrected(problem, blocks, device, priced, incumbent)
        incumbent.consider(Placement(device=device[blocks.of_unit]))
        if incumbent.best is None:
            incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


def phases(blocks: Blocks) -> list[Phase]:
    """Section IV-B: phases in topological order; a sequential phase is one subgraph, a multi-path phase one per path.

    Paths of a phase share no tensor. A stretch that only a shortcut passes has a single path: it is partitioned again
    without the shortcut. What begins the graph with next to no work (a mask) goes with its first reader.
    """
    order = list(blocks.depth_first_orders[0])
    fastest = np.where(blocks.run_ns >= 0, blocks.run_ns, _NEVER).min(axis=1)
    light = fastest < NEGLIGIBLE_SHARE * fastest[fastest < _NEVER].sum()
    masks: list[int] = []
    for block in order:
        if light[block] and blocks.before[block] <= set(masks):
            masks.append(block)
    edges = {(block, reader) for block, readers in enumerate(blocks.after) for reader in readers}
    found = _phases([block for block in order if block not in masks], edges)
    home = {block: subgraph for phase in found for subgraph in phase for block in subgraph}
    for block in reversed(masks):
        readers = [reader for reader in order if reader in blocks.after[block] and reader in home]
        home[block] = home[readers[0]] if readers else found[0][0]
        home[block].insert(0, block)
    return found


def _phases(order: list[int], edges: set[tuple[int, int]]) -> list[Phase]:
    """The phases of some blocks, given in topological order, by the edges among them."""
    place = {block: number for number, block in enumerate(order)}
    inner = {(place[a], place[b]) for a, b in edges if a in place and b in place}
    neighbours: list[set[int]] = [set() for _ in order]
    for a, b in inner:
        neighbours[a].add(b)
        neighbours[b].add(a)
    path = (~_sequential(len(order), inner)).tolist()
    found: list[Phase] = []
    first = 0
    while first < len(order):
        last = first
        while last < len(order) and path[last] == path[first]:
            last += 1
        stretch = range(first, last)
        members = _branches(stretch, neighbours) if path[first] else [list(stretch)]
        phase = [[order[number] for number in subgraph] for subgraph in members]
        if path[first] and len(phase) == 1 and len(stretch) < len(order):
            found += _phases(phase[0], edges)
        else:
            found.append(phase)
        first = last
    return _merged(found)


def _sequential(count: int, edges: set[tuple[int, int]]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """True for each block that no edge passes by; all entries hang on one source, all exits on one sink."""
    read, written = {b for _, b in edges}, {a for a, _ in edges}
    spans = [*edges, *((-1, b) for b in range(count) if b not in read)]
    spans += [(a, count) for a in range(count) if a not in written]
    open_paths = np.zeros(count + 2, dtype=np.int64)
    for a, b in spans:
        # An edge is an open path beside all blocks strictly between its ends.
        open_paths[a + 1] += 1
        open_paths[b] -= 1
    sequential: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.cumsum(open_paths)[:count] == 0
    return sequential


def _merged(found: list[Phase]) -> list[Phase]:
    """Phases of one subgraph that follow one another are one."""
    merged: list[Phase] = []
    for phase in found:
        if merged and len(merged[-1]) == 1 and len(phase) == 1:
            merged[-1] = [merged[-1][0] + phase[0]]
        else:
            merged.append(phase)
    return merged


def _branches(stretch: range, neighbours: list[set[int]]) -> Phase:
    """The connected components of a stretch of blocks."""
    seen: set[int] = set()
    branches = []
    for start in stretch:
        if start in seen:
            continue
        branch = [start]
        seen.add(start)
        for block in branch:  # The list grows during the loop.
            fresh = {other for other in neighbours[block] if other in stretch} - seen
            branch += sorted(fresh)
            seen |= fresh
        branches.append(sorted(branch))
    return branches


def _profile(problem: Problem, blocks: Blocks, subgraph: Subgraph) -> list[int]:
    """Section IV-C: the time of a subgraph as one session of each device, in ns; `_NEVER` if it cannot run there."""
    able: list[bool] = np.all(blocks.run_ns[subgraph] >= 0, axis=0).tolist()
    members = np.flatnonzero(np.isin(blocks.of_unit, subgraph))
    return [session_ns(problem, members, device) if one else _NEVER for device, one in enumerate(able)]


def _greedy(blocks: Blocks, priced: Priced) -> Integers:
    """Section IV-D, the greedy steps: a device per block.

    In every phase the longest subgraph gets its fastest device; each other one, the longest first, gets the device on
    which it ends first.
    """
    run_ns = np.where(blocks.run_ns >= 0, blocks.run_ns, _NEVER)
    chosen: Integers = run_ns.argmin(axis=1).astype(np.int64)
    for phase, times in priced:
        load = [0] * run_ns.shape[1]
        for number in sorted(range(len(phase)), key=lambda one: (-min(times[one]), one)):
            ends = [load[device] + ns for device, ns in enumerate(times[number])]
            device = ends.index(min(ends))
            if ends[device] < _NEVER:  # Without a common device, each block keeps its own fastest one.
                chosen[phase[number]] = device
                load[device] = ends[device]
    return chosen


def _corrected(
    problem: Problem,
    blocks: Blocks,
    device: Integers,
    priced: Priced,
    incumbent: Incumbent,
) -> Integers:
    """Section IV-D, the correction: phase by phase, the best move or swap, as long as the whole gets faster."""
    cost = int(simulate_many(problem, device[None, blocks.of_unit])[0])
    # Paths first, as in the paper; then phases of one subgraph may move too.
    ordered = sorted(priced, key=lambda row: len(row[0]) == 1)
    improved = True
    while improved:
        improved = False
        for phase, times in ordered:
            while incumbent.left_s > 0:
                rows = _moves_and_swaps(device, phase, times)
                if not rows:
                    break
                costs = simulate_many(problem, np.array(rows)[:, blocks.of_unit])
                best = int(costs.argmin())
                if costs[best] >= cost:
                    break
                device, cost, improved = rows[best], int(costs[best]), True
    return device


def _moves_and_swaps(device: Integers, phase: Phase, times: list[list[int]]) -> list[Integers]:
    """All placements that differ by one subgraph moved to another device, or by two subgraphs swapped."""
    rows = []
    for subgraph, own in zip(phase, times, strict=True):
        for target, ns in enumerate(own):
            if ns < _NEVER and (device[subgraph] != target).any():
                rows.append(device.copy())
                rows[-1][subgraph] = target
    for one, other in combinations(range(min(len(phase), SWAPPED_AT_MOST)), 2):
        a, b = int(device[phase[one][0]]), int(device[phase[other][0]])
        if a != b and times[one][b] < _NEVER and times[other][a] < _NEVER:
            rows.append(device.copy())
            rows[-1][phase[one]], rows[-1][phase[other]] = b, a
    return rows


PLACER = Duet()
