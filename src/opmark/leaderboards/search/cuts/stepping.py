"""Compiled programs that run so many steps at a time, so that somebody looks at the clock in between."""

import time
from collections.abc import Callable

import numpy as np

from opmark.leaderboards.problem.integers import Integers

FIRST_STEPS, MOST_STEPS = 2_000, 4_000_000
# What a slice shall take, however fast the machine is.
SLICE_S = 0.02
# A slice grows by so much at most: one that happened to find little to do says little about the next.
GROWTH = 4.0


def run_in_slices(compiled: Callable[[int, Integers], None], rows: int, deadline: float) -> bool:
    """Call `compiled(steps, at)` until `at[0]` is `rows`; False where `deadline` (as `time.monotonic`) came first.

    `at` is for the program: where it goes on when it is called again.
    """
    at = np.zeros(4, dtype=np.int64)
    steps, now = FIRST_STEPS, time.monotonic()
    while at[0] < rows:
        if now > deadline:
            return False
        compiled(steps, at)
        begun, now = now, time.monotonic()
        grown = int(steps * min(GROWTH, SLICE_S / max(1e-6, now - begun)))
        steps = min(MOST_STEPS, max(FIRST_STEPS, grown))
    return True
