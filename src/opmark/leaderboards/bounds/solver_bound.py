"""A bound by integer programming: the assignment of units to devices, without their order.

Pinedo, "Scheduling", 2016, section 8: the assignment relaxation of a makespan problem. HiGHS (inside scipy) proves it;
everything that it has proved when time is up is a bound.
"""

import math

from opmark.leaderboards.bounds.integer_program import IntegerProgram
from opmark.leaderboards.bounds.relaxation import LOAD_PROFILES, has_splits, is_latency, is_load, profile_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.simulator.direct_models import device_prices

# With more variables the solver spends all its time on reading the program.
VARIABLES_AT_MOST = 60_000


def solver_bound(problem: Problem, *, seconds: float) -> int | None:
    """A proven lower bound, in whole cost steps; None if the program does not apply, is too large, or proves nothing.

    Covers latency and loads without replicas. Groups are whole on one device; a device works on what it has, one
    slot's worth at a time; a path takes its units' times and, where it must change devices, the least transfer.
    """
    latency, load = is_latency(problem), is_load(problem)
    if problem.objective == "cost" or problem.replication or has_splits(problem) or not (latency or load):
        return None
    relaxed = _Program(problem, groups_of(problem))
    relaxed.assignments()
    if latency:
        relaxed.paths()
    elif profile_of(problem) == "maxload_serial":
        relaxed.communication()
    if relaxed.program.variables > VARIABLES_AT_MOST:
        return None
    proved = relaxed.program.prove(seconds)
    return None if proved is None else max(0, math.floor(proved * relaxed.scale * (1 - 1e-6)))


class _Program:
    """Variables: the cost, then one binary per group and device, then times; all in the scale of the largest time."""

    def __init__(self, problem: Problem, groups: Groups) -> None:
        self.problem = problem
        self.groups = groups
        self.arrays = problem.arrays
        self.program = IntegerProgram()
        self.scale = float(max(1, groups.run_ns.max()))
        self.choice: dict[tuple[int, int], int] = {}
        for group, row in enumerate(groups.allowed.tolist()):
            for device, able in enumerate(row):
                if able:
                    self.choice[group, device] = self.program.binary()

    def assignments(self) -> None:
        """Every group has a device; the cost is at least every device's work over its slots; weights fit."""
        arrays, groups = self.arrays, self.groups
        for group in range(groups.count):
            own = {self.choice[key]: 1.0 for key in self.choice if key[0] == group}
            self.program.add(own, 1.0)
            self.program.add(dict.fromkeys(own, -1.0), -1.0)
        single = profile_of(self.problem) in LOAD_PROFILES
        shared = _shared_weights(self.problem, groups)
        for device in range(arrays.devices):
            slots = 1 if single else int(arrays.device_slots[device])
            mine = {group: column for (group, where), column in self.choice.items() if where == device}
            work = {column: -float(groups.run_ns[group, device]) / self.scale for group, column in mine.items()}
            self.program.add({0: float(slots), **work}, 0.0)
            capacity = float(arrays.device_memory_bytes[device])
            own = {column: -(groups.weight_bytes[group] - shared[group]) / capacity for group, column in mine.items()}
            self.program.add(own, -1.0)

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
        """A unit ends after what it reads has ended and, from another device, has travelled the fastest link."""
        arrays = self.arrays
        of_unit = self.groups.of_unit.tolist()
        end = [self.program.real() for _ in range(arrays.units)]
        travel = _least_travel_ns(self.problem)
        cut: dict[tuple[int, int], int] = {}
        for unit in range(arrays.units):
            table = arrays.run_ns[unit].tolist()
            own = {
                self.choice[of_unit[unit], device]: -value / self.scale
                for device, value in enumerate(table)
                if (of_unit[unit], device) in self.choice
            }
            self.program.add({end[unit]: 1.0, **own}, 0.0)
            self.program.add({0: 1.0, end[unit]: -1.0}, 0.0)
            for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
                maker = int(arrays.tensor_producer[tensor])
                if maker < 0:
                    continue
                terms = {end[unit]: 1.0, end[maker]: -1.0, **own}
                pair = of_unit[maker], of_unit[unit]
                if pair[0] != pair[1] and travel[tensor]:
                    if pair not in cut:
                        cut[pair] = self._apart(*pair)
                    terms[cut[pair]] = -travel[tensor] / self.scale
                self.program.add(terms, 0.0)

    def _apart(self, one: int, other: int) -> int:
        """A variable that is at least 1 where two groups have different devices."""
        apart = self.program.real()
        for device in range(self.arrays.devices):
            terms = {apart: 1.0}
            if (one, device) in self.choice:
                terms[self.choice[one, device]] = -1.0
            if (other, device) in self.choice:
                terms[self.choice[other, device]] = 1.0
            self.program.add(terms, 0.0)
        return apart


def _least_travel_ns(problem: Problem) -> list[int]:
    """Per tensor, the least time on any link, layout costs left out; 0 where two devices are not joined."""
    arrays = problem.arrays
    links = arrays.sizes.links
    if not links:
        return [0] * len(arrays.tensor_bytes)
    least = arrays.hop_ns.reshape(-1, links).min(axis=1)
    found: list[int] = least[arrays.tensor_size_class].tolist()
    return found


def _shared_weights(problem: Problem, groups: Groups) -> list[int]:
    """Bytes per group of weights that other groups use too: each device may hold them once for all."""
    users: dict[str, set[int]] = {}
    for unit, group in zip(problem.units, groups.of_unit.tolist(), strict=True):
        for name in unit.weights:
            users.setdefault(name, set()).add(group)
    found = [0] * groups.count
    for name, used_by in users.items():
        if len(used_by) > 1:
            for group in used_by:
                found[group] += problem.held_bytes[name]
    return found
