"""The work of a device between a head and a tail: rows that tie an assignment of units to the cost.

Whatever a device does with units whose heads are at least h and whose tails are at least q lasts from h at the earliest
until q before the end: cost >= h + work / slots + q. Carlier's bound of one machine (EJOR 11(1), 1982), for a machine
whose work is still to be chosen; a device without such units demands h + q <= cost, which must be known before.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.relaxation import NEVER_NS
from opmark.leaderboards.bounds.windows import Windows
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of

# Rows that one device gets at a time.
ROWS_AT_A_TIME = 3
# A row must add this share of the cost.
LEAST_GAIN = 1e-4


@dataclass(frozen=True, slots=True)
class WindowRow:
    """The units, where they are on the device, need `around_ns` beside their own work: the head and the tail."""

    device: int
    slots: int
    around_ns: int
    units: tuple[int, ...]


class WindowLoads:
    """Finds rows for one problem. A lower bound on the cost that is known limits them."""

    def __init__(self, problem: Problem, windows: Windows) -> None:
        self._run: Integers = problem.arrays.run_ns
        self._slots = problem.arrays.device_slots
        self._windows = windows
        excluded = (self._run < 0) | (windows.head_ns >= NEVER_NS) | (windows.tail_ns >= NEVER_NS)
        groups = groups_of(problem)
        whole = np.zeros((groups.count, self._run.shape[1]), dtype=bool)
        np.logical_or.at(whole, groups.of_unit, excluded)
        self._able = ~whole[groups.of_unit]
        self.least_ns = windows.least_ns(np.where(self._able, self._run, -1))

    def raise_to(self, cost_ns: float) -> None:
        """Take in a proved lower bound on the cost, in ns."""
        self.least_ns = max(self.least_ns, int(cost_ns * (1 - 1e-6)))

    def violated(self, share: npt.NDArray[np.float64], cost_ns: float) -> list[WindowRow]:
        """Rows that shares of units on devices (U×D) and a cost do not meet, at most a few per device."""
        found: list[WindowRow] = []
        for device in range(self._run.shape[1]):
            units = np.flatnonzero(self._able[:, device] & (self._run[:, device] > 0))
            if len(units):
                found += self._of_device(device, units, share[units, device], cost_ns)
        return found

    def _of_device(
        self, device: int, units: Integers, share: npt.NDArray[np.float64], cost_ns: float
    ) -> Iterable[WindowRow]:
        head, tail = self._windows.head_ns[units, device], self._windows.tail_ns[units, device]
        slots = int(self._slots[device])
        heads, tails = np.unique(head), np.unique(tail)
        begins, ends = head[None, :] >= heads[:, None], tail[None, :] >= tails[:, None]
        work = (begins * (share * self._run[units, device])) @ ends.T
        around = heads[:, None] + tails[None, :]
        gain = np.where(around <= self.least_ns, around + work / slots - cost_ns, -np.inf)
        for _ in range(ROWS_AT_A_TIME):
            best = np.unravel_index(int(gain.argmax()), gain.shape)
            if gain[best] <= LEAST_GAIN * cost_ns:
                return
            chosen = begins[best[0]] & ends[best[1]]
            yield WindowRow(device, slots, int(around[best]), tuple(units[chosen].tolist()))
            # The next row is one of other heads and other tails.
            gain[best[0], :] = -np.inf
            gain[:, best[1]] = -np.inf
