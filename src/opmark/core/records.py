"""The records of a journal: what a measuring run writes down, one JSON object per line."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from opmark.core.canonical import plain
from opmark.core.environment import Environment
from opmark.core.errors import ContentError
from opmark.core.estimate import LABEL_QUANTILE
from opmark.core.kernel import Kernel
from opmark.core.measurement import STATUSES
from opmark.core.target import Target
from opmark.core.work import Work

# 1: the first.
SCHEMA = 1

HOT = "hot"
ROTATED = "rotated"
NETWORK = "network"
LABELS = (HOT, ROTATED, NETWORK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: which suite, at which quality, by which schema."""

    suite: str
    suite_id: str
    quality: str
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run began, or went on, on this machine."""

    environment: Environment
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """The fixed cost of an empty call in one worker."""

    target: str
    process: int
    ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTrial:
    """A kernel that blocks will be about."""

    trial: str
    target: str
    kernel: Kernel
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTrial:
    """A network that blocks will be about."""

    trial: str
    target: str
    network: str
    family: str
    graph_id: str
    role: str
    batch: int = 1
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Samples of one trial taken in one go: `ns[i]` is a call of `copies` copies, `clean` flags each (`1`, `0`).

    With `base_copies`, `base_ns` are calls of that many copies in the same block, and the difference is the
    kernel's own time; without, the target's overhead is taken off. `label_quantile` is which of their quantiles the
    samples stand for.

    Samples of a device's own clock have `enqueue_ns`, the host's time to hand over one kernel: it passes beside them,
    and nothing is taken off. `clocks_mhz` is the processor clock of the device after each sample.

    `clock_ratio` is how many times longer everything took in that round than usual, as the sentinels say: of the
    processor's own blocks, and never written down, since it follows from the round's sentinels.
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
    clocks_mhz: tuple[float, ...] = ()
    clock_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not self.clock_ratio > 0:
            raise ValueError(f"clock_ratio: must be positive, not {self.clock_ratio}")
        if self.clocks_mhz and len(self.clocks_mhz) != len(self.ns):
            raise ValueError(f"clocks_mhz: {len(self.clocks_mhz)} for {len(self.ns)} samples")
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
            raise ValueError("ns, base_ns, copies and base_copies do not fit each other")

    @property
    def cycles(self) -> tuple[float, ...]:
        """The device's clock cycles per copy in each sample; empty where its clock is not known."""
        return tuple(ns * mhz / 1e3 / self.copies for ns, mhz in zip(self.ns, self.clocks_mhz, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionTrial:
    """A pair of operators (`first` and `second` may be chains) at one shape that rounds will be about."""

    trial: str
    target: str
    pair: str
    first: str
    second: str
    shape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionRound:
    """Calls of the first part, the second, and both together, taken next to each other; `clean` has their flags.

    What the runtime's own graph says of the pair stands beside: `white_box`, `kernels`, `inserted_saved`.
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
    """A directed link that transfers will be about; `memory` is `shared`, `pinned` or `pageable`."""

    trial: str
    source: str
    destination: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Single transfers of `size_bytes` over a link; of 0 bytes, the hand-over alone."""

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
class Sentinels:
    """What the sentinels read in a round; a round that is not `accepted` is measured again.

    `drift` is how far the machine was off, 0 within bounds, beside a clock that took `clock_ratio` times as long as
    usual. Earlier runs knew no such clock: a shift of it is a drift in their records.
    """

    round: int
    target: str
    ns: Mapping[str, float]
    accepted: bool
    drift: float = 0.0
    clock_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The verdict on a trial; nothing more will be measured for it."""

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
    "sentinels": Sentinels,
    "done": Done,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}

# Lists of JSON that are tuples here.
_TUPLES = ("ns", "base_ns", "first_ns", "second_ns", "block_ns", "clocks_mhz")
# What only blocks of a device's own clock have: not written where it says nothing.
_RARE: dict[str, Any] = {"label_quantile": LABEL_QUANTILE, "enqueue_ns": None, "clocks_mhz": []}
# What follows from other records.
_DERIVED = ("clock_ratio",)

R = TypeVar("R")


def encode(record: Record) -> dict[str, Any]:
    """`record` as JSON types, its type first."""
    content = plain(record)
    if isinstance(record, KernelTrial):
        content["kernel"] = {"kind": record.kernel.kind, "parameters": plain(record.kernel.params)}
    if isinstance(record, Block):
        content = {
            name: value
            for name, value in content.items()
            if name not in _DERIVED and (name not in _RARE or value != _RARE[name])
        }
    return {"type": _NAMES[type(record)], **content}


def decode(content: Any) -> Record:
    """The record in `content`. Raises `ContentError` saying what is wrong with it."""
    if not isinstance(content, dict) or content.get("type") not in _TYPES:
        raise ContentError("not a record of a journal")
    kind = _TYPES[content["type"]]
    fields = {name: value for name, value in content.items() if name != "type"}
    try:
        if kind is Session:
            environment = Environment(**fields.pop("environment"))
            targets = tuple(Target(**{**item, "options": tuple(item["options"])}) for item in fields.pop("targets"))
            return Session(environment=environment, targets=targets, **fields)
        if kind is KernelTrial:
            kernel = fields.pop("kernel")
            fields["kernel"] = Kernel.of(kernel["kind"], kernel["parameters"])
            fields["work"] = Work(**fields.pop("work"))
        if kind in {Block, FusionRound, Transfer}:
            fields |= {name: tuple(fields[name]) for name in _TUPLES if name in fields}
        if kind is FusionRound:
            fields["clean"] = tuple(fields["clean"])
        return cast("Record", kind(**fields))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContentError(f"not a {content['type']} record: {error}") from error


def _check_samples(name: str, times: tuple[float, ...], flags: str) -> None:
    """Raises `ValueError` unless every sample is a positive number with a flag."""
    if len(times) != len(flags) or set(flags) - {"0", "1"}:
        raise ValueError(f"{name}: {len(times)} samples with flags {flags!r}")
    if not all(math.isfinite(ns) and ns > 0 for ns in times):
        raise ValueError(f"{name}: every sample must be a positive number")
