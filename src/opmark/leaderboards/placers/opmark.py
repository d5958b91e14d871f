"""OpMark's own placer: every known start, then annealing of devices, regions and priorities, led by what is critical.

An algorithm portfolio (Huberman, Lukose, Hogg, Science 275, 1997) over list schedules, dynamic programs and integer
programs. What they find is annealed (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) in rounds that get longer and
longer (successive halving: Karnin, Koren, Somekh, ICML 2013), by multilevel moves (Karypis, Kumar, SIAM J. Sci.
Comput. 20(1), 1998), through placements that do not fit into memory and back (strategic oscillation: Glover, Decision
Sciences 8(1), 1977). Where loads decide, a move costs what it changes; where schedules do, those that a bound rules out
are not simulated, and a descent by whole batches of exact neighbours goes first (iterated local search: Lourenço,
Martin, Stützle, Handbook of Metaheuristics, 2003). Problems whose parts must be contiguous, or whose cost is neither,
are annealed in batches.
Small problems are enumerated.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opmark.leaderboards.bounds.bounds import cheap_lower_bound
from opmark.leaderboards.bounds.relaxation import is_load
from opmark.leaderboards.placers import (
    chimera,
    cpop,
    dapple,
    dnn_partitioning_dp,
    dnn_partitioning_dp_linear,
    duet,
    etf,
    fastt,
    gpipe,
    heft,
    local_search,
    m_topo,
    peft,
    pipedream,
    sct,
)
from opmark.leaderboards.placers.pesto import solve_coarsened
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.guided_search import GuidedSearch, State, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.walk_rounds import walk_in_rounds
from opmark.leaderboards.search.walks import Walks, warm_up_walks
from opmark.leaderboards.simulator.simulate import simulate

# The rest is for handing the answer over.
SEARCH_SHARE = 0.95
ENUMERATED_AT_MOST = 60_000
# Evaluations per group after which a search is at its end, whatever the budget, and those of the first cycle. Where
# loads tell what cannot pass and there are many groups it searches on for longer.
LAST_PER_GROUP, FIRST_PER_GROUP = 2_500, 30
MANY_GROUPS, MANY_TIMES = 40, 8
STRICT_UNITS_AT_MOST = 150
# A cycle with fewer evaluations per group than this starts cooler in proportion: there is no time to melt and freeze.
COOLED_PER_GROUP = 60
# Of the first descent, and how many of these may bring nothing.
DESCENT_PER_GROUP, PATIENCE_PER_GROUP = 200, 10
# How the first descent may move: by everything, by single groups at a temperature, by regions without priorities, and
# by everything at a temperature. Each gets so many evaluations per group at a time.
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"heat": (0.002, 0.002), "reorder": 0.0, "regions": False, "guided": False},
    {"reorder": 0.0},
    {"heat": (0.01, 0.0005)},
)
TURN_PER_GROUP = 12
# Other starts are searched while more than this share of the time is left, each for so much of it.
OTHERS_FROM, OTHERS_SHARE = 0.95, 0.1
# Start and end temperatures of successive cycles, as shares of the best cost.
HEATS = ((0.02, 0.0005), (0.005, 0.0002), (0.06, 0.001))
ELITES = 4
# Of the time that is left, for each other placer.
START_SHARE = 0.15
# Where compiled walks follow, and elsewhere: what the integer program of a load objective gets of the time that is
# left, and after what share of all the time no other start begins.
PROGRAM_SHARE_WALKED, PROGRAM_SHARE = 0.15, 0.3
STARTS_SHARE_WALKED, STARTS_SHARE = 0.25, 0.6
# With more groups than this, where orders matter, whole batches of exact neighbours go first, for this share of the
# time: between the walls that memory builds they get further than single moves at a temperature.
DESCEND_FROM, DESCEND_SHARE_WALKED, DESCEND_SHARE = 24, 0.3, 0.55
# Of the budget, for replicas in the end, where a problem allows them.
REPLICAS_SHARE = 0.15


class OpMark(Placer):
    """Anytime, and never worse than the list schedules and single devices that it starts from."""

    summary = "every list schedule, dynamic and integer program, then compiled multilevel annealing; small ones exactly"

    def prepare(self) -> None:
        """Compile the search and the programs it starts from."""
        warm_up()
        warm_up_walks()
        for placer in (pipedream.PLACER, dnn_partitioning_dp.PLACER, sct.PLACER):
            placer.prepare()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement found; the same for a seed where the budget does not cut the search short."""
        incumbent = Incumbent(problem, "opmark", budget_s * SEARCH_SHARE)
        search = GuidedSearch(problem, incumbent, seed)
        walks = Walks(search, seed)
        states = _starts(problem, search, incumbent, seed, walked=walks.compiled)
        if search.ordered and search.groups.count > DESCEND_FROM:
            share = DESCEND_SHARE_WALKED if walks.compiled else DESCEND_SHARE
            found = incumbent.consider_placer(local_search.PLACER, seed, share=share)
            states += [] if found is None else _states_of(search, found)
        bound = cheap_lower_bound(problem)

        reserved_s = REPLICAS_SHARE * incumbent.left_s if problem.replication else 0.0
        if problem.replication:
            replicated(problem, incumbent)

        def done() -> bool:
            proved = incumbent.value is not None and incumbent.value <= bound
            return proved or incumbent.left_s < reserved_s

        if search.movable and not done():
            states += _enumerated(search)
            if walks.compiled:
                walk_in_rounds(walks, states, seed, done)
            else:
                _search(search, incumbent, states, done)
        if problem.replication:
            replicated(problem, incumbent)
        return incumbent.solution()


PLACER = OpMark()


def _starts(problem: Problem, search: GuidedSearch, incumbent: Incumbent, seed: int, *, walked: bool) -> list[State]:
    """States of everything that other placers answer, given to the incumbent as they are."""
    groups = search.groups
    states = [search.state(row) for row in starting_rows(problem, groups)]
    for state in sorted(states, key=lambda one: one.energy)[:2]:
        search.report(state)
    split = is_load(problem) or problem.contiguous
    least_left = 1 - (STARTS_SHARE_WALKED if walked else STARTS_SHARE)
    programs = [pipedream.PLACER, dnn_partitioning_dp_linear.PLACER]
    if problem.contiguous or search.rules.model is not None:
        programs.append(dnn_partitioning_dp.PLACER)
    lists = [one.PLACER for one in (heft, etf, cpop, peft, fastt, sct, m_topo, duet, gpipe, dapple, chimera)]
    for placer in (*programs, *lists) if split else (*lists, programs[0]):
        left_s = incumbent.left_s
        if left_s <= 0 or (incumbent.best is not None and left_s < least_left * (incumbent.deadline - incumbent.begun)):
            break
        found = incumbent.consider_placer(placer, seed, share=START_SHARE)
        if found is not None:
            states += _states_of(search, found)
    if split and not problem.contiguous and incumbent.left_s > 0:
        share = PROGRAM_SHARE_WALKED if walked else PROGRAM_SHARE
        found = solve_coarsened(problem, incumbent, seconds=share * incumbent.left_s)
        states += [] if found is None else _states_of(search, found)
    return states


def _states_of(search: GuidedSearch, placement: Placement) -> list[State]:
    """A placement with the default priorities, with its own, and with the order in which it really ran."""
    chosen = np.zeros(search.groups.count, dtype=np.int64)
    chosen[search.groups.of_unit] = placement.device
    states = [search.state(chosen)]
    if not search.ordered or placement.replicas:
        return states
    if placement.priority is not None:
        states.append(search.state(chosen, placement.priority))
    if len(placement.device) <= STRICT_UNITS_AT_MOST:
        states.append(_strict(search, chosen, placement))
    return states


def _strict(search: GuidedSearch, chosen: Integers, placement: Placement) -> State:
    schedule = simulate(search.problem, placement)
    topological = search.problem.arrays.topological
    position = np.empty(len(topological), dtype=np.int64)
    position[topological] = np.arange(len(topological))
    by_start = np.lexsort((position, schedule.unit_end_ns, schedule.unit_start_ns))
    rank = np.empty(len(by_start), dtype=np.int64)
    rank[by_start] = -np.arange(len(by_start))
    return search.state(chosen, rank, strict=True)


def _enumerated(search: GuidedSearch) -> list[State]:
    """The best of all placements, where they are few."""
    able = [np.flatnonzero(row).tolist() for row in search.groups.allowed]
    if math.prod(map(len, able)) > ENUMERATED_AT_MOST:
        return []
    best: State | None = None
    rank = search.state(np.array([row[0] for row in able], dtype=np.int64)).priority
    every = itertools.product(*able)
    while chunk := list(itertools.islice(every, 512)):
        if search.incumbent.left_s <= 0:
            break
        rows = np.array(chunk, dtype=np.int64)
        energies = search.energies(rows, rank[None, :])
        least = int(energies.argmin())
        if best is None or energies[least] < best.energy:
            best = State(chosen=rows[least], priority=rank, energy=float(energies[least]))
    if best is None:
        return []
    search.report(best)
    return [best]


def _search(search: GuidedSearch, incumbent: Incumbent, states: list[State], stop: Callable[[], bool]) -> None:
    """Descents from the best starts, then cycles of annealing and descent."""
    count = search.groups.count + 10
    begun, begun_s = search.evaluations, incumbent.left_s
    free = min((state for state in states if not state.strict), key=lambda one: one.energy)
    descended = [_first_descent(search, free, stop)]
    for number, state in enumerate(_elites([one for one in states if one is not free])[: ELITES - 1], 1):
        # others get their turn only where the first has left most of the time
        until_s = begun_s * (OTHERS_FROM - OTHERS_SHARE * number)
        descended.append(
            search.anneal(
                state,
                FIRST_PER_GROUP * count,
                patience=PATIENCE_PER_GROUP * count,
                stop=lambda: stop() or incumbent.left_s < until_s,  # noqa: B023 (called before it changes)
            )
        )
    elites = _elites([*descended, *states])
    draw = np.random.default_rng(len(states))
    last = LAST_PER_GROUP * count * (MANY_TIMES if search.by_loads and count > MANY_GROUPS else 1)
    cycle = 0
    while incumbent.left_s > 0 and not stop() and search.evaluations < last:
        state = elites[0] if cycle % 3 < 2 else elites[int(draw.integers(len(elites)))]
        if search.ordered and search.problem.arrays.units <= STRICT_UNITS_AT_MOST and cycle % 2 and not state.strict:
            state = _strict(search, state.chosen, search.placement(state))
        length = min(last, FIRST_PER_GROUP * count * 2 ** (cycle // len(HEATS)))
        spent_s = begun_s - incumbent.left_s
        if spent_s > 0:  # a cycle that would not cool down in time is shortened
            length = min(length, max(64, int((search.evaluations - begun) / spent_s * incumbent.left_s * 0.6)))
        cooler = min(1.0, length / (COOLED_PER_GROUP * count)) ** 2
        first, final = HEATS[cycle % len(HEATS)]
        found = search.anneal(state, length, (first * cooler, final * cooler), stop=stop)
        elites = _elites([*elites, found])
        elites[0] = search.anneal(elites[0], length // 4, patience=PATIENCE_PER_GROUP * count, stop=stop)
        cycle += 1


def _first_descent(search: GuidedSearch, state: State, stop: Callable[[], bool]) -> State:
    """Turn by turn whatever brought most of late, from the best so far, until none brings anything.

    Adaptive operator selection: Fialho, Da Costa, Schoenauer, Sebag, Annals of Mathematics and AI 60, 2010.
    """
    count = search.groups.count + 10
    ways = WAYS if search.ordered else WAYS[:2]
    gains = [math.inf] * len(ways)
    spent = idle = 0
    while spent < DESCENT_PER_GROUP * count and idle < 2 * len(ways) and search.incumbent.left_s > 0 and not stop():
        way = gains.index(max(gains)) if max(gains) > 0 else idle % len(ways)
        found = search.anneal(state, TURN_PER_GROUP * count, stop=stop, **ways[way])
        gain = (state.energy - found.energy) / state.energy if math.isfinite(state.energy) else 0.0
        gains[way] = gain if math.isinf(gains[way]) else (gains[way] + gain) / 2
        idle = 0 if found.energy < state.energy else idle + 1
        state, spent = found, spent + TURN_PER_GROUP * count
    return state


def _elites(states: list[State]) -> list[State]:
    """The best few that differ in cost or in kind."""
    found: dict[tuple[float, bool], State] = {}
    for state in sorted(states, key=lambda one: one.energy):
        found.setdefault((state.energy, state.strict), state)
    return list(found.values())[:ELITES]
