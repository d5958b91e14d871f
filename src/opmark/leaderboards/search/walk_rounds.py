"""Rounds of walks, longer and longer, in those of several styles that did best in short ones.

Successive halving: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013. In some
styles walks pass through placements that do not fit into memory and are driven back: strategic oscillation, Glover,
"Heuristics for integer programming using surrogate constraints", Decision Sciences 8(1), 1977.
"""

from collections.abc import Callable, Sequence

import numpy as np

from opmark.leaderboards.search.guided_search import GuidedSearch, State
from opmark.leaderboards.search.walks import Style, Walks

# Steps per group and unit of the first round in each style, how much longer every level of rounds is, and steps of all
# rounds per pair of groups and units, so that small problems end before their budget.
FIRST_EACH, LONGER, LAST_PER_PAIR = 30, 3, 200
# Of the time that is left, what a round of the first two levels may take, and what a later one may, to cool down.
EARLY_SHARES, LAST_SHARE = (0.06, 0.15), 0.98
# For how many of the groups two starts must differ.
APART = 0.1
# How many lines go on after the first level, and all of them again after so many levels.
KEPT, ALL_AGAIN = 2, 5
# The best states that are kept, and how often a round starts from any of them instead of the best.
ELITES, OTHERS = 4, 0.2
BY_SCHEDULES = (
    Style(heats=(0.02, 0.0005), stiffness=(1.0, 30.0)),
    Style(heats=(0.005, 0.0002)),
    Style(heats=(0.02, 0.0005)),
    Style(heats=(0.06, 0.0005), stiffness=(0.5, 50.0)),
)
BY_LOADS = (
    Style(heats=(0.005, 0.0002)),
    Style(heats=(0.003, 0.0001), unevenness=0.3),
    Style(heats=(0.02, 0.0005), stiffness=(1.0, 30.0)),
    Style(heats=(0.002, 0.0001), unevenness=0.3),
)


def walk_in_rounds(
    walks: Walks, states: Sequence[State], seed: int, stop: Callable[[], bool] = lambda: False
) -> list[State]:
    """The best states, those that fit before others, when time is up, `stop` says so, or enough steps are made.

    On the first level every style has a start of its own where schedules count: memory, orders and queues make walls
    between them. The best lines go on from where they came to, then the best styles from the best of all.
    """
    search = walks.search
    incumbent, count = search.incumbent, search.groups.count + search.problem.arrays.units
    draw = np.random.default_rng(seed)
    found = elite(search, states)
    styles = BY_LOADS if walks.by_loads else BY_SCHEDULES
    begun = found[:1] if walks.by_loads else unlike(search, states, len(styles))
    lines = [(style, begun[number % len(begun)]) for number, style in enumerate(styles)]
    level = 0
    while incumbent.left_s > 0 and not stop() and walks.steps < LAST_PER_PAIR * count**2:
        ended: list[tuple[Style, State]] = []
        for style, own in lines if level % ALL_AGAIN == 0 else lines[:KEPT]:
            length = FIRST_EACH * count * LONGER**level
            if walks.steps_per_s:
                share = LAST_SHARE if level > 1 else EARLY_SHARES[level]
                length = max(64, min(length, int(walks.steps_per_s * incumbent.left_s * share)))
            other = found[int(draw.integers(len(found)))] if draw.random() < OTHERS else found[0]
            ended.append((style, walks.walk(other if level > 1 else own, length, style, stop=stop)))
            found = elite(search, [*found, ended[-1][1]])
        best = sorted(ended, key=lambda line: (not search.fits(line[1]), line[1].energy))
        lines = best + lines[len(best) :]
        level += 1
    return found


def unlike(search: GuidedSearch, states: Sequence[State], count: int) -> list[State]:
    """Up to `count` of the best states, of which any two have different devices for a share of the groups.

    The last is the one of least energy, whether it fits or not.
    """
    ranked = sorted(states, key=lambda one: (not search.fits(one), one.energy))
    found: list[State] = []
    for state in [*ranked[:1], min(states, key=lambda one: one.energy), *ranked]:
        if len(found) < count and all((state.chosen != one.chosen).mean() >= APART for one in found):
            found.append(state)
    return [found[0], *found[2:], *found[1:2]]


def elite(search: GuidedSearch, states: Sequence[State]) -> list[State]:
    """The best few that differ in cost or in kind; whatever fits into memory is better than what does not."""
    found: dict[tuple[float, bool], State] = {}
    for state in sorted(states, key=lambda one: (not search.fits(one), one.energy)):
        found.setdefault((state.energy, state.strict), state)
    return list(found.values())[:ELITES]
