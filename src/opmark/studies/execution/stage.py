"""A problem whose devices are processes of this machine, ready to execute placements of it."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from opmark.bench.execution.crew import Crew, Execution, Seat, StepTimes, seats
from opmark.bench.execution.programme import Programme
from opmark.bench.worker.divided import Fingerprint, NamedKernel
from opmark.core.errors import ContentError, PlacementError
from opmark.core.kernels.graph import Graph
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.models.resolve import graph_of
from opmark.studies.execution.matching import matched_units
from opmark.studies.execution.planning import Network, PlannedProgramme, plan_programme, step_order

# The largest relative difference of an output of the divided network from the undivided one.
EQUAL = 1e-4
_WARM_UPS = 2
# A shorter execution runs untimed first, so that it finds its own data in cache and not the sentinels'.
_SHORT_NS = 50e6


class ExecutionStage:
    """The loaded network of `problem` on every device; leaving the `with` block ends its processes.

    Raises `ContentError` for a problem that cannot be executed, `UnavailableError` if this machine lacks a device,
    `MeasurementError` if a process fails.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        dimensions: Mapping[str, int] | None = None,
        patience_s: float = 30.0,
        crew: Callable[[tuple[Seat, ...], float], Crew] = lambda taken, patience_s: Crew(taken, patience_s=patience_s),
    ) -> None:
        self.problem = problem
        _refuse_objective(problem)
        runtimes = [_runtime(device.target) for device in problem.cluster.devices]
        taken = seats([(device.name, name) for device, name in zip(problem.cluster.devices, runtimes, strict=True)])
        model, sizes = problem.provenance.model, dict(dimensions or {})
        if not model:
            raise ContentError("names no network, so there is nothing to execute", where=f"{problem.name}: provenance")
        # By target of the cluster, which may name the device and the version of a predictor.
        self.graphs: dict[str, Graph] = {
            device.target: graph_of(model, name, dimensions=sizes)
            for device, name in zip(problem.cluster.devices, runtimes, strict=True)
        }
        # The kernels of each unit by target.
        self.units = matched_units(problem, self.graphs)
        self._crew = crew(taken, patience_s)
        try:
            self._load(model, sizes)
        except BaseException:
            self._crew.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._crew.close()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The process ids of the workers."""
        return self._crew.process_ids

    def prepare(self, evaluation: Evaluation) -> PlannedProgramme:
        """Build the parts of a simulated placement in every process, and warm them up."""
        network = Network(
            graphs=self.graphs,
            units=self.units,
            same_as=self._same_as,
            size_bytes=lambda t, name: self._bytes[t][name],
        )
        planned = plan_programme(self.problem, evaluation, network)
        self._order = tuple(step_order(planned.programme))
        self.build(planned.programme, float(evaluation.schedule.latency_ns))
        return planned

    def build(self, programme: Programme, expected_ns: float) -> None:
        """Build the parts of any programme, which is expected to take about `expected_ns`, and warm them up."""
        self._crew.divide(programme)
        self._expected_ns = expected_ns
        for _ in range(_WARM_UPS):
            self.run()

    def run(self) -> Execution:
        """Execute the prepared placement once."""
        return self._crew.run(self._expected_ns)

    def sense(self) -> tuple[Mapping[str, float], ...]:
        """The readings of every device's sentinels in ns, by name."""
        return self._crew.sense()

    def run_turn(
        self, before: Sequence[Mapping[str, float]]
    ) -> tuple[Execution, tuple[Mapping[str, float], ...], tuple[Mapping[str, float], ...]]:
        """One execution between the readings `before` it and those after it, which are returned beside it."""
        if self._expected_ns < _SHORT_NS:
            self.run()
        execution = self.run()
        return execution, tuple(before), self.sense()

    def run_alone(self) -> dict[tuple[int, int], StepTimes]:
        """Execute it once with only one device at work at any time; the times by (device, step)."""
        return self._crew.run_alone(self._order, self._expected_ns)

    def difference(self) -> float:
        """The largest difference of an output from that of the undivided network, relative to its largest element."""
        executed = self._crew.outputs(self._host)
        if len(executed) != len(self._reference):
            return float("inf")
        return max((_relative(a, b) for a, b in zip(executed, self._reference, strict=True)), default=0.0)

    def _load(self, model: str, sizes: Mapping[str, int]) -> None:
        problem = self.problem
        self._host = problem.arrays.host
        targets = [device.target for device in problem.cluster.devices]
        graphs = [self.graphs[target] for target in targets]
        self._crew.load(model, sizes, [(_named(graph), graph.inputs) for graph in graphs], host=self._host)
        mixed = len(self.graphs) > 1
        self._prints: dict[str, dict[str, Fingerprint]] = {}
        self._bytes: dict[str, dict[str, int]] = {}
        self._reference: list[Any] = []
        for target, graph in self.graphs.items():
            device = self._host if target == targets[self._host] else targets.index(target)
            every = [name for node in graph.nodes for name in node.outputs]
            if mixed or device == self._host:
                outputs, self._prints[target] = self._crew.survey(device, every if mixed else ())
                if device == self._host:
                    self._reference = outputs
            self._bytes[target] = self._crew.sizes(device, [*graph.inputs, *every])

    def _same_as(self, target: str, tensor: str, unit: str, other: str) -> str:
        """The tensor of `unit` on target `other` with the content of `tensor`."""
        own, theirs = self.graphs[target], self.graphs[other]
        if tensor in own.outputs and len(own.outputs) == len(theirs.outputs):
            return theirs.outputs[own.outputs.index(tensor)]
        wanted = self._prints[target][tensor]
        kernels = self.units[unit][other] if unit else ()
        candidates = [name for kernel in reversed(kernels) for name in theirs.nodes[kernel].outputs]
        for name in candidates if unit else theirs.inputs:
            if name in self._prints[other] and self._prints[other][name].matches(wanted):
                return name
        raise PlacementError(
            f"the network cannot be cut after unit {unit or 'input'!r}: {other} makes no tensor that equals "
            f"{tensor!r} of {target}",
            hint="place the unit and its readers on one device",
        )


def _named(graph: Graph) -> list[NamedKernel]:
    return [
        NamedKernel(
            name=node.name,
            inputs=tuple(name for name in node.inputs if name not in graph.weights),
            outputs=node.outputs,
        )
        for node in graph.nodes
    ]


def _refuse_objective(problem: Problem) -> None:
    if problem.objective != "latency" or problem.in_micro_batches or problem.arrivals:
        raise ContentError(
            "only the latency of one pass can be executed", where=f"{problem.name}: objective", hint="see make-problem"
        )


def _runtime(target: str) -> str:
    """The target name of a device: `intel-…/1.0.0/onnxruntime-cpu-t1` is `onnxruntime-cpu-t1` here."""
    return target.rpartition("/")[2]


def _relative(executed: Any, reference: Any) -> float:
    if executed.shape != reference.shape:
        return float("inf")
    one, other = np.asarray(executed, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if not one.size:
        return 0.0
    largest = float(np.max(np.abs(other)))
    return float(np.max(np.abs(one - other))) / (largest or 1.0)
