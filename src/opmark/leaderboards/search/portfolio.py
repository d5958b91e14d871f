"""The portfolio: several kinds of annealing runs, longer and longer, from the best states so far.

Algorithm portfolios: Huberman, Lukose, Hogg, Science 275, 1997. Kinds that do worse in short runs drop out (successive
halving: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013).
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from opmark.leaderboards.search.annealing import Annealer, Cooling
from opmark.leaderboards.search.states import Search, State

# The first round's steps per group and unit, the factor from round to round, and the steps per pair of groups and
# units after which a search ends whatever its budget.
FIRST_STEPS, LONGER, LAST_PER_PAIR = 30, 3, 200
# Steps that show the speed where no compiled code judges: else a first run of slow steps takes all the time.
SPEED_STEPS = 64
# The longest share of the time left, or of the steps, for a run of the first two rounds, and of later ones.
EARLY_SHARES, LAST_SHARE = (0.06, 0.15), 0.98
# The runs that go on after the first round; all kinds run again in every so many rounds.
KEPT, ALL_AGAIN = 2, 5
# The states that are kept, and the share of later runs that start from any of them instead of the best.
ELITES, OTHERS = 4, 0.2
# Two starts must differ in this share of the groups.
APART = 0.1
# Problems with at most so many placements are enumerated, so many at once.
ENUMERATED_AT_MOST, ROWS = 60_000, 512

BY_SCHEDULES = (
    Cooling(temperature_first=0.02, temperature_last=0.0002, penalty_first=2.0, penalty_last=30.0),
    Cooling(temperature_first=0.005, temperature_last=0.0002),
    Cooling(temperature_first=0.02, temperature_last=0.0005),
    Cooling(temperature_first=0.06, temperature_last=0.0005, penalty_first=0.5, penalty_last=50.0),
)
BY_LOADS = (
    Cooling(temperature_first=0.005, temperature_last=0.0002),
    Cooling(temperature_first=0.003, temperature_last=0.0001, unevenness=0.3),
    Cooling(temperature_first=0.02, temperature_last=0.0005, penalty_first=1.0, penalty_last=30.0),
    Cooling(temperature_first=0.002, temperature_last=0.0001, unevenness=0.3),
)
# Most moves break a contiguous placement, so a run must climb higher to reach the next one.
BY_CONTIGUOUS_PARTS = (
    Cooling(temperature_first=0.05, temperature_last=0.0005),
    Cooling(temperature_first=0.2, temperature_last=0.001, unevenness=0.3),
    Cooling(temperature_first=0.005, temperature_last=0.0002),
    Cooling(temperature_first=0.1, temperature_last=0.001, penalty_first=1.0, penalty_last=30.0),
)


def anneal_in_rounds(
    annealer: Annealer, states: Sequence[State], seed: int, stop: Callable[[], bool] = lambda: False
) -> list[State]:
    """The best states when time is up, `stop` says so, or enough steps are made; those that fit come first.

    In the first round every kind of run has a start of its own where schedules count: memory and queues make walls
    between them. The best run and the hottest go on from where they came to; later rounds start from the best state of
    all. Without the hottest, a search that has reached the bottom of a basin spends all its time there. The coldest
    kind takes the best state in the second round: in little time hot runs destroy a good list schedule for good.
    """
    incumbent, size = annealer.search.incumbent, annealer.search.groups.count + annealer.search.problem.arrays.units
    most = min(LAST_PER_PAIR * size**2, annealer.steps_at_most or math.inf)
    draw = np.random.default_rng(seed)
    best = elite(states)
    kinds = _kinds(annealer)
    starts = best[:1] if kinds is BY_LOADS else unlike(states, len(kinds))
    runs = [(kind, starts[number % len(starts)]) for number, kind in enumerate(kinds)]
    if not annealer.compiled and not annealer.steps_at_most and not stop():
        best = elite([*best, annealer.run(best[0], SPEED_STEPS, kinds[0], stop=stop)])
    for level in itertools.count():
        ended: list[tuple[Cooling, State]] = []
        cold = [(_coldest(kinds), best[0])] if level == 1 and kinds is BY_SCHEDULES else []
        for kind, start in runs if level % ALL_AGAIN == 0 else [*cold, *_kept(runs)]:
            if incumbent.left_s <= 0 or stop() or annealer.steps >= most:
                return best
            steps = FIRST_STEPS * size * LONGER**level
            if affordable := annealer.affordable_steps:
                share = LAST_SHARE if level > 1 else EARLY_SHARES[level]
                steps = max(64, min(steps, int(affordable * share)))
            other = best[int(draw.integers(len(best)))] if draw.random() < OTHERS else best[0]
            ended.append((kind, annealer.run(other if level > 1 else start, steps, kind, stop=stop)))
            best = elite([*best, ended[-1][1]])
        ended.sort(key=lambda run: run[1].merit)
        made = {kind for kind, _ in ended}
        runs = ended + [run for run in runs if run[0] not in made]
    return best


def _kept(runs: Sequence[tuple[Cooling, State]]) -> Sequence[tuple[Cooling, State]]:
    """The best run and the hottest one, or the two best where the hottest is the best."""
    hottest = max(runs, key=lambda run: run[0].temperature_first)
    return runs[:KEPT] if hottest is runs[0] else [runs[0], hottest]


def _coldest(kinds: Sequence[Cooling]) -> Cooling:
    return min(kinds, key=lambda kind: kind.temperature_first)


def _kinds(annealer: Annealer) -> tuple[Cooling, ...]:
    if annealer.search.problem.contiguous:
        return BY_CONTIGUOUS_PARTS
    return BY_LOADS if annealer.by_loads else BY_SCHEDULES


def unlike(states: Sequence[State], count: int) -> list[State]:
    """Up to `count` of the best states, of which any two have different devices for a share of the groups.

    The last is the one of least energy, whether it fits or not.
    """
    ranked = sorted(states, key=lambda one: one.merit)
    found: list[State] = []
    for state in [ranked[0], min(states, key=lambda one: one.energy), *ranked]:
        if len(found) < count and all((state.chosen != one.chosen).mean() >= APART for one in found):
            found.append(state)
    return [found[0], *found[2:], *found[1:2]]


def elite(states: Sequence[State]) -> list[State]:
    """The best few states of different cost."""
    found: dict[float, State] = {}
    for state in sorted(states, key=lambda one: one.merit):
        found.setdefault(state.energy, state)
    return list(found.values())[:ELITES]


def enumerated(search: Search) -> list[State]:
    """The best of all placements, where they are few."""
    allowed = search.groups.allowed
    free = np.flatnonzero(allowed.sum(axis=1) > 1).tolist()
    able = [np.flatnonzero(allowed[group]) for group in free]
    count = math.prod(map(len, able))
    if count > ENUMERATED_AT_MOST:
        return []
    first = allowed.argmax(axis=1).astype(np.int64)
    rank = search.state(first).priority[None, :]
    best: list[State] = []
    for begun in range(0, count, ROWS):
        if search.incumbent.left_s <= 0:
            break
        numbers = np.arange(begun, min(begun + ROWS, count))
        rows = np.tile(first, (len(numbers), 1))
        if free:
            places = np.unravel_index(numbers, [len(devices) for devices in able])
            rows[:, free] = np.column_stack([devices[place] for devices, place in zip(able, places, strict=True)])
        best = [min([*best, search.best_of(rows, rank)], key=lambda one: one.merit)]
    for state in best:
        search.report(state)
    return best
