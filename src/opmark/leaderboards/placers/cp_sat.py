"""An exact placement by constraint programming with OR-tools (extra `solvers`): who runs where, and when.

Perron, Didier, Gay, "The CP-SAT-LP solver", CP 2023. Units are optional intervals on the slots of a device, hops of
transfers are optional intervals on the port of a link; one transfer per tensor and destination. For throughput only the
loads of devices and ports count, for dnn-partitioning's maximum load what every device does and exchanges. What must be
contiguous is.
"""

import time
from contextlib import suppress
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.load_constraints import add_contiguity, add_exchange
from opmark.leaderboards.bounds.relaxation import is_latency, profile_of
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.search.states import spread_ranks
from opmark.leaderboards.simulator.simulate import simulate

# (tensor, source, destination) combinations beyond which the model would only be built.
PASSAGES_AT_MOST = 40_000
BUDGET_SHARE = 0.9
# Of the time that is left, for building a model; and of the time that this took, for the solver to read it.
BUILD_SHARE, READ_SHARE = 0.6, 0.3
# Of the budget, for the dynamic program that the solver is to beat.
PROGRAM_SHARE = 0.4


class CpSat(Placer):
    """Optimal where the solver proves it in time; else its best, or the heuristic answer it was given as a hint."""

    summary = "constraint programming over devices, starts and transfers (OR-tools CP-SAT, extra solvers)"

    def prepare(self) -> None:
        """Import the solver, where it is installed."""
        with suppress(ImportError):
            import ortools.sat.python.cp_model  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The solver's best. Raises `PlacementError` without OR-tools."""
        try:
            from ortools.sat.python import cp_model
        except ImportError as error:
            raise PlacementError("cp-sat needs OR-tools", hint="pip install 'opmark[solvers]'") from error
        incumbent = Incumbent(problem, "cp-sat", budget_s * BUDGET_SHARE)
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        arrays = problem.arrays
        rules = profile_named(problem.profile)
        exchanged = profile_of(problem) == "maxload_serial"
        if problem.contiguous or exchanged:
            incumbent.consider_placer(PLACERS.load("dnn-partitioning-dp"), seed, share=PROGRAM_SHARE)
        else:
            for placer in map(PLACERS.load, ("heft", "cpop", "peft")):
                incumbent.consider_placer(placer, seed)
        passages = len(arrays.tensor_bytes) * arrays.devices * (arrays.devices - 1)
        known = (rules.model is None or exchanged) and problem.objective != "cost"
        if known and passages <= PASSAGES_AT_MOST and incumbent.left_s > 0:
            _solve(_Model(problem, cp_model, contention=rules.contention), cp_model, incumbent, seed)
        return incumbent.solution()


PLACER = CpSat()


def _solve(model: "_Model", cp_model: Any, incumbent: Incumbent, seed: int) -> None:
    """Give the incumbent what the solver finds in the time that building the model leaves."""
    begun_s = incumbent.left_s
    if not model.build(time.monotonic() + BUILD_SHARE * begun_s):
        return
    model.hint(incumbent)
    built_s = begun_s - incumbent.left_s
    seconds = incumbent.left_s - READ_SHARE * built_s
    if seconds <= 0:
        return
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model.model) in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        for placement in model.placements(solver):
            incumbent.consider(placement)


class _Model:
    """Times in ns; a literal per group and device, starts and ends per unit, arrivals per tensor and device."""

    def __init__(self, problem: Problem, cp_model: Any, *, contention: bool) -> None:
        self.problem, self.groups = problem, groups_of(problem)
        self.model = cp_model.CpModel()
        arrays = problem.arrays
        self.latency = is_latency(problem)
        self.exchanged = profile_of(problem) == "maxload_serial"
        hops = len(arrays.tensor_bytes) * arrays.devices * max(1, int(np.diff(arrays.route_offsets).max(initial=0)))
        self.horizon = int(arrays.run_ns.max(axis=1).sum()) + hops * int(arrays.hop_ns.max(initial=0))
        self.horizon += 2 * arrays.devices * int(arrays.boundary_ns.sum())
        self.contention = contention
        self.cost = self.model.new_int_var(0, self.horizon, "cost")
        self.on: list[dict[int, Any]] = []
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
            self.model.add(self.cost * slots[device] >= sum(literal * ns for literal, ns in self.load[device]))
        for port, spans in enumerate(self.ports):
            if self.contention and self.latency:
                self.model.add_no_overlap(spans)
            elif self.contention:
                self.model.add(self.cost >= sum(literal * ns for literal, ns in self.port_load[port]))
        self.model.minimize(self.cost)
        return True

    def _memory(self) -> None:
        """Weights count once per device; what else is held is left to the simulator."""
        arrays, problem = self.problem.arrays, self.problem
        numbers = {name: number for number, name in enumerate(sorted(problem.weights))}
        users: dict[str, set[int]] = {}
        for unit, group in zip(problem.units, self.groups.of_unit.tolist(), strict=True):
            for name in unit.weights:
                users.setdefault(name, set()).add(group)
        for device in range(arrays.devices):
            terms = []
            for name, groups in sorted(users.items()):
                here = self.model.new_bool_var(f"w{numbers[name]}d{device}")
                for group in sorted(groups):
                    if device in self.on[group]:
                        self.model.add_implication(self.on[group][device], here)
                terms.append(here * problem.held_bytes[name])
            if terms:
                self.model.add(sum(terms) <= int(arrays.device_memory_bytes[device]))

    def _unit(self, unit: int) -> None:
        arrays = self.problem.arrays
        choice = self.on[int(self.groups.of_unit[unit])]
        for device, literal in choice.items():
            ns = int(arrays.run_ns[unit, device])
            self.load[device].append((literal, ns))
            if self.latency:
                self.model.add(self.end[unit] == self.start[unit] + ns).only_enforce_if(literal)
                if ns:
                    span = self.model.new_optional_interval_var(
                        self.start[unit], ns, self.end[unit], literal, f"u{unit}d{device}"
                    )
                    self.busy[device].append(span)
        if self.latency:
            self.model.add(self.cost >= self.end[unit])

    def _tensor(self, tensor: int) -> None:
        """One transfer to every other device that reads it, hop by hop."""
        arrays = self.problem.arrays
        maker = int(arrays.tensor_producer[tensor])
        units = arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]].tolist()
        made: Any = self.end[maker] if maker >= 0 else 0
        sources = self.on[int(self.groups.of_unit[maker])] if maker >= 0 else {int(arrays.tensor_home[tensor]): 1}
        for unit in units:
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
        links, types = int(arrays.sizes[4]), int(arrays.sizes[3])
        time = made
        for position, link in enumerate(route):
            ns = int(arrays.hop_ns[arrays.tensor_size_class[tensor] * links + link])
            ns += int(arrays.boundary_ns[tensor * types + arrays.device_type[ends[0]]]) if position == 0 else 0
            last = position == len(route) - 1
            ns += int(arrays.boundary_ns[tensor * types + arrays.device_type[ends[1]]]) if last else 0
            port = int(arrays.link_port[link])
            self.port_load[port].append((sent, ns))
            blocked = [int(end) for end in (arrays.link_source[link], arrays.link_destination[link])]
            blocked = [end for end in blocked if arrays.device_blocking[end]]
            for end in blocked:
                self.load[end].append((sent, ns))
            if self.latency:
                begun = self.model.new_int_var(0, self.horizon, "")
                self.model.add(begun >= time).only_enforce_if(sent)
                span = self.model.new_optional_fixed_size_interval_var(begun, ns, sent, "")
                self.ports[port].append(span)
                for end in blocked:
                    self.busy[end].append(span)
                time = begun + ns
        if self.latency:
            self.model.add(self.cost >= time).only_enforce_if(sent)
            for unit, reader in zip(readers, wanted, strict=True):
                self.model.add(self.start[unit] >= time).only_enforce_if(sent, reader)

    def hint(self, incumbent: Incumbent) -> None:
        """Start the solver from the incumbent, and let it look for nothing dearer."""
        if incumbent.best is None or incumbent.value is None:
            return
        place = incumbent.best.device.tolist()
        for members, row in zip(self.groups.members, self.on, strict=True):
            for device, literal in row.items():
                self.model.add_hint(literal, device == place[members[0]])
        if self.latency:
            schedule = simulate(self.problem, incumbent.best)
            for unit, (start, end) in enumerate(
                zip(schedule.unit_start_ns.tolist(), schedule.unit_end_ns.tolist(), strict=True)
            ):
                self.model.add_hint(self.start[unit], start)
                self.model.add_hint(self.end[unit], end)

    def placements(self, solver: Any) -> list[Placement]:
        """The solution with the default priorities, with its own, and in its strict order."""
        chosen = [next(device for device, literal in row.items() if solver.value(literal)) for row in self.on]
        device = self.groups.spread(chosen)
        found = [Placement(device=device)]
        if self.latency:
            starts = np.array([solver.value(start) for start in self.start], dtype=np.int64)
            topological = self.problem.arrays.topological
            position = np.empty(len(topological), dtype=np.int64)
            position[topological] = np.arange(len(topological))
            by_start = np.lexsort((position, starts))
            rank = np.empty(len(starts), dtype=np.int64)
            rank[by_start] = -np.arange(len(starts))
            priority = spread_ranks(self.problem, rank)
            rows: dict[int, list[int]] = {number: [] for number in range(self.problem.arrays.devices)}
            for unit in by_start.tolist():
                rows[int(device[unit])].append(unit)
            found += [Placement(device=device, priority=priority)]
            found += [Placement(device=device, priority=priority, order=rows)]
        return found
