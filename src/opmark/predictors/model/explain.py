"""The reasons behind a prediction: bounds of kernels, parts of the interval, and kernels to measure next."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opmark.core.canonical import plain
from opmark.core.errors import NothingSelectedError
from opmark.core.files import write_text
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.core.plain_text import one_line
from opmark.core.slug import NAME
from opmark.kinds import work_of
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.graphs import network_class
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.learners.roofline import Roofline
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.network import NetworkPrediction, Parts, deviations

COMPUTE, MEMORY, OVERHEAD, UNKNOWN = "compute", "memory", "overhead", "unknown"
_MOST = 0.5
_SUITE_SCHEMA = 1
# The name of a suite in a file whose own name cannot be one.
_SUITE_NAME = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReason:
    """One distinct kernel; `doubt_share` is its share of the interval's variance.

    `bound` is the largest term of its kind's fitted roofline: `compute`, `memory`, `overhead`, else `unknown`.
    """

    kernel: Kernel
    count: int
    total_ns: float
    share: float
    bound: str
    extrapolated: bool
    doubt_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalParts:
    """Shares of the variance of the network's log error; they add up to 1.

    `kinds` comes from errors that all kernels of a kind share, `groups` from those of a shape group, `kernels` from
    those of single kernels, `composition` from the sum itself.
    """

    kinds: float
    groups: float
    kernels: float
    composition: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A network's prediction and its reasons; `rows` are sorted by time, `next_kernels` by their share of the doubt."""

    prediction: NetworkPrediction
    rows: tuple[KernelReason, ...]
    interval: IntervalParts
    by_kind: tuple[tuple[str, float], ...]
    by_bound: tuple[tuple[str, float], ...]
    extrapolated_share: float
    next_kernels: tuple[Kernel, ...]

    @property
    def settled_share(self) -> float:
        """The largest share of the interval's variance that measuring `next_kernels` can remove."""
        chosen = set(self.next_kernels)
        return sum(row.doubt_share for row in self.rows if row.kernel in chosen)

    @property
    def narrower(self) -> float:
        """The share of its width that the interval loses if `next_kernels` are known exactly."""
        return 1 - math.sqrt(max(0.0, 1 - self.settled_share))

    @property
    def sum_dominates(self) -> bool:
        """True if most of the interval's variance comes from the sum, which measuring kernels cannot reduce."""
        return self.interval.composition > _MOST


def explain(bundle: Bundle, graph: Graph, *, missing: str = "error", suggestions: int = 20) -> Explanation:
    """Explain the prediction of `graph`: the time of its kernels and the parts of its interval.

    On a device of its own, both are those of the device's time.
    At most `suggestions` kernels that cause most of the interval's variance are to be measured next. Raises
    `ContentError` as `CostModel.network` does.
    """
    model = CostModel(bundle, missing=missing, exact=True)
    graph = model.as_run(graph).graph
    prediction, parts = model.network(graph), model.parts(graph)
    total = max(prediction.device_ns or prediction.total_ns, 1e-9)
    each = {row.kernel: row for row in prediction.rows}
    shares = np.array([each[kernel].total_ns / total for kernel in parts.kernels])
    composition = bundle.constants.of(network_class(graph)).composition_deviation
    interval, doubt = _variances(bundle, parts, shares, composition)
    rows = tuple(
        KernelReason(
            kernel=kernel,
            count=each[kernel].count,
            total_ns=each[kernel].total_ns,
            share=float(shares[index]),
            bound=_bound(bundle, kernel),
            extrapolated=bool(parts.extrapolated[index]),
            doubt_share=float(doubt[index]),
        )
        for index, kernel in sorted(enumerate(parts.kernels), key=lambda item: -shares[item[0]])
    )
    doubtful = sorted(rows, key=lambda row: (-row.doubt_share, row.kernel.key))
    return Explanation(
        prediction=prediction,
        rows=rows,
        interval=interval,
        by_kind=_summed(rows, lambda row: row.kernel.kind),
        by_bound=_summed(rows, lambda row: row.bound),
        extrapolated_share=sum(row.share for row in rows if row.extrapolated),
        next_kernels=tuple(row.kernel for row in doubtful[:suggestions] if row.doubt_share > 0),
    )


def write_suite(path: Path, kernels: Sequence[Kernel], *, target: str, model: str) -> None:
    """Write the suite of `kernels` on `target` that `opmark bench run` reads. Raises `NothingSelectedError`."""
    if not kernels:
        raise NothingSelectedError("no kernel would make this prediction surer", where=str(path))
    lines = [
        f"# What makes the prediction of {one_line(model)} uncertain, the worst first.",
        f"schema: {_SUITE_SCHEMA}",
        f"name: {path.stem if NAME.accepts(path.stem) else _SUITE_NAME}",
        f"targets: [{target}]",
        "at_least: 0",
        "exact:",
    ]
    # JSON is YAML, and keeps the type of every parameter
    lines += [
        f"- {json.dumps({'kind': one.kind, 'parameters': plain(one.params)}, ensure_ascii=False)}" for one in kernels
    ]
    write_text(path, "\n".join(lines) + "\n")


def _variances(
    bundle: Bundle, parts: Parts, shares: Floats, composition_deviation: float
) -> tuple[IntervalParts, Floats]:
    """Compute the variance of the log sum to first order, where an error weighs by its share of the time."""
    deviation = deviations(parts, bundle.manifest)
    of_kind, of_group, of_kernel = deviation.kind, deviation.group * deviation.wider, deviation.kernel * deviation.wider
    kinds = _shared(shares * of_kind, [kernel.kind for kernel in parts.kernels])
    groups = _shared(shares * of_group, shape_groups(parts.kernels))
    alone = (shares * of_kernel) ** 2
    variances = np.array([kinds.sum(), groups.sum(), alone.sum(), composition_deviation**2])
    whole = max(float(variances.sum()), 1e-30)
    interval = IntervalParts(**dict(zip(("kinds", "groups", "kernels", "composition"), variances / whole, strict=True)))
    return interval, (kinds + groups + alone) / whole


def _shared(errors: Floats, names: Sequence[str]) -> Floats:
    """Compute each row's part of the variance if rows of one name share an error: its error times their sum."""
    _, codes = np.unique(np.array(names), return_inverse=True)
    sums = np.bincount(codes, weights=errors) if len(errors) else np.empty(0)
    shared: Floats = errors * sums[codes] if len(errors) else errors
    return shared


def _bound(bundle: Bundle, kernel: Kernel) -> str:
    entry = bundle.manifest.kinds.get(kernel.kind)
    roofline = bundle.manifest.anything if entry is None else entry.roofline
    if roofline == Roofline():
        return UNKNOWN
    work = work_of(kernel)
    terms = {
        COMPUTE: work.flops * roofline.ns_per_flop,
        MEMORY: work.moved_bytes * roofline.ns_per_byte,
        OVERHEAD: roofline.constant_ns,
    }
    return max(terms, key=lambda name: terms[name])


def _summed(rows: Sequence[KernelReason], name: Callable[[KernelReason], str]) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = {}
    for row in rows:
        sums[name(row)] = sums.get(name(row), 0.0) + row.share
    return tuple(sorted(sums.items(), key=lambda item: -item[1]))
