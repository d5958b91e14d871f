"""The formulas of scores: quality, gain, geometric mean, confidence interval and shared ranks."""

import math
from collections.abc import Sequence

import numpy as np

# The quality of an answer that beats the frozen best-known cost is limited to this until the next version.
QUALITY_AT_MOST = 1.05
# An invalid answer counts as this in a geometric mean, which stays finite.
QUALITY_AT_LEAST = 0.01
# Instances are not scored where the best single device is closer than this to the best known cost.
HEADROOM_AT_LEAST = 0.02
# Costs within this share of the least one are alike.
ALIKE_WITHIN = 0.01
RESAMPLES = 2000


def quality(cost: int | None, best_known: int) -> float:
    """Best known cost over cost, at most 1.05; 0 for an invalid answer (`cost` None)."""
    if cost is None:
        return 0.0
    return QUALITY_AT_MOST if cost == 0 else min(QUALITY_AT_MOST, best_known / cost)


def gain(cost: int | None, best_known: int, single: int | None) -> float | None:
    """0 is the best single device, 1 the best known cost; None where a cost is missing or there is no room."""
    if cost is None or single is None or single <= best_known:
        return None
    return (single - cost) / (single - best_known)


def has_headroom(best_known: int, single: int | None) -> bool:
    """True where an instance is scored; always true where no single device holds the problem."""
    return single is None or (best_known > 0 and (single - best_known) / best_known >= HEADROOM_AT_LEAST)


def solved_alike(costs: Sequence[int | str | None]) -> bool:
    """True where at least two entries answered, all of them, and no cost is much above the least (text: no answer)."""
    known = [cost for cost in costs if isinstance(cost, int)]
    return 1 < len(known) == len(costs) and max(known) <= (1 + ALIKE_WITHIN) * min(known)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of the values, each at least `QUALITY_AT_LEAST`; 0 for no values."""
    if not values:
        return 0.0
    return math.exp(math.fsum(math.log(max(value, QUALITY_AT_LEAST)) for value in values) / len(values))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the geometric mean, with a fixed seed."""
    if len(values) < 2:
        return geometric_mean(values), geometric_mean(values)
    logs = np.log(np.maximum(np.array(values), QUALITY_AT_LEAST))
    draws = np.random.default_rng(0).integers(0, len(logs), size=(RESAMPLES, len(logs)))
    low, high = np.quantile(logs[draws].mean(axis=1), [0.025, 0.975])
    return math.exp(low), math.exp(high)


def shared_ranks(scores: Sequence[tuple[float, float, float]]) -> list[int]:
    """Ranks of (score, low, high), best first; entries inside each other's interval share the better rank."""
    ranks: list[int] = []
    leader = 0
    for position, (score, low, high) in enumerate(scores):
        first, first_low, first_high = scores[leader]
        if not (first_low <= score <= first_high and low <= first <= high):
            leader = position
        ranks.append(leader + 1)
    return ranks
