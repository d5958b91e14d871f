"""The compiled loop of an annealing run: propose, judge, take or leave. Imported lazily.

Metropolis et al., "Equation of state calculations by fast computing machines", J. Chem. Phys. 21, 1953; Kirkpatrick,
Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983. The limit of a candidate is drawn before it is
judged, so that a bound is often enough to reject it.
"""

from typing import Any, NamedTuple

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.tables import internal, uncounted
from opmark.leaderboards.search.moves import Moves, below, move_groups, move_unit, undo, uniform
from opmark.leaderboards.search.schedules import (
    Schedules,
    excess_of,
    least_ns,
    returns,
    simulated_ns,
    stashed_excess,
)
from opmark.leaderboards.simulator.engine import INVALID
from opmark.leaderboards.simulator.load_tracker import LoadTracker, busiest_ns, mean_square_ns, put_unit

# Where loads count: how often a move starts from a group of the busiest device, and how many draws look for one.
GUIDED, TRIES = 0.4, 6
# The temperature changes after so many steps.
COOLED_EVERY = 16

# The numbers of a run: cost, unevenness in ns and excess (memory that devices lack, as shares of it) of the state;
# the least value so far; the best cost that fits; the memory penalty and the temperature now, and the cost that the
# penalty is a share of; the limit of the proposed state; the steps done, of how many, and how many simulated; the
# busiest device (-1: none).
_FLOATS = ("cost", "uneven", "excess", "least", "best", "penalty", "temperature", "scale", "limit")
_WHOLE = ("step", "steps", "simulated", "busiest")
TALLY = np.dtype((np.record, [*((name, np.float64) for name in _FLOATS), *((name, np.int64) for name in _WHOLE)]))


class RunState(NamedTuple):
    """A run's state: a device per group, the order of priorities, each unit's place in it, and the best of both.

    `device` is that of each unit; `tally` has the one record of `TALLY`.
    """

    chosen: Integers
    device: Integers
    order: Integers
    rank: Integers
    best_chosen: Integers
    best_rank: Integers
    tally: "np.ndarray[tuple[int], np.dtype[np.void]]"


class CandidateJudge(NamedTuple):
    """The ways to judge candidates: `tracked` by loads kept up to date, `simulated`, or both (loads for the cost).

    `tracked_memory`: the tracker's bytes count, not the simulation's; `stashed`: those of a full pipeline do. With
    `contiguous` no path may return to a device.
    """

    tracked: int
    tracked_memory: int
    stashed: int
    simulated: int
    contiguous: int
    memory: Integers
    loads: LoadTracker
    schedules: Schedules


class Verdict(NamedTuple):
    """A candidate's cost (infinite where it cannot run or pass), its unevenness in ns, and its excess."""

    cost: float
    uneven: float
    excess: float


class Run(NamedTuple):
    """An annealing run: its state, how it cools, how it moves, and how it judges."""

    state: RunState
    cooling: Any  # an `annealing.Cooling`
    moves: Moves
    judge: CandidateJudge


REJECTED = Verdict(np.inf, 0.0, 0.0)


@internal
def put_groups(run, back):  # type: ignore[no-untyped-def]
    """Move the units of the journal's groups, or (`back`) return them."""
    journal, device, loads, tracked = run.moves.journal, run.state.device, run.judge.loads, run.judge.tracked
    offsets, units = run.moves.hood.unit_offsets, run.moves.hood.units
    targets = journal.before if back else journal.after
    groups, count = journal.groups, journal.length[0]
    for i in range(count):
        k = count - 1 - i if back else i
        for j in range(offsets[groups[k]], offsets[groups[k] + 1]):
            if tracked:
                put_unit(loads, units[j], targets[k])
            else:
                device[units[j]] = targets[k]


@internal
def first_group(run):  # type: ignore[no-untyped-def]
    """The group that a move starts from: any with a choice of devices, or one of the busiest device."""
    movable, random = run.moves.hood.movable, run.moves.random
    if len(movable) == 0:
        return 0
    busiest = run.state.tally[0].busiest
    if busiest >= 0 and uniform(random) < GUIDED:
        for _ in range(TRIES):
            group = movable[below(random, len(movable))]
            if run.state.chosen[group] == busiest:
                return group
    return movable[below(random, len(movable))]


@uncounted
def cool(run):  # type: ignore[no-untyped-def]
    """Set temperature and memory penalty by the share of the run that is done; both change geometrically."""
    tally, cooling = run.state.tally[0], run.cooling
    share = tally.step / tally.steps
    if cooling.temperature_first > 0.0:
        fall = cooling.temperature_last / cooling.temperature_first
        tally.temperature = cooling.temperature_first * fall**share
    rise = cooling.penalty_last / cooling.penalty_first
    tally.penalty = cooling.penalty_factor * cooling.penalty_first * rise**share * tally.scale


@internal
def value_of(tally, verdict):  # type: ignore[no-untyped-def]
    """The number that annealing compares: cost, unevenness, and the memory penalty."""
    return verdict.cost + verdict.uneven + tally.penalty * verdict.excess


@uncounted
def propose(run):  # type: ignore[no-untyped-def]
    """Change the state by one or two moves and draw the limit that its value may reach; False where nothing moved."""
    state, journal, random = run.state, run.moves.journal, run.moves.random
    tally = state.tally[0]
    if tally.step % COOLED_EVERY == 0:
        cool(run)
    tally.step += 1
    journal.length[0] = 0
    journal.unit[0] = -1
    for _ in range(2 if uniform(random) < run.cooling.twice else 1):
        first = first_group(run)
        if run.cooling.reorder > 0.0 and journal.unit[0] < 0 and uniform(random) < run.cooling.reorder:
            if len(run.moves.hood.movable) < len(state.chosen):
                # The order of units without a choice of devices counts as well.
                first = below(random, len(state.chosen))
            move_unit(state.order, state.rank, first, run.moves)
        else:
            move_groups(state.chosen, first, run.moves, run.cooling.regions)
    if journal.length[0] == 0 and journal.unit[0] < 0:
        return False
    put_groups(run, np.bool_(False))
    tally.limit = value_of(tally, Verdict(tally.cost, tally.uneven, tally.excess))
    if tally.temperature > 0.0:
        tally.limit -= tally.temperature * tally.least * np.log(1.0 - uniform(random))
    return True


@internal
def judged(run, moved, limit):  # type: ignore[no-untyped-def]
    """The verdict on the state; `moved` says whether any device changed."""
    judge, state = run.judge, run.state
    tally, loads, schedules = state.tally[0], judge.loads, judge.schedules
    cost, uneven, excess = 0.0, 0.0, 0.0
    if judge.tracked:
        if loads.missing[0] > 0:
            return REJECTED
        cost = float(max(1, busiest_ns(loads)[0]))
        uneven = run.cooling.unevenness * mean_square_ns(loads) / cost
        if judge.tracked_memory:
            excess = excess_of(loads.held_bytes, judge.memory)
        if cost + uneven + tally.penalty * excess > limit:
            return REJECTED
    if judge.contiguous and returns(state.device, schedules):
        return REJECTED
    if judge.stashed:
        excess = stashed_excess(state.device, judge.memory, schedules)
    if judge.simulated:
        if schedules.bounded and moved and least_ns(state.device, schedules) > limit:
            return REJECTED
        tally.simulated += 1
        ns = simulated_ns(state.device, state.rank, schedules)
        if ns == INVALID:
            return REJECTED
        if not judge.tracked:
            cost = float(ns)
        if not judge.tracked_memory and not judge.stashed:
            excess = excess_of(schedules.room.peak, judge.memory)
    return Verdict(cost, uneven, excess)


@internal
def copy(source, target):  # type: ignore[no-untyped-def]
    """Copy numbers one by one; assigning a slice would allocate."""
    for k in range(len(source)):
        target[k] = source[k]


@internal
def take(run, verdict):  # type: ignore[no-untyped-def]
    """Go on from the state as it is; keep it where it fits and is the best so far."""
    state, judge = run.state, run.judge
    tally = state.tally[0]
    tally.cost, tally.uneven, tally.excess = verdict.cost, verdict.uneven, verdict.excess
    if verdict.cost == np.inf:
        return
    if tally.scale == 0.0:
        tally.scale = verdict.cost
        cool(run)
    tally.least = min(tally.least, value_of(tally, verdict))
    if verdict.excess == 0.0 and verdict.cost < tally.best:
        tally.best = verdict.cost
        copy(state.chosen, state.best_chosen)
        copy(state.rank, state.best_rank)
    if run.cooling.guided and judge.tracked:
        tally.busiest = busiest_ns(judge.loads)[1]


@uncounted
def decide(run, verdict):  # type: ignore[no-untyped-def]
    """Take the proposed state where its value reaches the limit, else go back to the one before."""
    tally = run.state.tally[0]
    if value_of(tally, verdict) <= tally.limit:
        take(run, verdict)
    else:
        put_groups(run, np.bool_(True))
        undo(run.state.chosen, run.state.order, run.state.rank, run.moves.journal)


@uncounted
def anneal(run, steps):  # type: ignore[no-untyped-def]
    """So many steps of a run that `begin` has started."""
    for _ in range(steps):
        if propose(run):
            decide(run, judged(run, run.moves.journal.length[0] > 0, run.state.tally[0].limit))


@uncounted
def place(run):  # type: ignore[no-untyped-def]
    """Put every unit where its group is chosen to be."""
    hood, state = run.moves.hood, run.state
    for group in range(len(state.chosen)):
        for j in range(hood.unit_offsets[group], hood.unit_offsets[group + 1]):
            if run.judge.tracked:
                put_unit(run.judge.loads, hood.units[j], state.chosen[group])
            state.device[hood.units[j]] = state.chosen[group]


@uncounted
def begin(run, verdict):  # type: ignore[no-untyped-def]
    """Set a run's numbers from the state that it starts from."""
    tally = run.state.tally[0]
    tally.best, tally.least = np.inf, np.inf
    tally.busiest = -1
    take(run, verdict)


@uncounted
def begin_judged(run):  # type: ignore[no-untyped-def]
    """Place every unit, judge that, and set the run's numbers."""
    place(run)
    begin(run, judged(run, np.bool_(True), np.inf))
