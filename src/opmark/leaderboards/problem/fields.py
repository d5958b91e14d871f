"""The fields of a placement problem and of its parts, and everything that follows from them by name."""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opmark.core.canonical import content_id, plain
from opmark.core.hardware.cluster import PROVENANCES, Cluster
from opmark.core.slug import Slug

SEMANTICS = "opsim1"
MEMORY_MODES = ("liveness", "sum", "stash")
PHASES = ("forward", "backward", "update")
# The dimensions along which a unit can be split: the samples of its batch, rows of its output, channels of its output.
SAMPLE = "sample"
AXES = (SAMPLE, "row", "channel")
PARTS_AT_MOST = 64
# Upper limit on the copies of units that a trace of requests or a step of micro-batches may ask for.
COPIES_AT_MOST = 2**22
# Fields added to schema 1 after its first problems were published.
_LATER_FIELDS = (
    "profile",
    "contiguous",
    "replication",
    "synchronisation",
    "optimizer_state",
    "micro_batches",
    "interference",
    "arrivals",
    "limits",
)
_LATER_UNIT_FIELDS = ("split_ns", "interval", "shape_group", "splits")
_LATER_DEVICE_FIELDS = ("own_copies",)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSplit:
    """One way to run a unit in `parts` equal parts along `axis`: `sample`, `row` or `channel` of its output.

    `exec_ns`, by device type, is the time of one part, `join_ns` that of putting the outputs together, and `cut_ns`
    that of cutting the inputs, empty where slices are views. A part reads `input_share` of every input (more than its
    own where windows overlap, 1 where it needs all) and holds `weight_share` of every weight.
    """

    axis: str
    parts: int
    exec_ns: Mapping[str, int | float]
    join_ns: Mapping[str, int | float]
    cut_ns: Mapping[str, int | float] = field(default_factory=dict)
    input_share: float = 1.0
    weight_share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The smallest thing that is placed: a union of kernels on every target of the cluster.

    `exec_ns` is by device type; a type that is absent cannot run the unit. `weights` name entries of
    `Problem.weights`; units of one `colocation` class must share a device. `kind` is that of the costliest kernel.

    `split_ns`, by device type, is the time of one of 2, 3, … equal parts of the batch, where replicas may share a unit.
    `interval`, by device type, is the predictor's interval as factors of `exec_ns`; units of one `shape_group` are
    mispredicted together. `splits` are the ways in which a solution may divide the unit.
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
    splits: tuple[UnitSplit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """Data that one unit makes and others read. Without a `producer` it is a graph input at `home` (default: the host).

    `output` tensors must end on the host. `boundary_ns`, by device type, is the cost of turning the tensor from that
    type's own layout into the plain one, or back: a transfer pays it at its source and at its destination. At a source
    with `own_copies` the producer pays it, once.
    """

    name: str
    size_bytes: int
    producer: str = ""
    consumers: tuple[str, ...] = ()
    home: str = ""
    output: bool = False
    boundary_ns: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Requests for one network, in ns from the start of the trace, in order; an answer is late after `target_ns`.

    A request runs every unit once, or only those of `units` if several networks are served. `source` describes how
    the trace was drawn; only the trace itself counts.
    """

    arrival_ns: tuple[int, ...]
    target_ns: int
    units: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalLimits:
    """Limits that a valid solution keeps; 0 for none.

    `latency_ns` is that of one pass or step, `period_ns` the time between two samples of a full pipeline. The devices
    that a solution uses cost at most `price_per_hour` together. For the objective hypervolume they are the reference
    point.
    """

    latency_ns: int = 0
    period_ns: int = 0
    price_per_hour: float = 0.0

    def __bool__(self) -> bool:
        """True where there is any limit."""
        return bool(self.latency_ns or self.period_ns or self.price_per_hour)

    def loosened(self, factor: float) -> "GoalLimits":
        """Limits of time that are longer by a factor; money stays as it is."""
        times = [math.ceil(value * factor) for value in (self.latency_ns, self.period_ns)]
        return GoalLimits(latency_ns=times[0], period_ns=times[1], price_per_hour=self.price_per_hour)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOrigin:
    """The origin of the costs: the model, and the predictor bundle and the graph behind each target."""

    model: str = ""
    family: str = ""
    bundles: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCosts:
    """The costs that an instance is judged against, in whole steps: a proven lower bound and a frozen best-known cost.

    `bounds` are all proven bounds by name, `bound_ns` is the largest of them. List scheduling on the best single
    device never exceeds `guarantee_ns` (the response-time bound of typed graphs).
    """

    bound_ns: int
    best_known_ns: int
    source: str = ""
    bounds: Mapping[str, int] = field(default_factory=dict)
    guarantee_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class ProblemFields:
    """The fields of a problem; `opmark.leaderboards.problem.problem.Problem` explains them."""

    name: Slug
    cluster: Cluster
    units: tuple[Unit, ...]
    tensors: tuple[Tensor, ...] = field(default_factory=tuple)
    weights: Mapping[str, int] = field(default_factory=dict)
    objective: str = "latency"
    unit: str = "ns"
    semantics: str = SEMANTICS
    memory_mode: str = "liveness"
    provenance: CostOrigin = field(default_factory=CostOrigin)
    reference: ReferenceCosts | None = None
    profile: str = "opsim1"
    contiguous: bool = False
    replication: bool = False
    synchronisation: str = "ring-all-reduce"
    optimizer_state: float = 0.0
    micro_batches: int = 0
    interference: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    arrivals: tuple[Arrivals, ...] = ()
    limits: GoalLimits = field(default_factory=GoalLimits)

    @cached_property
    def id(self) -> str:
        """A hash of everything that decides a cost; the reference and the provenance are not part of it.

        Fields that schema 1 gained later count only if they are used, so that older problems keep their identity.
        """
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        content = {key: plain(value) for key, value in content.items() if key not in {"reference", "provenance"}}
        usual = {name: plain(_default(name)) for name in _LATER_FIELDS}
        content = {key: value for key, value in content.items() if key not in usual or value != usual[key]}
        for device in content["cluster"]["devices"]:
            for name in _LATER_DEVICE_FIELDS:
                if not device[name]:
                    del device[name]
        for unit in content["units"]:
            for name in _LATER_UNIT_FIELDS:
                if not unit[name]:
                    del unit[name]
        return content_id(content)

    def put_off(self, **rows: Callable[[], tuple[Any, ...]]) -> None:
        """Make `units` and `tensors`, as `rows` says, only when they are asked for: a million objects take seconds."""
        for name, make in rows.items():
            del self.__dict__[name]
            self.__dict__[f"make {name}"] = make

    if not TYPE_CHECKING:  # a type checker would take every misspelled name for an attribute

        def __getattr__(self, name: str) -> Any:
            make = self.__dict__.get(f"make {name}")
            if make is None:
                return object.__getattribute__(self, name)  # raises the usual error
            made = self.__dict__.setdefault(name, make())
            self.__dict__.pop(f"make {name}", None)
            return made

    @cached_property
    def unit_names(self) -> tuple[str, ...]:
        """The names of all units, in order."""
        return tuple(unit.name for unit in self.units)

    @cached_property
    def updated_weights(self) -> frozenset[str]:
        """The weights that an update unit names."""
        return frozenset(name for unit in self.units if unit.phase == "update" for name in unit.weights)

    @cached_property
    def held_bytes(self) -> Mapping[str, int]:
        """Bytes that each weight occupies on a device: its own, and the optimiser's state if it is updated."""
        if not self.optimizer_state or not self.updated_weights:
            return self.weights
        extra = {name: math.ceil(self.optimizer_state * self.weights[name]) for name in self.updated_weights}
        return {name: size + extra.get(name, 0) for name, size in self.weights.items()}

    @cached_property
    def host(self) -> str:
        """The device that holds graph inputs and wants graph outputs."""
        return self.cluster.host or self.cluster.devices[0].name

    @property
    def pipelined(self) -> bool:
        """True if samples follow one another through the devices, so that only their loads count."""
        return self.objective in {"throughput", "rent"} or (self.fronted and self.limits.period_ns > 0)

    @property
    def fronted(self) -> bool:
        """True if a solution is a front of placements, one per budget."""
        return self.objective == "hypervolume"

    @cached_property
    def in_micro_batches(self) -> bool:
        """True if the cost is that of a whole training step, micro-batch by micro-batch."""
        steps = self.micro_batches > 0 and not self.pipelined and self.objective != "serving"
        return steps and any(unit.phase == "backward" for unit in self.units)

    @cached_property
    def costs_from(self) -> str:
        """The least certain source of its devices' costs: measured, imported or analytic."""
        return max((device.provenance for device in self.cluster.devices), key=PROVENANCES.index)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The rules that this problem adds to one pass of a network on equal devices."""
        used = {
            "replicas": self.replication,
            "micro-batches": self.in_micro_batches,
            "prices": self.objective in {"cost", "rent"} or bool(self.limits),
            "slowdown": bool(self.interference),
            "splits": any(unit.splits for unit in self.units),
            "unequal": len({device.type for device in self.cluster.devices}) > 1,
        }
        return tuple(name for name, present in used.items() if present)

    @cached_property
    def worked_out(self) -> dict[str, Any]:
        """A store for results that follow from this problem alone, kept until they are needed again."""
        return {}


def _default(name: str) -> Any:
    found: Any = ProblemFields.__dataclass_fields__[name]
    return found.default if found.default is not MISSING else found.default_factory()
