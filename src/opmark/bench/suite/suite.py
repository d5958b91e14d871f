"""Suites: the kernels, networks and targets to measure, as a YAML file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from opmark.bench.clock.protocol import PROTOCOLS
from opmark.bench.worker.backend import backend_of
from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError, UnknownNameError, UsageError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Axis, Choice, Range
from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.core.measurements.measurement import HELD_OUT, ROLES, SEALED, TRAINING
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.core.shipped import shipped_content
from opmark.core.slug import Slug
from opmark.core.units import parse_duration_s
from opmark.kinds import KINDS, work_of
from opmark.models.source import split_variant
from opmark.models.zoo import held_out, models

SCHEMA = 1
# A year of measuring on one machine; a plan of more would only fill memory.
_MOST_KERNELS = 1_000_000
_LONGEST_AXIS = 2**40
_NO_IDENTITY = frozenset({"budget", "description", "only", "first", "path"})
_LATER_ADDITIONS = ("at_least_per_operator", "exact", "judging", "least_moved_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSpec:
    """An axis of a kind's space: either a `choice`, or a logarithmic range from `low` to `high`."""

    choice: tuple[bool | int | float | str, ...] = ()
    low: int | None = None
    high: int | None = None
    multiple: int = 1

    def problem(self) -> str | None:
        """The error in this axis, or None."""
        if self.choice:
            return "choice and low/high exclude each other" if self.low is not None or self.high is not None else None
        if self.low is None or self.high is None:
            return "give a choice, or low and high"
        if not 1 <= self.low <= self.high <= _LONGEST_AXIS:
            return f"low and high must be positive and in order, at most 2^40, not {self.low} and {self.high}"
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
    """The count of a kind, and the axes that replace those of its space; without a count, its share decides."""

    count: int | None = None
    space: Mapping[str, AxisSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """A network: a file or a name of the zoo. `dimensions` set its batch and size, or the open dimensions of a file.

    `family` defaults to the zoo's. Without `targets`, every target of the suite that can run the network measures it:
    modules are exported for ONNX runtimes, and torch runs no ONNX files.
    """

    model: str
    family: str = ""
    dimensions: Mapping[str, int] = field(default_factory=dict)
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The networks with realistic kernels; a `share` of the drawn kernels are these kernels and variations of them."""

    networks: tuple[str | NetworkSpec, ...] = ()
    share: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Networks to measure whole: predictors are fitted on `training`, and no kernel is drawn from `held_out`.

    `sealed` networks are of families that nobody looks at: they judge released predictors, and nothing else.
    """

    training: tuple[str | NetworkSpec, ...] = ()
    held_out: tuple[str | NetworkSpec, ...] = ()
    sealed: tuple[str | NetworkSpec, ...] = ()

    def of(self, role: str) -> tuple[NetworkSpec, ...]:
        """The networks of `role`, one of `ROLES`."""
        return specs({TRAINING: self.training, HELD_OUT: self.held_out, SEALED: self.sealed}[role])


def specs(entries: Iterable[str | NetworkSpec]) -> tuple[NetworkSpec, ...]:
    """The entries of a list of networks, in which a plain name stands for a network without settings."""
    return tuple(NetworkSpec(model=item) if isinstance(item, str) else item for item in entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactKernel:
    """One kernel to measure exactly; `opmark predictors explain --suite` writes such entries."""

    kind: str
    parameters: Mapping[str, Any]

    @property
    def kernel(self) -> Kernel:
        """The kernel with all parameters. Raises `ContentError` if they do not fit its kind."""
        kind = KINDS.load(self.kind)
        return kind.kernel(kind.parse(Kernel.of(self.kind, self.parameters)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Kernels and networks to measure on some targets.

    `kernels` is the number of kernels per target and element type over all kinds without a count of their own. It is
    split in proportion to the kinds' shares of the prior's time, with at least `at_least` each. Without `kinds`, the
    suite has all kinds.
    `at_least_per_operator` is a floor for every operator of a kind (a norm is layer, batch, local response …) with at
    least 0.5 % of the time of some network of the prior. Real kernels and variations fill it, and the count of the
    kind grows if necessary.
    No drawn kernel moves fewer bytes than `least_moved_bytes`.
    `counts` replaces `kernels` by a count per element type for a target: `torch-eager-t1: {float32: 2600, bfloat16:
    1700}`. The floors then fall in proportion to the counts.
    `exclude` names further networks whose exact kernels must not be drawn. `judging` is the number of kernels of
    held-out networks to measure for a target, only to judge predictors. `exact` names kernels to measure beside the
    drawn ones. `budget` is a duration such as `10m`. `only` restricts a run to some trials of the plan. Kernels of the
    kinds in `first` are measured first.
    """

    name: Slug
    targets: tuple[str, ...]
    quality: str = "full"
    budget: str | int | float = ""
    seed: int = 0
    dtypes: tuple[str, ...] = ("float32",)
    kernels: int = 0
    at_least: int = 4
    at_least_per_operator: int = 0
    least_moved_bytes: int = 0
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
        """The identity of the measured content, without the budget and the order."""
        content = {name: value for name, value in plain(self).items() if name not in _NO_IDENTITY}
        # A suite that does not use a later addition keeps its identity.
        unused = {name for name in _LATER_ADDITIONS if not content[name]}
        content["networks"] = {role: named for role, named in content["networks"].items() if named or role != SEALED}
        return content_id({name: value for name, value in content.items() if name not in unused})

    @property
    def where(self) -> str:
        """The suite as errors name it: by its file, if it has one."""
        return f"suite {self.name!r}"

    def __hash__(self) -> int:
        return hash(self.id)

    def counts_on(self, target: str) -> Mapping[str, int]:
        """Element type → number of kernels to draw for a target, over the kinds without a count of their own."""
        return self.counts.get(target) or dict.fromkeys(self.dtypes, self.kernels)

    @property
    def all_networks(self) -> tuple[NetworkSpec, ...]:
        """Every network that the suite names: of the prior, to measure, and excluded."""
        hidden = (*self.networks.of("held-out"), *specs(self.exclude))
        return (*specs(self.prior.networks), *self.networks.of("training"), *hidden)

    @property
    def budget_s(self) -> float | None:
        """The budget in seconds; None without one."""
        if isinstance(self.budget, str):
            return parse_duration_s(self.budget) if self.budget else None
        return float(self.budget)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuiteOfFile(Suite):
    """A suite that was read from the file `path`, which is no part of its identity."""

    path: Path

    @property
    def where(self) -> str:
        """The file."""
        return str(self.path)


def suites(folder: Path | None = None) -> dict[str, Path]:
    """All suites by name; a suite in `folder` replaces a shipped one of the same name."""
    found: dict[str, Path] = {}
    for place in (shipped_content().suites, folder):
        if place is not None and place.is_dir():
            found.update({path.stem: path for path in sorted(place.glob("*.yaml"))})
    return dict(sorted(found.items()))


def find_suite(name: str, folder: Path | None = None) -> Path:
    """The path of the suite called `name`, or `name` itself if it is a file.

    Raises `UnknownNameError` with the nearest name, `ContentError` if the file does not exist.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        if not path.is_file():
            raise ContentError("no such file", where=name)
        return path
    known = suites(folder)
    if name not in known:
        raise unknown_name("suite", name, known)
    return known[name]


def load_suite(path: Path) -> SuiteOfFile:
    """Read the suite in `path`. Raises `ContentError` naming the file and every wrong key."""
    suite = load(path, Suite, schema=SCHEMA)
    found = problems(suite)
    if found:
        raise ContentError("; ".join(found), where=str(path))
    return SuiteOfFile(**{one.name: getattr(suite, one.name) for one in fields(suite)}, path=path)


def problems(suite: Suite) -> list[str]:
    """All errors in `suite`, as `key: sentence`."""
    return [
        *_target_problems(suite),
        *_run_problems(suite),
        *_count_problems(suite),
        *_kind_problems(suite),
        *_exact_problems(suite),
        *_leaks(suite),
    ]


def _target_problems(suite: Suite) -> Iterator[str]:
    if not suite.targets:
        yield "targets: at least one is needed"
    for index, target in enumerate(suite.targets):
        try:
            backend_of(target)
        except UsageError as error:
            yield f"targets.{index}: {error.message} ({error.hint})"


def _run_problems(suite: Suite) -> Iterator[str]:
    if suite.quality not in PROTOCOLS:
        yield f"quality: {_nearest('quality', suite.quality, PROTOCOLS)}"
    try:
        if suite.budget_s is not None and suite.budget_s <= 0:
            yield f"budget: must be positive, not {suite.budget}"
    except UsageError as error:
        yield f"budget: {error.message}"


def _count_problems(suite: Suite) -> Iterator[str]:
    for index, dtype in enumerate(suite.dtypes):
        if dtype not in DTYPE_BYTES:
            yield f"dtypes.{index}: unknown element type {dtype!r}"
    for target, counts in suite.counts.items():
        if target not in suite.targets:
            yield f"counts.{target}: {_nearest('target of the suite', target, suite.targets)}"
        for dtype, number in counts.items():
            if dtype not in DTYPE_BYTES:
                yield f"counts.{target}.{dtype}: unknown element type {dtype!r}"
            yield from _count_problem(f"counts.{target}.{dtype}", number)
    for target, number in suite.judging.items():
        yield from _count_problem(f"judging.{target}", number)
    for key in ("kernels", "at_least", "at_least_per_operator"):
        yield from _count_problem(key, getattr(suite, key))
    if not 0 <= suite.least_moved_bytes <= _LONGEST_AXIS:
        yield f"least_moved_bytes: must be from 0 to 2^40, not {suite.least_moved_bytes}"
    if suite.seed < 0:
        yield f"seed: must not be negative, not {suite.seed}"
    if not 0 <= suite.prior.share <= 1:
        yield f"prior.share: must be between 0 and 1, not {suite.prior.share}"


def _count_problem(key: str, number: int) -> Iterator[str]:
    if number < 0:
        yield f"{key}: must not be negative, not {number}"
    elif number > _MOST_KERNELS:
        yield f"{key}: must be at most {_MOST_KERNELS:,}, not {number}"


def _kind_problems(suite: Suite) -> Iterator[str]:
    known = KINDS.names()
    for name, spec in suite.kinds.items():
        if name not in known:
            yield f"kinds.{name}: {_nearest('kind', name, known)}"
            continue
        if spec.count is not None:
            yield from _count_problem(f"kinds.{name}.count", spec.count)
        space = KINDS.load(name).space
        for axis, content in spec.space.items():
            problem = content.problem() if axis in space else _nearest("axis", axis, space)
            if problem:
                yield f"kinds.{name}.space.{axis}: {problem}"
    for index, name in enumerate(suite.first):
        if name not in known:
            yield f"first.{index}: {_nearest('kind', name, known)}"


def _exact_problems(suite: Suite) -> Iterator[str]:
    for index, one in enumerate(suite.exact):
        if one.kind not in KINDS.names():
            yield f"exact.{index}.kind: {_nearest('kind', one.kind, KINDS.names())}"
            continue
        try:
            work_of(one.kernel)
        except (ContentError, TypeError, ValueError) as error:
            yield f"exact.{index}.parameters: {getattr(error, 'message', error)}"


def _leaks(suite: Suite) -> list[str]:
    """The places where the suite uses its hidden networks; a variant counts as its network."""
    try:
        training, hidden, sealed = (
            {split_variant(spec.model)[0] for spec in suite.networks.of(role)} for role in ROLES
        )
        drawn = {split_variant(spec.model)[0] for spec in specs(suite.prior.networks)}
    except UsageError as error:
        return [f"networks: {error.message}" + (f" ({error.hint})" if error.hint else "")]
    found = [f"networks: {name!r} is both training and held out" for name in sorted(training & hidden)]
    judging = hidden
    hidden = hidden | {spec.model for spec in specs(suite.exclude)}
    found += [f"prior.networks: {name!r} is held out" for name in sorted(drawn & hidden)]
    return [
        *found,
        *_leaked_families(suite, drawn - hidden, training),
        *_broken_seals(drawn | training | judging, sealed),
    ]


def _broken_seals(used: set[str], sealed: set[str]) -> Iterator[str]:
    """The places where a sealed network is used otherwise, or one that others may use is called sealed."""
    known = models()
    for name in sorted(used & known.keys()):
        if known[name].sealed:
            yield f"networks: {name!r} is of a sealed family, which nobody looks at; put it under sealed"
    for name in sorted(sealed):
        if name in used or (name in known and not known[name].sealed):
            yield f"networks.sealed: {name!r} is used elsewhere, so its seal is broken; put it under held_out"


def _leaked_families(suite: Suite, drawn: set[str], training: set[str]) -> list[str]:
    """The places where the suite uses a held-out family; suites for made-up targets may."""
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
