"""The records of a measuring run's journal, one JSON object per line."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.estimate import LABEL_QUANTILE
from opmark.core.measurements.measurement import STATUSES
from opmark.core.schema import convert
from opmark.core.slug import Slug

# 1: the first.
SCHEMA = 1

# The revision of what kernels compute on: of values, and of the memory that they lie in. 2: torch's maximum pooling,
# whose time depends on values, has rectified images instead of noise. 3: more of them than a processor learns by heart.
# 4: the tensors of ONNX Runtime begin at multiples of a vector.
VALUES = 4

HOT = "hot"
ROTATED = "rotated"
NETWORK = "network"
LABELS = (HOT, ROTATED, NETWORK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: the suite, its quality and the schema."""

    suite: Slug
    suite_id: str
    quality: str
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The start or the continuation of a run on a machine; `values` is the revision of what kernels compute on."""

    environment: Environment
    targets: tuple[Target, ...]
    values: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """The fixed cost of an empty call in one worker."""

    target: str
    process: int
    ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTrial:
    """The kernel of later blocks."""

    trial: str
    target: str
    kernel: Kernel
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTrial:
    """The network of later blocks."""

    trial: str
    target: str
    network: str
    family: str
    graph_id: str
    role: str
    batch: int = 1
    size: int | None = None


Trial = KernelTrial | NetworkTrial


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive samples of one trial.

    `ns[i]` is the time of a call of `copies` copies, in ns; `clean[i]` is `1` where nothing interrupted it, else `0`.
    `base_ns` are calls of `base_copies` copies in the same block: the difference between the two is the kernel's own
    time. Without them, the target's overhead is subtracted. `label_quantile` is the quantile that becomes the label.

    Samples by a device's own clock have `enqueue_ns`, the host's time to enqueue one kernel. It overlaps with the
    samples, so nothing is subtracted. `clocks_mhz` is the device's processor clock after each sample.
    A network on such a device has the host's time to enqueue all its calls, and in `device_ns` the device's time for
    them where the host has enqueued them before.

    `sentinels[name]` are readings in ns, taken in turn with the samples: one before each turn and one after the last.
    Every turn has the same number of samples. Older journals read them once a `round` (see `Sentinels`).
    `at_s` is the time of the look in seconds since 1970, None in older journals.
    """

    trial: str
    label: str
    process: int
    round: int
    construction: str
    copies: int
    base_copies: int
    calls: int
    ns: tuple[float, ...]
    clean: str
    base_ns: tuple[float, ...] = ()
    base_clean: str = ""
    faults_per_call: float = 0.0
    scheduling: str = "normal"
    peak_memory_bytes: int | None = None
    label_quantile: float = LABEL_QUANTILE
    enqueue_ns: float | None = None
    device_ns: float | None = None
    clocks_mhz: tuple[float, ...] = ()
    sentinels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    at_s: int | None = None

    def __post_init__(self) -> None:
        for name, readings in self.sentinels.items():
            _check_samples(f"sentinels.{name}", readings, "1" * len(readings))
            if len(readings) < 2 or len(self.ns) % (len(readings) - 1):
                raise ValueError(f"sentinels.{name}: {len(readings)} readings around {len(self.ns)} samples")
        if self.clocks_mhz and len(self.clocks_mhz) != len(self.ns):
            raise ValueError(f"clocks_mhz: {len(self.clocks_mhz)} for {len(self.ns)} samples")
        for name in ("process", "round", "base_copies", "calls", "faults_per_call"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: must not be negative, not {getattr(self, name)}")
        for name in ("enqueue_ns", "device_ns"):
            found = getattr(self, name)
            if found is not None and not 0 <= found < math.inf:
                raise ValueError(f"{name}: must not be negative or infinite, not {found}")
        if not 0 <= self.label_quantile <= 1:
            raise ValueError(f"label_quantile: must be between 0 and 1, not {self.label_quantile}")
        if self.label not in LABELS:
            raise ValueError(f"label: one of {', '.join(LABELS)}, not {self.label!r}")
        _check_samples("ns", self.ns, self.clean)
        _check_samples("base_ns", self.base_ns, self.base_clean)
        if (
            not self.ns
            or self.copies < 1
            or self.copies <= self.base_copies
            or bool(self.base_ns) != bool(self.base_copies)
        ):
            raise ValueError("ns, base_ns, copies and base_copies do not fit together")

    @property
    def cycles(self) -> tuple[float, ...]:
        """The device's clock cycles per copy in each sample; empty where its clock is not known."""
        return tuple(ns * mhz / 1e3 / self.copies for ns, mhz in zip(self.ns, self.clocks_mhz, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionTrial:
    """The pair of operators and the shape of later rounds; `first` and `second` may be chains."""

    trial: str
    target: str
    pair: str
    first: str
    second: str
    shape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionRound:
    """Calls of the first part, the second part and both together, taken next to each other, in ns.

    `clean` holds the flags of the three. `white_box`, `kernels` and `inserted_saved` describe the runtime's own graph.
    """

    trial: str
    process: int
    first_ns: tuple[float, ...]
    second_ns: tuple[float, ...]
    block_ns: tuple[float, ...]
    clean: tuple[str, str, str]
    white_box: str
    kernels: str = ""
    inserted_saved: int = 0
    scheduling: str = "normal"

    def __post_init__(self) -> None:
        for name, times, flags in zip(
            ("first_ns", "second_ns", "block_ns"),
            (self.first_ns, self.second_ns, self.block_ns),
            self.clean,
            strict=True,
        ):
            _check_samples(name, times, flags)
            if not times:
                raise ValueError(f"{name}: no samples")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTrial:
    """The directed link of later transfers; `memory` is `shared`, `pinned` or `pageable`."""

    trial: str
    source: str
    destination: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Single transfers of `size_bytes` over a link; 0 bytes mean the hand-over alone."""

    trial: str
    size_bytes: int
    ns: tuple[float, ...]
    clean: str
    scheduling: str = "normal"

    def __post_init__(self) -> None:
        _check_samples("ns", self.ns, self.clean)
        if not self.ns:
            raise ValueError("ns: no samples")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorunTrial:
    """The kernel of later turns, and what runs on the other core: a stressor's name, or the kernel `beside` it."""

    trial: str
    target: str
    kernel: Kernel
    neighbour: str
    beside: Kernel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorunTurns:
    """Calls of a kernel in turns, in ns: one sample alone and one beside its neighbour in each turn."""

    trial: str
    alone_ns: tuple[float, ...]
    beside_ns: tuple[float, ...]
    alone_clean: str
    beside_clean: str
    scheduling: str = "normal"

    def __post_init__(self) -> None:
        _check_samples("alone_ns", self.alone_ns, self.alone_clean)
        _check_samples("beside_ns", self.beside_ns, self.beside_clean)
        if not self.alone_ns or len(self.alone_ns) != len(self.beside_ns):
            raise ValueError("alone_ns and beside_ns: one sample of each in every turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinels:
    """The sentinels of one round of an older journal, in ns by sentinel; its blocks count if it is `accepted`."""

    round: int
    target: str
    ns: Mapping[str, float]
    accepted: bool
    drift: float = 0.0
    clock_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The end of a trial that cannot be measured. In older journals, and for pairs and links, the end of any trial."""

    trial: str
    status: str
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status: one of {', '.join(STATUSES)}, not {self.status!r}")


Record = (
    Header
    | Session
    | Overhead
    | KernelTrial
    | NetworkTrial
    | Block
    | FusionTrial
    | FusionRound
    | LinkTrial
    | Transfer
    | CorunTrial
    | CorunTurns
    | Sentinels
    | Done
)

_TYPES: dict[str, type[Any]] = {
    "journal": Header,
    "session": Session,
    "overhead": Overhead,
    "kernel": KernelTrial,
    "network": NetworkTrial,
    "block": Block,
    "fusion": FusionTrial,
    "fusion-round": FusionRound,
    "link": LinkTrial,
    "transfer": Transfer,
    "co-run": CorunTrial,
    "co-run-turns": CorunTurns,
    "sentinels": Sentinels,
    "done": Done,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}

# Only blocks by a device's own clock have the first three, and only others the last: a default is left out.
_RARE: dict[str, Any] = {
    "label_quantile": LABEL_QUANTILE,
    "enqueue_ns": None,
    "device_ns": None,
    "clocks_mhz": [],
    "sentinels": {},
}

R = TypeVar("R")


def trial_key(target: Target, kernel: Kernel) -> str:
    """The key of the first trial of `kernel` on `target`."""
    return content_id([target.id, kernel.key])


def repeat_key(trial: str, number: int) -> str:
    """The key of the `number`th repeat of `trial`; `trial` itself for 0."""
    return content_id([trial, "again", number]) if number else trial


def encode(record: Record) -> dict[str, Any]:
    """Return `record` as JSON types, its type first."""
    content = plain(record)
    if isinstance(record, KernelTrial | CorunTrial):
        content["kernel"] = record.kernel.content()
    if isinstance(record, CorunTrial) and record.beside is not None:
        content["beside"] = record.beside.content()
    if isinstance(record, Block):
        content = {name: value for name, value in content.items() if name not in _RARE or value != _RARE[name]}
    return {"type": _NAMES[type(record)], **content}


def decode(content: Any) -> Record:
    """The record that `encode` wrote as `content`. Raises `ContentError` naming every wrong field."""
    name = content.get("type") if isinstance(content, dict) else None
    if not isinstance(name, str) or name not in _TYPES:
        raise ContentError("not a record of a journal")
    fields = {key: value for key, value in content.items() if key != "type"}
    try:
        return cast("Record", convert(fields, _TYPES[name], where=""))
    except ContentError as error:
        raise ContentError(f"not a {name} record: {error.message}") from error


def _check_samples(name: str, times: tuple[float, ...], flags: str) -> None:
    """Raise `ValueError` unless every sample is a positive number with a flag."""
    if len(times) != len(flags) or set(flags) - {"0", "1"}:
        raise ValueError(f"{name}: {len(times)} samples with flags {flags!r}")
    if not all(math.isfinite(ns) and ns > 0 for ns in times):
        raise ValueError(f"{name}: every sample must be a positive number")
