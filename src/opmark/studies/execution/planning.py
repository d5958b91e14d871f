"""The programme of a placement: the units of every device in their planned order, cut where a tensor crosses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opmark.bench.execution.programme import CrossingTable, DeviceStep, DeviceWork, Programme
from opmark.core.errors import PlacementError
from opmark.core.kernels.graph import Graph
from opmark.leaderboards.making.units import aliases
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import Evaluation

# The unit that "makes" the graph inputs.
GIVEN = ""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network of a problem on every target of its cluster.

    `units` maps a unit to its kernels by target. `same_as(target, tensor, unit, other)` is the name on target `other`
    of a tensor that `unit` makes. `size_bytes(target, tensor)` is that of the plain layout.
    """

    graphs: Mapping[str, Graph]
    units: Mapping[str, Mapping[str, tuple[int, ...]]]
    same_as: Callable[[str, str, str, str], str]
    size_bytes: Callable[[str, str], int]


@dataclass(frozen=True, kw_only=True)
class PlannedProgramme:
    """A programme with its prediction: `run_ns` by (device, step), `transfer_ns` by crossing.

    The simulator pays for the ends of a cut within the transfer, and with `own_copies` for its beginning within the
    unit. The devices pay for both within their steps, and so they stand in `run_ns` here.
    """

    programme: Programme
    run_ns: Mapping[tuple[int, int], int]
    transfer_ns: Sequence[int]


def plan_programme(problem: Problem, evaluation: Evaluation, network: Network) -> PlannedProgramme:
    """The programme of a simulated placement.

    A step ends where one of its tensors is needed elsewhere, and begins where one arrives. Raises `PlacementError` for
    a cut between two runtimes at a tensor that only one of them has.
    """
    plan = _Plan(problem, evaluation, network)
    plan.collect()
    devices = tuple(plan.device_work(device) for device in range(len(problem.cluster.devices)))
    programme = Programme(devices=devices, crossings=plan.table.all())
    starts, ends = evaluation.schedule.unit_start_ns.tolist(), evaluation.schedule.unit_end_ns.tolist()
    number = {unit.name: place for place, unit in enumerate(problem.units)}
    run_ns = {
        (device, step): sum(ends[number[unit]] - starts[number[unit]] for unit in one.units)
        for device, work in enumerate(devices)
        for step, one in enumerate(work.steps)
    }
    transfer_ns = []
    predicted = plan.predicted_transfers()
    for crossing, (taken_ns, leaving_ns, entering_ns) in zip(programme.crossings, predicted, strict=True):
        transfer_ns.append(max(0, taken_ns - leaving_ns - entering_ns))
        for device, spent_ns in ((crossing.source, leaving_ns), (crossing.destination, entering_ns)):
            steps = enumerate(devices[device].steps)
            at = next(n for n, one in steps if crossing.number in (*one.sends, *one.receives))
            run_ns[device, at] += spent_ns
    return PlannedProgramme(programme=programme, run_ns=run_ns, transfer_ns=transfer_ns)


@dataclass(slots=True)
class _Needs:
    """The crossings that a unit needs, and the constant kernels that it repeats."""

    receives: list[int] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)


class _Plan:
    """The crossings of a placement."""

    def __init__(self, problem: Problem, evaluation: Evaluation, network: Network) -> None:
        self._problem, self._network = problem, network
        self._schedule = evaluation.schedule
        self._targets = [device.target for device in problem.cluster.devices]
        self._names = [unit.name for unit in problem.units]
        placed = evaluation.placement.device.tolist()
        self._device = dict(zip(self._names, placed, strict=True))
        self._host = problem.arrays.host
        rank = {int(unit): place for place, unit in enumerate(problem.arrays.topological.tolist())}
        starts, ends = self._schedule.unit_start_ns.tolist(), self._schedule.unit_end_ns.tolist()
        order = sorted(range(len(placed)), key=lambda unit: (starts[unit], ends[unit], rank[unit]))
        self._order = [
            [self._names[unit] for unit in order if placed[unit] == device] for device in range(len(self._targets))
        ]
        self._maker = {target: _makers(graph, network.units, target) for target, graph in network.graphs.items()}
        self._kernel = {
            target: {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
            for target, graph in network.graphs.items()
        }
        self._repeatable = {target: _repeatable_kernels(graph) for target, graph in network.graphs.items()}
        self.table = CrossingTable()
        self._needs: dict[str, _Needs] = {}
        self._sends: dict[str, list[int]] = {}
        self._outputs: list[int] = []
        self._feeds: list[dict[str, None]] = [{} for _ in self._targets]

    def collect(self) -> None:
        """Find every crossing: inputs of units, then outputs of the graph."""
        for device, units in enumerate(self._order):
            graph = self._network.graphs[self._targets[device]]
            here: set[int] = set()
            for unit in units:
                needs = self._needs[unit] = _Needs()
                for kernel in sorted(self._network.units[unit][self._targets[device]]):
                    for tensor in graph.nodes[kernel].inputs:
                        self._need(device, tensor, needs, here)
                    here.add(kernel)
        graph = self._network.graphs[self._targets[self._host]]
        for tensor in graph.outputs:
            found = self._from_elsewhere(self._host, tensor)
            if found is not None:
                self._outputs.append(found)

    def device_work(self, device: int) -> DeviceWork:
        """The steps of one device."""
        target = self._targets[device]
        steps: list[DeviceStep] = []
        if device == self._host and self._sends.get(GIVEN):
            steps.append(DeviceStep(sends=tuple(self._sends[GIVEN])))
        here: set[int] = set()
        kernels: list[int] = []
        names: list[str] = []
        receives: list[int] = []

        def close(sends: Sequence[int] = ()) -> None:
            if names or sends:
                steps.append(
                    DeviceStep(
                        kernels=tuple(dict.fromkeys(kernels)),
                        units=tuple(names),
                        receives=tuple(receives),
                        sends=tuple(sends),
                    )
                )
            for done in (kernels, names, receives):
                done.clear()

        for unit in self._order[device]:
            needs = self._needs[unit]
            new = [number for number in dict.fromkeys(needs.receives) if number not in here]
            if new:
                close()
                receives += new
                here.update(new)
            kernels += [*needs.repeats, *self._network.units[unit][target]]
            names.append(unit)
            if self._sends.get(unit):
                close(self._sends[unit])
        close()
        outputs: tuple[str, ...] = ()
        if device == self._host:
            missing = tuple(number for number in self._outputs if number not in here)
            if missing:
                steps.append(DeviceStep(receives=missing))
            outputs = self._network.graphs[target].outputs
        return DeviceWork(steps=tuple(steps), feeds=tuple(self._feeds[device]), outputs=outputs)

    def predicted_transfers(self) -> list[tuple[int, int, int]]:
        """The simulated time of every crossing, from its link to the end of its last hop, and that of its two ends."""
        spans: dict[tuple[str, int], dict[str, tuple[int, int, int]]] = {}
        devices = self._problem.cluster.devices
        types = [device.type for device in devices]
        schedule, offsets = self._schedule, self._schedule.hop_offsets.tolist()
        starts, ends = schedule.hop_start_ns.tolist(), schedule.hop_end_ns.tolist()
        for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
            first, last = offsets[transfer], offsets[transfer + 1]
            one = self._problem.tensors[tensor]
            taken = ends[last - 1] - starts[first] if last > first else 0
            to = int(schedule.transfer_destination[transfer])
            source = self._device[one.producer] if one.producer else self._host
            leaving, entering = (round(one.boundary_ns.get(types[end], 0)) for end in (source, to))
            # A device that copies by itself pays within the unit that makes the tensor.
            leaving = 0 if one.producer and devices[source].own_copies else leaving
            spans.setdefault((one.producer, to), {})[one.name] = taken, leaving, entering
        found = []
        for crossing in self.table.all():
            target = self._targets[crossing.source]
            unit = self._maker[target].get(crossing.tensor, GIVEN)
            known = spans.get((unit, crossing.destination), {})
            usual = max(known.values(), default=(0, 0, 0))
            found.append(known.get(crossing.tensor, known.get(crossing.received_as, usual)))
        return found

    def _need(self, device: int, tensor: str, needs: _Needs, here: set[int]) -> None:
        """Find the way of `tensor` to a unit of `device`, on which the kernels `here` run before it."""
        target = self._targets[device]
        kernel = self._kernel[target].get(tensor, -1)
        if kernel in here:
            return
        found = None
        repeated = kernel in self._repeatable[target]
        if not repeated:
            try:
                found = self._from_elsewhere(device, tensor)
            except PlacementError:
                # The other runtime has no such view, but perhaps the tensor that it is a view of.
                repeated = kernel >= 0 and self._network.graphs[target].nodes[kernel].free
                if not repeated:
                    raise
        if repeated:
            here.add(kernel)
            for name in self._network.graphs[target].nodes[kernel].inputs:
                self._need(device, name, needs, here)
            needs.repeats.append(kernel)
        elif found is not None:
            needs.receives.append(found)

    def _from_elsewhere(self, device: int, tensor: str) -> int | None:
        """The crossing that brings `tensor` to `device`; None if it is there already."""
        target = self._targets[device]
        graph = self._network.graphs[target]
        maker = self._maker[target].get(tensor, GIVEN)
        if maker == GIVEN and tensor not in graph.inputs:
            return None
        source = self._device[maker] if maker else self._host
        if source == device:
            if not maker:
                self._feeds[device][tensor] = None
            return None
        other = self._targets[source]
        name = tensor if other == target else self._network.same_as(target, tensor, maker, other)
        size_bytes = self._network.size_bytes(other, name)
        if other != target and size_bytes != self._network.size_bytes(target, tensor):
            raise PlacementError(f"{tensor!r} has another size on {other}: the placement cannot be cut there")
        number = self.table.number(
            tensor=name, received_as=tensor, source=source, destination=device, size_bytes=size_bytes
        )
        if not maker:
            self._feeds[source][name] = None
        sends = self._sends.setdefault(maker, [])
        if number not in sends:
            sends.append(number)
        return number


def _makers(graph: Graph, units: Mapping[str, Mapping[str, tuple[int, ...]]], target: str) -> dict[str, str]:
    """The unit that makes each tensor."""
    return {
        tensor: unit for unit, kernels in units.items() for n in kernels[target] for tensor in graph.nodes[n].outputs
    }


def _repeatable_kernels(graph: Graph) -> frozenset[int]:
    """The kernels that every device repeats instead of receiving their results.

    They depend on no input, or give a whole tensor another shape: a problem knows only the tensor itself.
    """
    views = aliases(graph)
    varying = set(graph.inputs)
    found = []
    for number, node in enumerate(graph.nodes):
        if varying.isdisjoint(node.inputs):
            found.append(number)
            continue
        varying.update(node.outputs)
        if node.outputs and all(name in views for name in node.outputs):
            found.append(number)
    return frozenset(found)


def step_order(programme: Programme) -> Iterator[tuple[int, int]]:
    """Every step as (device, step), after the steps that send what it receives."""
    sent: set[int] = set()
    left = [list(enumerate(work.steps)) for work in programme.devices]
    while any(left):
        ready = [device for device, steps in enumerate(left) if steps and sent.issuperset(steps[0][1].receives)]
        if not ready:
            raise PlacementError("the devices wait for one another: the order of the units deadlocks")
        for device in ready:
            number, step = left[device].pop(0)
            sent.update(step.sends)
            yield device, number
