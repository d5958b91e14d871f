"""Why a prediction is what it is: what bounds each kernel, what its interval is made of, what to measure next."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.kinds import work_of
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.reuse import network_class
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.learners.roofline import Roofline
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.network import ANYTHING_DEVIATION, NetworkPrediction, Parts

COMPUTE, MEMORY, OVERHEAD, UNKNOWN = "compute", "memory", "overhead", "unknown"
_MOST = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReason:
    """One distinct kernel: what bounds it, and the `doubt_share` of the interval's variance that it causes.

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

    `kinds` are errors that all kernels of a kind share, `groups` those of a shape group, `kernels` those of a kernel
    alone, `composition` that of the sum itself.
    """

    kinds: float
    groups: float
    kernels: float
    composition: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A network's prediction and the reasons behind it; `rows` by time, `next_kernels` by what they would settle."""

    prediction: NetworkPrediction
    rows: tuple[KernelReason, ...]
    interval: IntervalParts
    by_kind: tuple[tuple[str, float], ...]
    by_bound: tuple[tuple[str, float], ...]
    extrapolated_share: float
    next_kernels: tuple[Kernel, ...]

    @property
    def settled_share(self) -> float:
        """The share of the interval's variance that measuring `next_kernels` can take away, at most."""
        chosen = set(self.next_kernels)
        return sum(row.doubt_share for row in self.rows if row.kernel in chosen)

    @property
    def narrower(self) -> float:
        """By which share the interval becomes narrower when `next_kernels` are known exactly."""
        return 1 - math.sqrt(max(0.0, 1 - self.settled_share))

    @property
    def sum_dominates(self) -> bool:
        """Whether most of the interval's variance is that of the sum, which no kernel can settle."""
        return self.interval.composition > _MOST


def explain(bundle: Bundle, graph: Graph, *, missing: str = "error", suggestions: int = 20) -> Explanation:
    """Where the time of `graph` goes and what its interval is made of.

    The kernels to measure next are those that cause most of the interval's variance, at most `suggestions` of them.
    Raises `ContentError` as `CostModel.network` does.
    """
    model = CostModel(bundle, missing=missing)
    prediction, parts = model.network(graph), model.parts(graph)
    total = max(prediction.total_ns, 1e-9)
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


def _variances(
    bundle: Bundle, parts: Parts, shares: Floats, composition_deviation: float
) -> tuple[IntervalParts, Floats]:
    """Variance of the log of the sum, to first order: errors weigh by the share of the time they act on."""
    entries = bundle.manifest.kinds
    known = [entries[kernel.kind].errors if kernel.kind in entries else None for kernel in parts.kernels]
    wider = np.array(
        [
            width / max(errors.half_width, 1e-9) if errors else 1.0
            for errors, width in zip(known, parts.half_width, strict=True)
        ]
    )
    of_kind = np.array([errors.kind_deviation if errors else ANYTHING_DEVIATION for errors in known])
    of_group = np.array([errors.group_deviation if errors else 0.0 for errors in known]) * wider
    of_kernel = np.array([errors.kernel_deviation if errors else ANYTHING_DEVIATION for errors in known]) * wider
    kinds = _shared(shares * of_kind, [kernel.kind for kernel in parts.kernels])
    groups = _shared(shares * of_group, shape_groups(parts.kernels))
    alone = (shares * of_kernel) ** 2
    variances = np.array([kinds.sum(), groups.sum(), alone.sum(), composition_deviation**2])
    whole = max(float(variances.sum()), 1e-30)
    interval = IntervalParts(**dict(zip(("kinds", "groups", "kernels", "composition"), variances / whole, strict=True)))
    return interval, (kinds + groups + alone) / whole


def _shared(errors: Floats, names: Sequence[str]) -> Floats:
    """Each row's part of the variance where rows of one name err together: its error times their sum."""
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
