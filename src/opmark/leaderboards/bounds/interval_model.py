"""A constraint program of a problem: units as optional intervals on devices, hops of transfers on the ports of links.

One transfer per tensor and destination. For throughput only the loads of devices and ports count, for
dnn-partitioning's maximum load what every device does and exchanges. What must be contiguous is. Memory counts what
every schedule keeps (`memory_rows`). So every schedule of the simulator is a solution of
the program, and what the program excludes is impossible.

Times may be whole steps of a coarse grid. Every duration is rounded down to it, so that each schedule, rounded down,
is still a solution, and bounds stay valid.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from opmark.leaderboards.bounds.load_constraints import add_contiguity, add_exchange
from opmark.leaderboards.bounds.memory_rows import memory_rows
from opmark.leaderboards.bounds.relaxation import NEVER_NS, is_latency, profile_of
from opmark.leaderboards.bounds.window_loads import WindowRow
from opmark.leaderboards.bounds.windows import Windows, hops_ns
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import simulate


class IntervalModel:
    """Times in steps of `grid_ns`; a literal per group and device, starts and ends per unit.

    With `windows` nothing may begin before its earliest start, or so late that its tail would end after
    `limit_ns`, the cost of a known answer. `rows` tie the work of devices to the cost once more.
    """

    def __init__(
        self,
        problem: Problem,
        cp_model: Any,
        *,
        contention: bool,
        grid_ns: int = 1,
        limit_ns: int | None = None,
        windows: Windows | None = None,
        rows: Sequence[WindowRow] = (),
    ) -> None:
        self.problem, self.groups = problem, groups_of(problem)
        self.grid_ns, self.windows, self.rows = grid_ns, windows, rows
        self.model = cp_model.CpModel()
        arrays = problem.arrays
        self.latency = is_latency(problem)
        self.exchanged = profile_of(problem) == "maxload_serial"
        hops = len(arrays.tensor_bytes) * arrays.devices * max(1, int(np.diff(arrays.route_offsets).max(initial=0)))
        self.horizon = int(arrays.run_ns.max(axis=1).sum()) + hops * int(arrays.hop_ns.max(initial=0))
        self.horizon += 2 * arrays.devices * int(arrays.boundary_ns.sum())
        self.horizon = (self.horizon if limit_ns is None else limit_ns) // grid_ns
        self.contention = contention
        self.cost = self.model.new_int_var(0, self.horizon, "cost")
        self.on: list[dict[int, Any]] = []
        self.again: dict[int, dict[int, Any]] = {}
        self.start: list[Any] = []
        self.end: list[Any] = []
        self.busy: list[list[Any]] = [[] for _ in range(arrays.devices)]
        self.load: list[list[tuple[Any, int]]] = [[] for _ in range(arrays.devices)]
        self.ports: list[list[Any]] = [[] for _ in range(int(arrays.sizes[5]))]
        self.port_load: list[list[tuple[Any, int]]] = [[] for _ in range(int(arrays.sizes[5]))]

    def build(self, deadline: float) -> bool:
        """Write everything down; False where `deadline` (as `time.monotonic`) came first."""
        arrays = self.problem.arrays
        self.on = [
            {device: self.model.new_bool_var(f"g{group}d{device}") for device in np.flatnonzero(row).tolist()}
            for group, row in enumerate(self.groups.allowed)
        ]
        for row in self.on:
            self.model.add_exactly_one(row.values())
        self._memory()
        self.start = [self.model.new_int_var(0, self.horizon, f"s{unit}") for unit in range(arrays.units)]
        self.end = [self.model.new_int_var(0, self.horizon, f"e{unit}") for unit in range(arrays.units)]
        for unit in range(arrays.units):
            if time.monotonic() > deadline:
                return False
            self._unit(unit)
        choices = [self.on[group] for group in self.groups.of_unit.tolist()]
        if self.problem.contiguous:
            add_contiguity(self.model, self.problem, choices)
        if self.exchanged:
            add_exchange(self.model, self.problem, choices, self.load)
        for tensor in range(0 if self.exchanged else len(arrays.tensor_bytes)):
            if time.monotonic() > deadline:
                return False
            self._tensor(tensor)
        slots = [1] * arrays.devices if self.exchanged else arrays.device_slots.tolist()
        for device in range(arrays.devices):
            if self.latency and slots[device] > 1:
                self.model.add_cumulative(self.busy[device], [1] * len(self.busy[device]), slots[device])
            elif self.latency:
                self.model.add_no_overlap(self.busy[device])
            self.model.add(self._at_least(slots[device]) >= sum(literal * ns for literal, ns in self.load[device]))
        for port, spans in enumerate(self.ports):
            if self.contention and self.latency:
                self.model.add_no_overlap(spans)
            elif self.contention:
                self.model.add(self._at_least(1) >= sum(literal * ns for literal, ns in self.port_load[port]))
        self._window_rows()
        self.model.minimize(self.cost)
        return True

    def _at_least(self, slots: int) -> Any:
        """The most ns of work on so many slots within the cost, which is rounded down to the grid."""
        whole = self.cost * (slots * self.grid_ns)
        return whole if self.grid_ns == 1 else whole + slots * self.grid_ns - 1

    def _memory(self) -> None:
        """Rows of what every solution keeps; the simulator counts the rest."""
        for row in memory_rows(self.problem, self.groups):
            terms = []
            for item in row.kept:
                sure, spared = (
                    [[self.on[group][row.device] for group in sorted(one)] for one in sets]
                    for sets in (item.wanted, item.spared)
                )
                if spared or len(sure) > 1 or len(sure[0]) > 1:
                    held = self.model.new_bool_var("")
                    again = list(self._again(item.producer).values()) if spared else []
                    for literals in sure:
                        self.model.add_bool_or([held, *(literal.negated() for literal in literals)])
                    for literals in spared:
                        self.model.add_bool_or([held, *again, *(literal.negated() for literal in literals)])
                else:
                    held = sure[0][0]
                terms.append(held * item.size_bytes)
            self.model.add(sum(terms) <= row.capacity_bytes)

    def _again(self, unit: int) -> dict[int, Any]:
        """Per device a literal that is true if the unit runs once more there, which takes its time again."""
        if unit not in self.again:
            self.again[unit] = {}
            for device, literal in self.on[int(self.groups.of_unit[unit])].items():
                twice = self.model.new_bool_var("")
                self.model.add_implication(twice, literal)
                self.load[device].append((twice, int(self.problem.arrays.run_ns[unit, device])))
                self.again[unit][device] = twice
        return self.again[unit]

    def _window_rows(self) -> None:
        """Redundant for the intervals, but not for the linear relaxation of the program."""
        for row in self.rows:
            literals = [(self.on[int(self.groups.of_unit[unit])].get(row.device), unit) for unit in row.units]
            work = sum(
                literal * int(self.problem.arrays.run_ns[unit, row.device])
                for literal, unit in literals
                if literal is not None
            )
            self.model.add(self._at_least(row.slots) >= work + row.slots * row.around_ns)

    def _unit(self, unit: int) -> None:
        arrays = self.problem.arrays
        choice = self.on[int(self.groups.of_unit[unit])]
        for device, literal in choice.items():
            ns = int(arrays.run_ns[unit, device])
            self.load[device].append((literal, ns))
            if self.latency:
                steps = ns // self.grid_ns
                self.model.add(self.end[unit] == self.start[unit] + steps).only_enforce_if(literal)
                self._window(unit, device, literal)
                if steps:
                    span = self.model.new_optional_interval_var(
                        self.start[unit], steps, self.end[unit], literal, f"u{unit}d{device}"
                    )
                    self.busy[device].append(span)
        if self.latency:
            self.model.add(self.cost >= self.end[unit])

    def _window(self, unit: int, device: int, literal: Any) -> None:
        if self.windows is None:
            return
        head, tail = int(self.windows.head_ns[unit, device]), int(self.windows.tail_ns[unit, device])
        if max(head, tail) >= NEVER_NS or (head + tail) // self.grid_ns > self.horizon:
            self.model.add(literal == 0)
            return
        self.model.add(self.start[unit] >= head // self.grid_ns).only_enforce_if(literal)
        self.model.add(self.cost >= self.end[unit] + tail // self.grid_ns).only_enforce_if(literal)

    def _tensor(self, tensor: int) -> None:
        """One transfer to every other device that reads it, hop by hop."""
        arrays = self.problem.arrays
        maker = int(arrays.tensor_producer[tensor])
        units = arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]].tolist()
        made: Any = self.end[maker] if maker >= 0 else 0
        sources = self.on[int(self.groups.of_unit[maker])] if maker >= 0 else {int(arrays.tensor_home[tensor]): 1}
        for unit in units if self.latency else ():
            self.model.add(self.start[unit] >= made)
        for there in range(arrays.devices):
            readers = [unit for unit in units if there in self.on[int(self.groups.of_unit[unit])]]
            home = bool(arrays.tensor_output[tensor]) and there == arrays.host
            if not readers and not home:
                continue
            wanted = [self.on[int(self.groups.of_unit[unit])][there] for unit in readers]
            for here, literal in sources.items():
                if here != there and (readers or home):
                    self._passage(tensor, (here, there), (made, literal), wanted, readers, home=home)

    def _passage(
        self,
        tensor: int,
        ends: tuple[int, int],
        origin: tuple[Any, Any],
        wanted: list[Any],
        readers: list[int],
        *,
        home: bool,
    ) -> None:
        arrays = self.problem.arrays
        made, literal = origin
        sent = self.model.new_bool_var(f"t{tensor}from{ends[0]}to{ends[1]}")
        if home:
            self.model.add(sent == literal)
        for reader in wanted:
            self.model.add(sent >= literal + reader - 1)
        number = ends[0] * arrays.devices + ends[1]
        route = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]].tolist()
        if not route:
            self.model.add(sent == 0)
            return
        spans_ns = hops_ns(arrays, tensor, route, ends)
        time = made
        if self.latency and arrays.device_copying[ends[0]] and int(arrays.tensor_producer[tensor]) >= 0:
            # The producer has paid already, after the end that the program knows.
            paid_ns = int(arrays.boundary_ns[tensor * arrays.sizes.types + arrays.device_type[ends[0]]])
            spans_ns[0] -= paid_ns
            time = made + paid_ns // self.grid_ns
        for link, ns in zip(route, spans_ns, strict=True):
            port = int(arrays.link_port[link])
            self.port_load[port].append((sent, ns))
            leaves, arrives = int(arrays.link_source[link]), int(arrays.link_destination[link])
            blocked = [leaves] if arrays.device_blocking[leaves] else []
            copied = self.latency and bool(arrays.device_copying[arrives])
            blocked += [arrives] if copied or arrays.device_blocking[arrives] else []
            for end in blocked:
                self.load[end].append((sent, ns))
            if self.latency:
                steps = ns // self.grid_ns
                begun = self.model.new_int_var(0, self.horizon, "")
                self.model.add(begun >= time).only_enforce_if(sent)
                span = self.model.new_optional_fixed_size_interval_var(begun, steps, sent, "")
                self.ports[port].append(span)
                for end in blocked:
                    self.busy[end].append(span)
                time = begun + steps
        if self.latency:
            self.model.add(self.cost >= time).only_enforce_if(sent)
            for unit, reader in zip(readers, wanted, strict=True):
                self.model.add(self.start[unit] >= time).only_enforce_if(sent, reader)

    def hint(self, placement: Placement) -> None:
        """Start the solver from a known answer."""
        place = placement.device.tolist()
        for members, row in zip(self.groups.members, self.on, strict=True):
            for device, literal in row.items():
                self.model.add_hint(literal, device == place[members[0]])
        if self.latency:
            schedule = simulate(self.problem, placement)
            for unit, (start, end) in enumerate(
                zip(schedule.unit_start_ns.tolist(), schedule.unit_end_ns.tolist(), strict=True)
            ):
                self.model.add_hint(self.start[unit], start // self.grid_ns)
                self.model.add_hint(self.end[unit], end // self.grid_ns)
