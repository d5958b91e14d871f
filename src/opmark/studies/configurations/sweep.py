"""Predict a model in every combination of target, element type and sizes, and find the best one for each goal."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.core.errors import MissingExtraError, NothingSelectedError, OpMarkError, UsageError
from opmark.core.hardware.target import Target
from opmark.core.units import format_ns
from opmark.models.resolve import graph_to_predict
from opmark.models.source import INT8, ModelSource, language_obstacle, source_of
from opmark.predictors.inputs.features import dtype_code
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.unmodelled import warnings_about

FLOAT32 = "float32"
# The element types of a forward pass, float32 first.
TYPES = (FLOAT32, "bf16", *INT8)
_DTYPES = {FLOAT32: "float32", "bf16": "bfloat16"}
FASTEST, MOST = "lowest latency", "most samples per second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to run the model, predicted. `sizes` are the given dimensions; `batch` is the samples of one call.

    The interval is that of the latency of one call; it holds nine of ten measurements.
    """

    target: str
    type: str
    sizes: Mapping[str, int]
    batch: int
    latency_ns: float
    low_ns: float
    high_ns: float
    warnings: tuple[str, ...] = ()

    @property
    def samples_per_second(self) -> float:
        """The samples of one call over its latency."""
        return 1e9 * self.batch / self.latency_ns

    @property
    def name(self) -> str:
        """Target, type and sizes in a few words."""
        return " ".join((self.target, self.type, *(f"{name}={size}" for name, size in self.sizes.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A target and element type that the model cannot be predicted for, in all or some sizes, and the reason."""

    target: str
    type: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Every configuration that can be predicted, in the order asked for; `limit_ns` bounds a call's latency."""

    model: str
    configurations: tuple[Configuration, ...]
    left_out: tuple[LeftOut, ...] = ()
    limit_ns: float | None = None

    @property
    def best(self) -> dict[str, Configuration | None]:
        """The best configuration for each goal; None where none stays within the limit."""
        found: dict[str, Configuration | None] = {
            FASTEST: min(self.configurations, key=lambda one: (one.latency_ns, -one.batch)),
            MOST: max(self.configurations, key=lambda one: one.samples_per_second),
        }
        if self.limit_ns is not None:
            within = [one for one in self.configurations if one.latency_ns <= self.limit_ns]
            name = f"{MOST} within {format_ns(self.limit_ns)}"
            found[name] = max(within, key=lambda one: one.samples_per_second, default=None)
        return found

    def goals_of(self, configuration: Configuration) -> tuple[str, ...]:
        """The goals that `configuration` is best for."""
        return tuple(goal for goal, best in self.best.items() if best is configuration)

    @property
    def front(self) -> tuple[Configuration, ...]:
        """The configurations that no other one beats in both latency and samples per second, fastest first."""
        kept: list[Configuration] = []
        for one in sorted(self.configurations, key=lambda one: (one.latency_ns, -one.samples_per_second)):
            if not kept or one.samples_per_second > kept[-1].samples_per_second:
                kept.append(one)
        return tuple(kept)

    def rivals(self, goal: str) -> tuple[Configuration, ...]:
        """The configurations of other targets or types that may be better than the best for `goal`.

        Their interval reaches the best prediction. Other sizes of the same target and type share its errors.
        """
        best = self.best[goal]
        if best is None:
            return ()
        others = [one for one in self.configurations if (one.target, one.type) != (best.target, best.type)]
        if goal == FASTEST:
            return tuple(one for one in others if one.low_ns < best.latency_ns)
        if goal != MOST:
            others = [one for one in others if self.limit_ns is not None and one.latency_ns <= self.limit_ns]
        return tuple(one for one in others if 1e9 * one.batch / one.low_ns > best.samples_per_second)

    def document(self) -> dict[str, Any]:
        """The sweep as the JSON of `opmark configurations --json`."""
        front = self.front
        return {
            "model": self.model,
            "limit_ns": self.limit_ns,
            "configurations": [
                {
                    "target": one.target,
                    "type": one.type,
                    "sizes": dict(one.sizes),
                    "batch": one.batch,
                    "latency_ns": one.latency_ns,
                    "low_ns": one.low_ns,
                    "high_ns": one.high_ns,
                    "samples_per_second": one.samples_per_second,
                    "front": one in front,
                    "best_for": self.goals_of(one),
                    "warnings": one.warnings,
                }
                for one in self.configurations
            ],
            "left_out": [{"target": one.target, "type": one.type, "reason": one.reason} for one in self.left_out],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """The combinations to predict. Without `types`, every element type that a target can run.

    `sizes` gives the values of each dimension. `missing` and `cache` are those of `CostModel` and `graph_to_predict`.
    """

    model: str
    types: Sequence[str] = ()
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    missing: str = "error"
    cache: Path | None = None
    limit_ns: float | None = None

    @property
    def combinations(self) -> list[dict[str, int]]:
        """Every combination of sizes; one empty one where no dimension is given."""
        return [dict(zip(self.sizes, values, strict=True)) for values in itertools.product(*self.sizes.values())]


def sweep(
    asked: SweepRequest,
    bundles: Sequence[Bundle],
    progress: Callable[[int, int, str], None] = lambda _done, _total, _doing: None,
) -> Sweep:
    """Predict every combination of `asked` on the target of every bundle.

    `progress` hears how many combinations are done, of how many, and which one comes next.

    Raises `UsageError` for a variant in the model's name, `NothingSelectedError` where nothing can be predicted, and
    as `source_of` does.
    """
    source = source_of(asked.model)
    if source.variant:
        raise UsageError(
            f"{asked.model} names an element type already", hint=f"write {source.base} --type {source.variant}"
        )
    pairs = list(_pairs(source, asked, bundles))
    done, total = 0, len(pairs) * len(asked.combinations)
    found: list[Configuration] = []
    left_out: dict[tuple[str, str, str], LeftOut] = {}
    for bundle, type_name in pairs:
        if not knows(bundle, type_name):
            target, reason = str(bundle.target), f"its predictor has learned from no {_DTYPES[type_name]} kernel"
            left_out[target, type_name, reason] = LeftOut(target=target, type=type_name, reason=reason)
            done += len(asked.combinations)
            continue
        model = CostModel(bundle, missing=asked.missing, exact=True)
        for sizes in asked.combinations:
            given = "".join(f" {name}={value}" for name, value in sizes.items())
            progress(done, total, f"{type_name}{given} on {bundle.target.name}")
            done += 1
            try:
                found.append(_predicted(asked, model, type_name, sizes))
            except MissingExtraError as error:
                asks = f" ({error.hint})" if error.hint else ""
                reason = f"{f'for{given} ' if given else ''}{error.message}{asks}"
                left_out[str(bundle.target), type_name, reason] = LeftOut(
                    target=str(bundle.target), type=type_name, reason=reason
                )
            except OpMarkError as error:
                # Without the list of kernels, which differs by size and fills a screen; `opmark predict` shows it.
                target, reason = str(bundle.target), error.message.partition(f" on {bundle.target}:")[0]
                left_out[target, type_name, reason] = LeftOut(target=target, type=type_name, reason=reason)
    if not found:
        reason = next((one.reason for one in left_out.values()), "no target has a predictor and can run it")
        raise NothingSelectedError(
            f"no configuration of {asked.model} can be predicted: {reason}", hint="see --target and --type"
        )
    return Sweep(
        model=asked.model, configurations=tuple(found), left_out=tuple(left_out.values()), limit_ns=asked.limit_ns
    )


def _pairs(source: ModelSource, asked: SweepRequest, bundles: Iterable[Bundle]) -> Iterator[tuple[Bundle, str]]:
    """The pairs to try; with `types` given, also those that must fail, so that their reasons are told."""
    for bundle in bundles:
        language = _language(bundle.target)
        for type_name in asked.types or TYPES:
            if asked.types or _is_possible(source, type_name, language):
                yield bundle, type_name


def knows(bundle: Bundle, type_name: str) -> bool:
    """True if the predictor has learned from kernels of that element type; kinds of 8 bits have names of their own."""
    dtype = _DTYPES.get(type_name)
    learned = [entry for entry in bundle.manifest.kinds.values() if "dtype_code" in entry.features]
    if dtype is None or not learned:
        return True
    code = dtype_code(dtype)
    return any(
        code in codes
        for entry in learned
        for column, codes in entry.range.codes
        if column == entry.features.index("dtype_code")
    )


def _is_possible(source: ModelSource, type_name: str, language: str) -> bool:
    try:
        typed = source if type_name == FLOAT32 else source_of(f"{source.path or source.base}@{type_name}")
    except UsageError:
        return False
    return not language_obstacle(typed, language)


def _language(target: Target) -> str:
    return "onnx" if target.backend == "onnxruntime" else "aten"


def _predicted(asked: SweepRequest, model: CostModel, type_name: str, sizes: Mapping[str, int]) -> Configuration:
    target = model.bundle.target
    name = asked.model if type_name == FLOAT32 else f"{asked.model}@{type_name}"
    graph, _versions = graph_to_predict(
        name,
        target.name,
        cache=asked.cache,
        dimensions=sizes,
        block_width=model.bundle.manifest.hardware.block_width,
    )
    found = model.network(graph)
    return Configuration(
        target=str(target),
        type=type_name,
        sizes=sizes,
        batch=batch_of(sizes),
        latency_ns=found.total_ns,
        low_ns=found.low_ns,
        high_ns=found.high_ns,
        warnings=warnings_about(found.unmodelled),
    )


def is_batch(dimension: str) -> bool:
    """True for names that exporters give to the batch, and for the first axis of an input without names."""
    name = dimension.lower()
    return name.startswith("batch") or name in {"b", "bs", "n"} or name.endswith(".0")


def batch_of(sizes: Mapping[str, int]) -> int:
    """The samples of one call: the size of the first dimension that is a batch; 1 without any."""
    return next((size for name, size in sizes.items() if is_batch(name)), 1)
