"""Build a suite of whole networks from their names, to measure end-to-end latency and memory only."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opmark.bench.suite.suite import Networks, NetworkSpec, Suite
from opmark.bench.worker.backend import backend_of
from opmark.core.errors import NothingSelectedError, OpMarkError, UsageError
from opmark.core.measurements.measurement import HELD_OUT, ROLES, SEALED, TRAINING
from opmark.models.resolve import graph_of
from opmark.models.source import ModelSource, language_obstacle, source_of
from opmark.models.zoo import FAMILIES, family_of, held_out

SUITE = "models"
# The sizes of vision networks and most attention windows are multiples of this.
_STEP = 32
_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A network that a target cannot run at this batch and size, with the reason."""

    network: str
    target: str
    batch: int | None
    size: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The suite, and the requested networks that cannot be measured."""

    suite: Suite
    refused: tuple[Refused, ...]


def every(*, small: bool) -> tuple[str, ...]:
    """All networks of the zoo without those of sealed families, or those small enough for a test."""
    open_families = (family for family in FAMILIES if not family.sealed)
    return tuple(name for family in open_families for name in (family.small if small else family.names))


def named_in(suite: Suite) -> tuple[str, ...]:
    """The networks that `suite` measures whole, each once."""
    return tuple(dict.fromkeys(spec.model for role in ROLES for spec in suite.networks.of(role)))


def parse_batches(text: str) -> tuple[int, ...]:
    """The numbers in a list such as `1,8`. Raises `UsageError`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= _DIGITS and int(part) > 0 for part in parts):
        raise UsageError(f"{text!r} is not a list of batch sizes", hint="write it like 1,8")
    return tuple(dict.fromkeys(map(int, parts)))


def parse_sizes(text: str) -> tuple[int | float, ...]:
    """The sizes in a list such as `224,0.5x`; `0.5x` is half of a network's own size. Raises `UsageError`."""
    found: list[int | float] = []
    for part in (item.strip() for item in text.split(",")):
        try:
            value = float(part.removesuffix("x")) if part.endswith("x") else int(part)
        except ValueError:
            value = 0
        if not 0 < value < 1e6:
            raise UsageError(f"{part!r} is not a size", hint="write it like 224, or 0.5x for half of a network's own")
        found.append(value)
    return tuple(dict.fromkeys(found))


def size_of(wanted: int | float, own: int) -> int:
    """The size that `wanted` means for a network of size `own`; a factor keeps multiples of 32."""
    if isinstance(wanted, int):
        return wanted
    step = _STEP if own % _STEP == 0 else 1
    return max(step, round(own * wanted / step) * step)


def select(
    names: Sequence[str],
    targets: Sequence[str],
    *,
    batches: Sequence[int] = (1,),
    sizes: Sequence[int | float] = (1.0,),
    quality: str = "full",
    cache: Path | None = None,
) -> Selection:
    """Build the suite that measures `names` on `targets` at every batch and size; `cache` keeps their graphs.

    The role of a network is that of its family. Raises `NothingSelectedError` with the first reason if no network is
    left, `UnknownNameError` for an unknown name.
    """
    specs: dict[str, list[NetworkSpec]] = {role: [] for role in ROLES}
    refused: list[Refused] = []
    for name in dict.fromkeys(names):
        source = source_of(name)
        role = _role(source)
        for batch in batches:
            for wanted in sizes:
                dimensions, problem = _dimensions(source, batch, wanted)
                fitting = []
                for target in targets:
                    reason = problem or _problem(name, source, target, dimensions, cache)
                    if reason:
                        size = dimensions.get("size")
                        refused.append(Refused(network=name, target=target, batch=batch, size=size, reason=reason))
                    else:
                        fitting.append(target)
                spec = NetworkSpec(model=name, dimensions=dimensions, targets=tuple(fitting))
                if fitting and spec not in specs[role]:
                    specs[role].append(spec)
    if not any(specs.values()):
        why = f": {refused[0].network} on {refused[0].target}: {refused[0].reason}" if refused else ""
        raise NothingSelectedError(f"no network to measure{why}")
    return Selection(
        suite=Suite(
            name=SUITE,
            targets=tuple(targets),
            quality=quality,
            networks=Networks(
                training=tuple(specs[TRAINING]), held_out=tuple(specs[HELD_OUT]), sealed=tuple(specs[SEALED])
            ),
        ),
        refused=tuple(refused),
    )


def _role(source: ModelSource) -> str:
    """The role of a network: its family's in the zoo, and held-out for a file."""
    try:
        if family_of(source.base).sealed:
            return SEALED
        return HELD_OUT if held_out(source.base) else TRAINING
    except UsageError:
        return HELD_OUT


def _dimensions(source: ModelSource, batch: int, wanted: int | float) -> tuple[dict[str, int], str]:
    """The dimensions that differ from the network's own, and the reason why they cannot be set."""
    if source.path is not None:
        changed = batch != 1 or wanted != 1.0
        return {}, "the shapes of a file are its own" if changed else ""
    family = family_of(source.base)
    own = family.sizes[source.base]
    size = size_of(wanted, own)
    dimensions = {"batch": batch} if batch != family.default_batch else {}
    return dimensions | ({"size": size} if size != own else {}), ""


def _problem(name: str, source: ModelSource, target: str, dimensions: dict[str, int], cache: Path | None) -> str:
    backend = backend_of(target)
    obstacle = "" if backend.name == "null" else language_obstacle(source, backend.language)
    if obstacle:
        return obstacle
    try:
        graph_of(name, target, cache=cache, dimensions=dimensions)
    except OpMarkError as error:
        return error.message
    return ""
