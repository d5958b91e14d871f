"""A placement problem: units, the tensors between them, a cluster, and what everything costs there."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.canonical import content_id, plain
from opmark.core.cluster import Cluster
from opmark.core.errors import ContentError
from opmark.core.files import write_text
from opmark.core.schema import load
from opmark.leaderboards.problem.field_checks import field_problems, unit_problems
from opmark.leaderboards.problem.rules.arrivals import Arrivals, arrival_problems

if TYPE_CHECKING:
    from opmark.leaderboards.problem.arrays import ProblemArrays

SCHEMA = 1
SEMANTICS = "opsim1"
MEMORY_MODES = ("liveness", "sum", "stash")
PHASES = ("forward", "backward", "update")
# What schema 1 gained after its first problems were published.
_LATER_FIELDS = (
    "profile",
    "contiguous",
    "replication",
    "synchronisation",
    "optimizer_state",
    "micro_batches",
    "interference",
    "arrivals",
)
_LATER_UNIT_FIELDS = ("split_ns", "interval", "shape_group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The smallest thing that is placed: a union of kernels on every target of the cluster.

    `exec_ns` is by device type; a type that is absent cannot run the unit. `weights` name entries of
    `Problem.weights`; units of one `colocation` class must share a device. `kind` is that of the costliest kernel.

    `split_ns`, by device type, is the time of one of 2, 3, … equal parts of the batch, where replicas may share a unit.
    `interval`, by device type, is the predictor's interval as factors of `exec_ns`; units of one `shape_group` are
    mispredicted together.
    """

    name: str
    exec_ns: Mapping[str, int | float]
    weights: tuple[str, ...] = ()
    workspace_bytes: int = 0
    colocation: str = ""
    phase: str = "forward"
    kind: str = ""
    split_ns: Mapping[str, tuple[int | float, ...]] = field(default_factory=dict)
    interval: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shape_group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """What one unit makes and others read. Without a `producer` it is a graph input, at `home` (default: the host).

    `output` tensors must end on the host. `boundary_ns`, by device type, is what turning the tensor from that
    type's own layout into the plain one costs, and back: a transfer pays it for its source and its destination.
    """

    name: str
    size_bytes: int
    producer: str = ""
    consumers: tuple[str, ...] = ()
    home: str = ""
    output: bool = False
    boundary_ns: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the costs came from: the model, the predictor bundle and the graph behind each target."""

    model: str = ""
    family: str = ""
    bundles: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What an instance is judged against, as whole costs: a proven lower bound and a frozen best-known cost.

    `bounds` are all proven bounds by name, `bound_ns` the largest of them. `guarantee_ns` is what list scheduling on
    the best single device never exceeds (the response-time bound of typed graphs).
    """

    bound_ns: int
    best_known_ns: int
    source: str = ""
    bounds: Mapping[str, int] = field(default_factory=dict)
    guarantee_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An instance that carries its own costs, so that it can be scored anywhere and for ever.

    Times in the file may be fractions of a ns; they are rounded half-even, once, when the problem is compiled. `unit`
    is what costs are shown in: ns, us, ms or s, or $ for the cost objective.

    `profile` names the rules a cost follows. `contiguous` forbids a path that leaves a device and returns to it;
    `replication` lets a solution repeat a device's units on others, which `synchronisation` then keeps equal. A weight
    that an update unit names occupies 1 + `optimizer_state` times its bytes. `micro_batches` is how many a training
    step consists of, each one pass of its forward and backward units in a pipeline schedule; for throughput it limits
    how many are in flight (0: as many as the pipeline is deep). `interference` slows units that share a device's slots:
    device type, kind, kind beside it -> factor of at least 1 ("*" stands for any kind; several neighbours add what
    exceeds 1). `arrivals` are the requests of the serving objective.
    """

    name: str
    cluster: Cluster
    units: tuple[Unit, ...]
    tensors: tuple[Tensor, ...] = ()
    weights: Mapping[str, int] = field(default_factory=dict)
    objective: str = "latency"
    unit: str = "ns"
    semantics: str = SEMANTICS
    memory_mode: str = "liveness"
    provenance: Provenance = field(default_factory=Provenance)
    reference: Reference | None = None
    profile: str = "opsim1"
    contiguous: bool = False
    replication: bool = False
    synchronisation: str = "ring-all-reduce"
    optimizer_state: float = 0.0
    micro_batches: int = 0
    interference: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    arrivals: tuple[Arrivals, ...] = ()

    @cached_property
    def id(self) -> str:
        """Identity of everything that decides a cost; the reference and the provenance are not part of it.

        Fields that schema 1 gained later count only where they are used, so that older problems keep their identity.
        """
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        content = {key: plain(value) for key, value in content.items() if key not in {"reference", "provenance"}}
        usual = {name: plain(_default(Problem, name)) for name in _LATER_FIELDS}
        content = {key: value for key, value in content.items() if key not in usual or value != usual[key]}
        for unit in content["units"]:
            for name in _LATER_UNIT_FIELDS:
                if not unit[name]:
                    del unit[name]
        return content_id(content)

    @cached_property
    def held_bytes(self) -> Mapping[str, int]:
        """What each weight occupies on a device: its bytes, and the optimiser's state where it is updated."""
        updated = {name for unit in self.units if unit.phase == "update" for name in unit.weights}
        extra = {name: math.ceil(self.optimizer_state * self.weights[name]) for name in updated}
        return {name: size + extra.get(name, 0) for name, size in self.weights.items()}

    @cached_property
    def host(self) -> str:
        """The device that holds graph inputs and wants graph outputs."""
        return self.cluster.host or self.cluster.devices[0].name

    @cached_property
    def in_micro_batches(self) -> bool:
        """Whether the cost is that of a whole training step, micro-batch by micro-batch."""
        steps = self.micro_batches > 0 and self.objective not in {"throughput", "serving"}
        return steps and any(unit.phase == "backward" for unit in self.units)

    @cached_property
    def worked_out(self) -> dict[str, Any]:
        """What follows from this problem alone and is kept for the next time it is needed."""
        return {}

    @cached_property
    def arrays(self) -> "ProblemArrays":
        """The problem as int64 arrays. Raises `ContentError` where the content is wrong."""
        from opmark.leaderboards.problem.arrays import compile_problem

        return compile_problem(self)

    def problems(self) -> list[str]:
        """Everything that is wrong with this problem, one sentence each."""
        found = self.cluster.problems()
        return found or [*self._field_problems(), *self._unit_problems(), *self._tensor_problems()] or _cycle(self)

    def checked(self, where: str) -> "Problem":
        """This problem, or one `ContentError` that names what is wrong with it (the first ten findings)."""
        found = self.problems()
        if found:
            more = f" (and {len(found) - 10} more)" if len(found) > 10 else ""
            raise ContentError("; ".join(found[:10]) + more, where=where)
        return self

    def _field_problems(self) -> Iterator[str]:
        if self.semantics != SEMANTICS:
            yield f"semantics: this version knows {SEMANTICS}, not {self.semantics!r}"
        yield from field_problems(self)
        yield from arrival_problems(self)
        if self.memory_mode not in MEMORY_MODES:
            yield f"memory_mode: {', '.join(MEMORY_MODES[:-1])} or {MEMORY_MODES[-1]}, not {self.memory_mode!r}"
        if not self.units:
            yield "units: at least one is needed"
        yield from (
            f"weights.{name}: must not be negative, not {size}" for name, size in self.weights.items() if size < 0
        )

    def _unit_problems(self) -> Iterator[str]:
        types = {device.type for device in self.cluster.devices}
        seen: set[str] = set()
        for unit in self.units:
            key = f"units.{unit.name}"
            if unit.name in seen:
                yield f"{key}: the name appears twice"
            seen.add(unit.name)
            if not types & unit.exec_ns.keys():
                yield f"{key}.exec_ns: runs on no device of the cluster (needs one of {', '.join(sorted(types))})"
            for type_name, value in unit.exec_ns.items():
                if not 0 <= value < 2**53:
                    yield f"{key}.exec_ns.{type_name}: must be a number of ns from 0 to 2^53, not {value}"
            yield from unit_problems(unit, key)
            if unit.workspace_bytes < 0:
                yield f"{key}.workspace_bytes: must not be negative, not {unit.workspace_bytes}"
            if unit.phase not in PHASES:
                yield f"{key}.phase: one of {', '.join(PHASES)}, not {unit.phase!r}"
            yield from (
                f"{key}.weights: no weight is called {name!r}" for name in unit.weights if name not in self.weights
            )

    def _tensor_problems(self) -> Iterator[str]:
        units = {unit.name for unit in self.units}
        devices = {device.name for device in self.cluster.devices}
        seen: set[str] = set()
        for tensor in self.tensors:
            key = f"tensors.{tensor.name}"
            if tensor.name in seen:
                yield f"{key}: the name appears twice"
            seen.add(tensor.name)
            if tensor.size_bytes < 0:
                yield f"{key}.size_bytes: must not be negative, not {tensor.size_bytes}"
            if tensor.producer and tensor.producer not in units:
                yield f"{key}.producer: no unit is called {tensor.producer!r}"
            yield from (
                f"{key}.consumers: no unit is called {name!r}" for name in tensor.consumers if name not in units
            )
            if len(set(tensor.consumers)) < len(tensor.consumers):
                yield f"{key}.consumers: a unit appears twice"
            if tensor.home and tensor.producer:
                yield f"{key}.home: only a graph input has one"
            if tensor.home and tensor.home not in devices:
                yield f"{key}.home: no device is called {tensor.home!r}"
            for type_name, value in tensor.boundary_ns.items():
                if not 0 <= value < 2**53:
                    yield f"{key}.boundary_ns.{type_name}: must be a number of ns from 0 to 2^53, not {value}"


def load_problem(path: Path) -> Problem:
    """The checked problem in `path`. Raises `ContentError` naming the file and every wrong key."""
    return load(path, Problem, schema=SCHEMA).checked(str(path))


def save_problem(problem: Problem, path: Path) -> None:
    """Write `problem` to `path`, whole or not at all."""
    from opmark.leaderboards.problem.text import problem_text

    write_text(path, problem_text(problem))


def _default(kind: type[Any], name: str) -> Any:
    found = kind.__dataclass_fields__[name]
    return found.default if found.default is not MISSING else found.default_factory()


def _cycle(problem: Problem) -> list[str]:
    """One sentence naming one cycle, or nothing."""
    successors: dict[str, list[str]] = {unit.name: [] for unit in problem.units}
    waiting = dict.fromkeys(successors, 0)
    for tensor in problem.tensors:
        if tensor.producer:
            successors[tensor.producer] += tensor.consumers
            for name in tensor.consumers:
                waiting[name] += 1
    ready = deque(name for name, count in waiting.items() if not count)
    while ready:
        for name in successors[ready.popleft()]:
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    stuck = {name for name, count in waiting.items() if count}
    return [f"the graph has a cycle: {' → '.join(find_cycle(successors, stuck))}"] if stuck else []


def find_cycle(successors: Mapping[str, list[str]], stuck: set[str]) -> list[str]:
    """One cycle inside `stuck`, units that no topological order can hold; its first name stands at the end again."""
    predecessors: dict[str, str] = {}
    for name in successors:
        if name in stuck:
            # every stuck unit waits for another stuck one, so walking backwards never ends
            predecessors |= dict.fromkeys((after for after in successors[name] if after in stuck), name)
    walk: dict[str, None] = {}
    name = next(name for name in successors if name in stuck)
    while name not in walk:
        walk[name] = None
        name = predecessors[name]
    steps = list(walk)
    return [name, *reversed(steps[steps.index(name) :])]
