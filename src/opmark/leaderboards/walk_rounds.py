"""Rounds of walks, longer and longer, in several styles by turns.

Restarts that double: Luby, Sinclair, Zuckerman, Inf. Process. Lett. 47, 1993. In some styles walks pass through
placements that do not fit into memory and are driven back: strategic oscillation, Glover, "Heuristics for integer
programming using surrogate constraints", Decision Sciences 8(1), 1977.
"""

from collections.abc import Callable, Sequence

import numpy as np

from opmark.leaderboards.guided_search import State
from opmark.leaderboards.walks import Style, Walks

# Steps per group of the first round in each style, and of all rounds, so that small problems end before their budget.
FIRST_PER_GROUP, LAST_PER_GROUP = 60, 20_000
# A round that would not end in time is made shorter, so that it cools down in this much of what is left.
LAST_SHARE = 0.98
ELITES = 4
STYLES = (
    Style(heats=(0.02, 0.0005), stiffness=(1.0, 30.0)),
    Style(heats=(0.005, 0.0002)),
    Style(heats=(0.02, 0.0005)),
    Style(heats=(0.06, 0.0005), stiffness=(0.5, 50.0)),
)


def walk_in_rounds(
    walks: Walks, states: Sequence[State], seed: int, stop: Callable[[], bool] = lambda: False
) -> list[State]:
    """The best states, the cheapest first, when time is up, `stop` says so, or enough steps are made.

    Two rounds of three start from the best, the others from any of the best few.
    """
    incumbent, count = walks.search.incumbent, walks.search.groups.count + 10
    draw = np.random.default_rng(seed)
    found = elite(states)
    number = 0
    while incumbent.left_s > 0 and not stop() and walks.steps < LAST_PER_GROUP * count:
        level, turn = divmod(number, len(STYLES))
        length = FIRST_PER_GROUP * count * 2**level
        if walks.steps_per_s:
            length = max(64, min(length, int(walks.steps_per_s * incumbent.left_s * LAST_SHARE)))
        start = found[0] if number % 3 < 2 else found[int(draw.integers(len(found)))]
        found = elite([*found, walks.walk(start, length, STYLES[turn], stop=stop)])
        number += 1
    return found


def elite(states: Sequence[State]) -> list[State]:
    """The best few that differ in cost or in kind."""
    found: dict[tuple[float, bool], State] = {}
    for state in sorted(states, key=lambda one: one.energy):
        found.setdefault((state.energy, state.strict), state)
    return list(found.values())[:ELITES]
