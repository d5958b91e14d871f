"""A transfer's time as a few straight lines in log–log space, through measured points."""

import math
from bisect import bisect_left
from collections.abc import Sequence

Point = tuple[float, float]


def fitted(points: Sequence[Point], *, tolerance: float) -> tuple[Point, ...]:
    """The fewest of `points` (size, time; ascending, positive) whose polyline misses none by more than `tolerance`.

    Times are made non-decreasing first: a larger transfer that read faster is noise. Raises `ValueError` for fewer
    than two points.
    """
    if len(points) < 2:
        raise ValueError("a line needs two points")
    rising = _rising(points)
    # Shortest path over the points: how few lines reach point j.
    lines = [0.0] + [math.inf] * (len(rising) - 1)
    before = [0] * len(rising)
    for end in range(1, len(rising)):
        for start in range(end):
            if lines[start] + 1 < lines[end] and _misses(rising, start, end) <= tolerance:
                lines[end], before[end] = lines[start] + 1, start
    kept = [len(rising) - 1]
    while kept[-1]:
        kept.append(before[kept[-1]])
    return tuple(rising[index] for index in reversed(kept))


def time_at(knots: Sequence[Point], size: float) -> float:
    """The polyline's time at `size`; before the first knot the first time, after the last one its rate."""
    sizes = [knot[0] for knot in knots]
    if size <= sizes[0]:
        return knots[0][1]
    if size >= sizes[-1]:
        (low, low_ns), (high, high_ns) = knots[-2:]
        return high_ns + (size - high) * max(high_ns - low_ns, 0.0) / (high - low)
    above = bisect_left(sizes, size)
    (low, low_ns), (high, high_ns) = knots[above - 1], knots[above]
    share = math.log(size / low) / math.log(high / low)
    return math.exp(math.log(low_ns) + share * (math.log(high_ns) - math.log(low_ns)))


def largest_error(knots: Sequence[Point], points: Sequence[Point]) -> float:
    """The largest |model ÷ measured − 1| over `points`; 0 where there are none."""
    return max((abs(time_at(knots, size) / measured - 1) for size, measured in points), default=0.0)


def _rising(points: Sequence[Point]) -> list[Point]:
    rising: list[Point] = []
    for size, measured in points:
        rising.append((size, max(measured, rising[-1][1] if rising else 0.0)))
    return rising


def _misses(points: Sequence[Point], start: int, end: int) -> float:
    return largest_error((points[start], points[end]), points[start + 1 : end])
