"""A bound by integer programming: the assignment of units to devices, without their order.

Pinedo, "Scheduling", 2016, section 8: the assignment relaxation of a makespan problem, with rows for what must happen
on a device between an early head and a late tail. HiGHS (inside scipy) proves it; everything that it has proved when
time is up is a bound.
"""

import math
import time
from collections.abc import Iterator

import numpy as np

from opmark.leaderboards.bounds.integer_program import IntegerProgram
from opmark.leaderboards.bounds.memory_rows import memory_rows
from opmark.leaderboards.bounds.relaxation import (
    LOAD_PROFILES,
    NEVER_NS,
    has_splits,
    is_latency,
    is_load,
    profile_of,
)
from opmark.leaderboards.bounds.window_loads import WindowLoads, WindowRow
from opmark.leaderboards.bounds.windows import Windows, windows_of
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.simulator.direct_models import device_prices

# With more variables the solver spends all its time on reading the program.
VARIABLES_AT_MOST = 60_000
# The share of the time in which rows for heads and tails are looked for.
ROWS_SHARE = 0.3


def solver_bound(problem: Problem, *, seconds: float, limit_ns: int | None = None) -> int | None:
    """A proven lower bound, in whole cost steps; None if the program does not apply, is too large, or proves nothing.

    Covers latency and loads without replicas. Groups are whole on one device; a device works on what it has, one
    slot's worth at a time; a path takes its units' times and, where it must change devices, the least transfer.
    `limit_ns`, the cost of a valid answer, leaves out what takes longer; the bound is no larger.
    """
    latency, load = is_latency(problem), is_load(problem)
    if problem.objective == "cost" or problem.replication or has_splits(problem) or not (latency or load):
        return None
    begun = time.monotonic()
    relaxed = _written(problem, limit_ns)
    if relaxed.program.variables > VARIABLES_AT_MOST:
        return None
    relaxed.add_window_rows(begun + ROWS_SHARE * seconds)
    proved = relaxed.program.prove(seconds - (time.monotonic() - begun))
    if proved is None:
        return None
    found = max(0, math.floor(proved * relaxed.scale * (1 - 1e-6)))
    return found if limit_ns is None else min(found, limit_ns)


def window_rows(problem: Problem, limit_ns: int, *, seconds: float) -> list[WindowRow]:
    """Rows that make the linear relaxation of a latency problem tighter, for solutions that last `limit_ns` at most."""
    if not is_latency(problem) or has_splits(problem) or problem.replication:
        return []
    relaxed = _written(problem, limit_ns)
    if relaxed.program.variables <= VARIABLES_AT_MOST:
        relaxed.add_window_rows(time.monotonic() + seconds)
    return relaxed.rows


def is_excluded(problem: Problem, below_ns: int, *, seconds: float) -> bool | None:
    """True if the program proves that no solution costs less than `below_ns`, None if time is too short for that.

    This decides again what `solver_bound` proved, from the limit instead of a known answer.
    """
    begun = time.monotonic()
    relaxed = _written(problem, below_ns - 1)
    relaxed.program.add({0: -1.0}, -(below_ns - 1) / relaxed.scale)
    relaxed.add_window_rows(begun + ROWS_SHARE * seconds)
    return relaxed.program.is_infeasible(seconds - (time.monotonic() - begun)) or None


def _written(problem: Problem, limit_ns: int | None) -> "_Program":
    relaxed = _Program(problem, groups_of(problem), limit_ns)
    relaxed.assignments()
    if is_latency(problem):
        relaxed.paths()
    elif profile_of(problem) == "maxload_serial":
        relaxed.communication()
    return relaxed


class _Program:
    """Variables: the cost, then one binary per group and device, then times; all in the scale of the largest time."""

    def __init__(self, problem: Problem, groups: Groups, limit_ns: int | None) -> None:
        self.problem = problem
        self.groups = groups
        self.arrays = problem.arrays
        self.program = IntegerProgram()
        self.scale = float(max(1, groups.run_ns.max()))
        # Heads and tails are those of a single pass under opsim 1.
        single = is_latency(problem) and problem.objective == "latency" and not problem.in_micro_batches
        self.windows = windows_of(problem, limit_ns=limit_ns) if single and profile_of(problem) == "opsim1" else None
        able = groups.allowed if self.windows is None else groups.allowed & ~_excluded(self.windows, groups)
        self.able = able
        self.again: dict[tuple[int, int], int] = {}
        self.rows: list[WindowRow] = []
        self.choice: dict[tuple[int, int], int] = {}
        for group, row in enumerate(able.tolist()):
            for device, fits in enumerate(row):
                if fits:
                    self.choice[group, device] = self.program.binary()

    def assignments(self) -> None:
        """Every group has a device; the cost is at least every device's work over its slots; memory suffices."""
        arrays, groups = self.arrays, self.groups
        for group in range(groups.count):
            own = {self.choice[key]: 1.0 for key in self.choice if key[0] == group}
            self.program.add(own, 1.0)
            self.program.add(dict.fromkeys(own, -1.0), -1.0)
        self._memory()
        single = profile_of(self.problem) in LOAD_PROFILES
        for device in range(arrays.devices):
            slots = 1 if single else int(arrays.device_slots[device])
            mine = {group: column for (group, where), column in self.choice.items() if where == device}
            work = {column: -float(groups.run_ns[group, device]) / self.scale for group, column in mine.items()}
            for (unit, where), column in self.again.items():
                if where == device:
                    work[column] = -float(arrays.run_ns[unit, device]) / self.scale
            self.program.add({0: float(slots), **work}, 0.0)

    def _memory(self) -> None:
        for row in memory_rows(self.problem, self.groups, self.able):
            terms: dict[int, float] = {}
            scale = max(1, abs(row.capacity_bytes))
            for item in row.kept:
                sure, spared = (
                    [[self.choice[group, row.device] for group in one] for one in sets]
                    for sets in (item.wanted, item.spared)
                )
                if spared or len(sure) > 1 or len(sure[0]) > 1:
                    held = self.program.real(1.0)
                    again = dict.fromkeys(self._again(item.producer), 1.0) if spared else {}
                    for columns, further in [(one, {}) for one in sure] + [(one, again) for one in spared]:
                        self.program.add({held: 1.0} | further | dict.fromkeys(columns, -1.0), 1.0 - len(columns))
                else:
                    held = sure[0][0]
                terms[held] = terms.get(held, 0.0) - item.size_bytes / scale
            self.program.add(terms, -row.capacity_bytes / scale)

    def _again(self, unit: int) -> list[int]:
        """Per device a variable that is 1 if the unit runs once more there, which takes its time again."""
        group = int(self.groups.of_unit[unit])
        places = [device for device in range(self.arrays.devices) if (group, device) in self.choice]
        for device in places:
            if (unit, device) not in self.again:
                twice = self.again[unit, device] = self.program.real(1.0)
                self.program.add({self.choice[group, device]: 1.0, twice: -1.0}, 0.0)
        return [self.again[unit, device] for device in places]

    def communication(self) -> None:
        """dnn-partitioning's prices: a device pays for each tensor it takes in or sends out, once."""
        arrays, of_unit = self.arrays, self.groups.of_unit.tolist()
        out, into = device_prices(self.problem)
        extra: dict[int, dict[int, float]] = {device: {} for device in range(arrays.devices)}
        for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
            if maker < 0:
                continue
            own = of_unit[maker]
            units = arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]]
            readers = {of_unit[unit] for unit in units.tolist()} - {own}
            for device in range(arrays.devices):
                for table, sign in ((into, 1.0), (out, -1.0)):
                    price = float(table[tensor, device]) / self.scale
                    if not price or not readers:
                        continue
                    paid = self.program.real()
                    extra[device][paid] = -price
                    for reader in readers:
                        terms = {paid: 1.0}
                        for group, share in ((reader, -sign), (own, sign)):
                            if (group, device) in self.choice:
                                terms[self.choice[group, device]] = share
                        self.program.add(terms, 0.0)
        for device, terms in extra.items():
            mine = {group: column for (group, where), column in self.choice.items() if where == device}
            work = {column: -float(self.groups.run_ns[group, device]) / self.scale for group, column in mine.items()}
            self.program.add({0: 1.0, **work, **terms}, 0.0)

    def paths(self) -> None:
        """A unit ends after what it reads has ended and, from another device, has travelled the fastest link.

        It starts after its head, and what must follow it takes its tail.
        """
        arrays = self.arrays
        of_unit = self.groups.of_unit.tolist()
        end = [self.program.real() for _ in range(arrays.units)]
        travel = _least_travel_ns(self.problem)
        for unit in range(arrays.units):
            own = self._of_unit(unit, arrays.run_ns)
            self.program.add({end[unit]: 1.0, **own}, 0.0)
            self.program.add({0: 1.0, end[unit]: -1.0}, 0.0)
            if self.windows is not None:
                self.program.add({end[unit]: 1.0, **self._of_unit(unit, arrays.run_ns + self.windows.head_ns)}, 0.0)
                self.program.add({0: 1.0, end[unit]: -1.0, **self._of_unit(unit, self.windows.tail_ns)}, 0.0)
            for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
                maker = int(arrays.tensor_producer[tensor])
                if maker < 0:
                    continue
                terms = {end[unit]: 1.0, end[maker]: -1.0, **own}
                pair = of_unit[maker], of_unit[unit]
                if pair[0] != pair[1] and travel[tensor].any():
                    terms[self._delay(*pair, travel[tensor])] = -1.0
                self.program.add(terms, 0.0)

    def _of_unit(self, unit: int, table: Integers) -> dict[int, float]:
        """Minus the value of the unit on its device, as terms."""
        group = int(self.groups.of_unit[unit])
        return {
            self.choice[group, device]: -value / self.scale
            for device, value in enumerate(table[unit].tolist())
            if (group, device) in self.choice
        }

    def _delay(self, one: int, other: int, travel_ns: Integers) -> int:
        """A variable that is at least the travel from the device of a group to another one's, if they differ.

        `travel_ns` is 2×D: the least to leave each device, and the least to reach it.
        """
        delay = self.program.real()
        for device in range(self.arrays.devices):
            columns = self.choice.get((one, device)), self.choice.get((other, device))
            for (here, there), least_ns in zip((columns, columns[::-1]), travel_ns[:, device].tolist(), strict=True):
                if here is not None and least_ns:
                    terms = {delay: 1.0, here: -least_ns / self.scale}
                    self.program.add(terms | ({} if there is None else {there: least_ns / self.scale}), 0.0)
        return delay

    def add_window_rows(self, deadline: float) -> None:
        """Rows that the linear relaxation violates: what a device does between a head and a tail fits in between."""
        if self.windows is None:
            return
        loads = WindowLoads(self.problem, self.windows)
        for _ in _until(deadline):
            values = self.program.relaxed(deadline - time.monotonic())
            if values is None:
                return
            share = np.zeros((self.groups.count, self.arrays.devices))
            for key, column in self.choice.items():
                share[key] = values[column]
            loads.raise_to(values[0] * self.scale)
            found = loads.violated(share[self.groups.of_unit], values[0] * self.scale)
            if not found:
                return
            self.rows += found
            for row in found:
                terms = {0: float(row.slots)}
                for unit in row.units:
                    column = self.choice[int(self.groups.of_unit[unit]), row.device]
                    terms[column] = terms.get(column, 0.0) - self.arrays.run_ns[unit, row.device] / self.scale
                self.program.add(terms, row.slots * row.around_ns / self.scale)


def _until(deadline: float) -> Iterator[None]:
    while time.monotonic() < deadline:
        yield


def _excluded(windows: Windows, groups: Groups) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """G×D: true where a unit of the group has no window."""
    found = np.zeros((groups.count, windows.head_ns.shape[1]), dtype=bool)
    np.logical_or.at(found, groups.of_unit, (windows.head_ns >= NEVER_NS) | (windows.tail_ns >= NEVER_NS))
    return found


def _least_travel_ns(problem: Problem) -> Integers:
    """T×2×D: the least time on any link out of each device, and on any into it, layout costs left out."""
    arrays = problem.arrays
    links = int(arrays.sizes.links)
    found = np.zeros((len(arrays.tensor_bytes), 2, arrays.devices), dtype=np.int64)
    if not links:
        return found
    table = arrays.hop_ns.reshape(-1, links)[arrays.tensor_size_class]
    # A bus carries a tensor to all its readers at once, over a link that a route need not begin or end with.
    any_link = profile_of(problem) == "source_bus_multicast"
    for device in range(arrays.devices):
        for side, ends in enumerate((arrays.link_source, arrays.link_destination)):
            own = (ends == device) | any_link
            if own.any():
                found[:, side, device] = table[:, own].min(axis=1)
    return found
