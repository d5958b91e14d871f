"""Suites: what to measure, as a YAML file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.bench.clock.protocol import PROTOCOLS
from opmark.bench.worker.backend import backend_of
from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError, UnknownNameError, UsageError
from opmark.core.kernel import Kernel
from opmark.core.kind import Axis, Choice, Range
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.core.tensor import DTYPE_BYTES
from opmark.core.units import parse_duration_s
from opmark.kinds import KINDS, work_of
from opmark.models.variant import split_variant
from opmark.models.zoo import held_out, models

# 1: the first.
SCHEMA = 1
_NO_IDENTITY = frozenset({"budget", "description", "only", "first"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSpec:
    """An axis of a kind's space: either `choice`, or `low` and `high`, spread in the logarithm."""

    choice: tuple[bool | int | float | str, ...] = ()
    low: int | None = None
    high: int | None = None
    multiple: int = 1

    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if self.choice:
            return "choice and low/high exclude each other" if self.low is not None or self.high is not None else None
        if self.low is None or self.high is None:
            return "give a choice, or low and high"
        if not 1 <= self.low <= self.high:
            return f"low and high must be positive and in order, not {self.low} and {self.high}"
        return None if self.multiple >= 1 else f"multiple must be at least 1, not {self.multiple}"

    @property
    def axis(self) -> Axis:
        """The axis to draw from."""
        if self.choice:
            return Choice(self.choice)
        assert self.low is not None
        assert self.high is not None
        return Range(self.low, self.high, self.multiple)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """How many kernels of a kind, and which axes of its space to replace; without a count, its share decides."""

    count: int | None = None
    space: Mapping[str, AxisSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """A network: a file or a zoo name; `dimensions` fill what its shapes leave open, or its batch and size.

    `family` defaults to the zoo's. Without `targets` an ONNX file is for ONNX runtimes and a torch module for torch;
    a module named for an ONNX runtime is exported.
    """

    model: str
    family: str = ""
    dimensions: Mapping[str, int] = field(default_factory=dict)
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The networks whose kernels show what real shapes are; `share` of the samples come from them, varied."""

    networks: tuple[str | NetworkSpec, ...] = ()
    share: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Networks measured whole: constants are fitted on `training`, and nothing is ever drawn from `held_out`."""

    training: tuple[str | NetworkSpec, ...] = ()
    held_out: tuple[str | NetworkSpec, ...] = ()

    def of(self, role: str) -> tuple[NetworkSpec, ...]:
        """Those of `role`, `training` or `held-out`."""
        return specs(self.training if role == "training" else self.held_out)


def specs(entries: Iterable[str | NetworkSpec]) -> tuple[NetworkSpec, ...]:
    """Entries of a list of networks, where a name alone means no more than the name."""
    return tuple(NetworkSpec(model=item) if isinstance(item, str) else item for item in entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactKernel:
    """One kernel to measure as it is: what `opmark predictors explain --suite` writes."""

    kind: str
    parameters: Mapping[str, Any]

    @property
    def kernel(self) -> Kernel:
        """The kernel, every parameter of its kind spelt out. Raises `ContentError` where it is not of its kind."""
        kind = KINDS.load(self.kind)
        return kind.kernel(kind.parse(Kernel.of(self.kind, self.parameters)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What to measure on which targets.

    `kernels` is how many kernels per target and element type over all kinds that have no count of their own, in
    proportion to their share of the prior's time, at least `at_least` each; without `kinds` every kind is meant.
    `at_least_per_operator` is the same floor for every operator of a kind (a norm is layer, batch, local response …)
    that takes 0.5 % of the time of some network of the prior, met by real kernels and their relatives; a kind's count
    rises to hold them.
    `counts` says it for a target by element type instead: `torch-eager-t1: {float32: 2600, bfloat16: 1700}`; the floors
    then go down with a type's count. `exclude` names further networks whose exact kernels must not be drawn.
    `judging` says for a target how many kernels of its held-out networks to measure too: nothing is ever drawn from
    them, they are there to judge by. `exact` names kernels to measure beside those drawn. `budget` is a duration such
    as `10m`. `only` narrows a run to some trials of the plan; kernels of the kinds in `first` are measured before all
    others.
    """

    name: str
    targets: tuple[str, ...]
    quality: str = "full"
    budget: str | int | float = ""
    seed: int = 0
    dtypes: tuple[str, ...] = ("float32",)
    kernels: int = 0
    at_least: int = 4
    at_least_per_operator: int = 0
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    kinds: Mapping[str, KindSpec] = field(default_factory=dict)
    prior: Prior = field(default_factory=Prior)
    exclude: tuple[str | NetworkSpec, ...] = ()
    judging: Mapping[str, int] = field(default_factory=dict)
    exact: tuple[ExactKernel, ...] = ()
    networks: Networks = field(default_factory=Networks)
    description: str = ""
    first: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Identity of what is measured; how long it may take, and in which parts, is no part of it."""
        content = {name: value for name, value in plain(self).items() if name not in _NO_IDENTITY}
        # A suite that does not use what was added later is the suite it was before.
        unused = {name for name in ("at_least_per_operator", "exact", "judging") if not content[name]}
        return content_id({name: value for name, value in content.items() if name not in unused})

    def __hash__(self) -> int:
        return hash(self.id)

    def counts_on(self, target: str) -> Mapping[str, int]:
        """How many kernels of each element type are drawn for a target over the kinds without a count of their own."""
        return self.counts.get(target) or dict.fromkeys(self.dtypes, self.kernels)

    @property
    def budget_s(self) -> float | None:
        """The budget in seconds; None without one."""
        if isinstance(self.budget, str):
            return parse_duration_s(self.budget) if self.budget else None
        return float(self.budget)


def load_suite(path: Path) -> Suite:
    """The suite in `path`. Raises `ContentError` naming the file and every wrong key."""
    suite = load(path, Suite, schema=SCHEMA)
    found = problems(suite)
    if found:
        raise ContentError("; ".join(found), where=str(path))
    return suite


def problems(suite: Suite) -> list[str]:
    """Everything wrong with `suite`, as `key: sentence`."""
    found = []
    if not suite.targets:
        found.append("targets: at least one is needed")
    for index, target in enumerate(suite.targets):
        try:
            backend_of(target)
        except UsageError as error:
            found.append(f"targets.{index}: {error.message} ({error.hint})")
    if suite.quality not in PROTOCOLS:
        found.append(f"quality: {_nearest('quality', suite.quality, PROTOCOLS)}")
    try:
        if suite.budget_s is not None and suite.budget_s <= 0:
            found.append(f"budget: must be longer than nothing, not {suite.budget}")
    except UsageError as error:
        found.append(f"budget: {error.message}")
    found += [
        f"dtypes.{i}: unknown element type {name!r}" for i, name in enumerate(suite.dtypes) if name not in DTYPE_BYTES
    ]
    for target, counts in suite.counts.items():
        if target not in suite.targets:
            found.append(f"counts.{target}: {_nearest('target of the suite', target, suite.targets)}")
        for dtype, number in counts.items():
            if dtype not in DTYPE_BYTES:
                found.append(f"counts.{target}.{dtype}: unknown element type {dtype!r}")
            if number < 0:
                found.append(f"counts.{target}.{dtype}: must not be negative, not {number}")
    for key in ("kernels", "at_least", "at_least_per_operator", "seed"):
        number = getattr(suite, key)
        if number < 0:
            found.append(f"{key}: must not be negative, not {number}")
    if not 0 <= suite.prior.share <= 1:
        found.append(f"prior.share: must be between 0 and 1, not {suite.prior.share}")
    for name, spec in suite.kinds.items():
        if name not in KINDS.names():
            found.append(f"kinds.{name}: {_nearest('kind', name, KINDS.names())}")
            continue
        if spec.count is not None and spec.count < 0:
            found.append(f"kinds.{name}.count: must not be negative, not {spec.count}")
        space = KINDS.load(name).space
        for axis, content in spec.space.items():
            problem = content.problem() if axis in space else _nearest("axis", axis, space)
            if problem:
                found.append(f"kinds.{name}.space.{axis}: {problem}")
    found += [
        f"first.{index}: {_nearest('kind', name, KINDS.names())}"
        for index, name in enumerate(suite.first)
        if name not in KINDS.names()
    ]
    for index, one in enumerate(suite.exact):
        if one.kind not in KINDS.names():
            found.append(f"exact.{index}.kind: {_nearest('kind', one.kind, KINDS.names())}")
            continue
        try:
            work_of(one.kernel)
        except (ContentError, TypeError, ValueError) as error:
            found.append(f"exact.{index}.parameters: {getattr(error, 'message', error)}")
    return [*found, *_told_secrets(suite)]


def _told_secrets(suite: Suite) -> list[str]:
    """Where hidden networks are not hidden; a variant shows as much of one as the network itself."""
    try:
        training, hidden = (
            {split_variant(spec.model)[0] for spec in suite.networks.of(role)} for role in ("training", "held-out")
        )
        drawn = {split_variant(spec.model)[0] for spec in specs(suite.prior.networks)}
    except UsageError as error:
        return [f"networks: {error.message}" + (f" ({error.hint})" if error.hint else "")]
    found = [f"networks: {name!r} is both training and held out" for name in sorted(training & hidden)]
    hidden |= {spec.model for spec in specs(suite.exclude)}
    found += [f"prior.networks: {name!r} is held out" for name in sorted(drawn & hidden)]
    return [*found, *_told_families(suite, drawn - hidden, training)]


def _told_families(suite: Suite, drawn: set[str], training: set[str]) -> list[str]:
    """Where something would be learned from a family that errors are stated on; made-up targets have no secrets."""
    if all(target.startswith("null-") for target in suite.targets):
        return []
    known = models()
    return [
        f"{key}: {name!r} is of the held-out family {known[name].label(name)!r}, which nothing is {verb}"
        for key, names, verb in (
            ("prior.networks", drawn, "drawn from"),
            ("networks.training", training, "learned from; put it under held_out"),
        )
        for name in sorted(names)
        if name in known and held_out(name)
    ]


def _nearest(noun: str, name: str, known: "Mapping[str, object] | tuple[str, ...]") -> str:
    error = unknown_name(noun, name, known)
    assert isinstance(error, UnknownNameError)
    return f"{error.message} ({error.hint})"
