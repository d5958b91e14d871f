"""From kernels to a network: the sum, its interval, and where the time goes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.kinds import kind_of
from opmark.predictors.inputs.arrays import Flags, Floats, Integers
from opmark.predictors.inputs.reuse import footprint_bytes, network_class, weight_shares
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.model.constants import NetworkConstants
from opmark.predictors.model.intervals import COVERAGE

if TYPE_CHECKING:
    from opmark.predictors.model.bundle import Manifest

_DRAWS = 2000
_DRAWS_AT_ONCE = 100
ANYTHING_DEVIATION = 0.4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The distinct kernels of a graph with both labels; `of_node` is each node's kernel, -1 for a free node."""

    kernels: tuple[Kernel, ...]
    of_node: Integers
    hot_ns: Floats
    rotated_ns: Floats
    half_width: Floats
    extrapolated: Flags
    by_bytes: Flags

    @property
    def counts(self) -> Integers:
        """How many nodes each distinct kernel has."""
        return np.bincount(self.of_node[self.of_node >= 0], minlength=len(self.kernels)).astype(np.int64)

    @property
    def matrix(self) -> Flags:
        """Which distinct kernels do matrix work."""
        return np.array([kind_of(kernel).matrix for kernel in self.kernels], dtype=bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """One distinct kernel of a network; `ns` is one call within the network, `low_ns` and `high_ns` around it."""

    kernel: Kernel
    count: int
    ns: float
    low_ns: float
    high_ns: float
    extrapolated: bool

    @property
    def total_ns(self) -> float:
        """All calls together."""
        return self.count * self.ns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkPrediction:
    """A network's latency; between `low_ns` and `high_ns` with probability `coverage`.

    `node_ns` has one entry per node of the graph, the gap alone for a free one; `rows` are sorted by total cost;
    `bytes_moved_share` is the share of the time that was predicted from bytes alone; `rotated_share` is w.
    """

    total_ns: float
    low_ns: float
    high_ns: float
    coverage: float
    bytes_moved_share: float
    rotated_share: float
    rows: tuple[KernelRow, ...]
    node_ns: Floats
    note: str


def predict_network(graph: Graph, parts: Parts, manifest: "Manifest") -> NetworkPrediction:
    """Sum of hot + (w · s + v · (1 − s)) · (rotated − hot) over the graph's kernels, s being the share of weights in
    their bytes, plus a gap for each call, views too, and another for each call of matrix work, plus page faults where
    the target has them.
    """
    constants = manifest.constants.of(network_class(graph))
    wanted = footprint_bytes(graph)
    share = constants.rotated_share(wanted / manifest.hardware.last_level_cache_bytes)
    weights = weight_shares(graph, parts)
    cold = share * weights + constants.activation_share * (1 - weights)
    each = parts.hot_ns + cold * (parts.rotated_ns - parts.hot_ns) + constants.gap_ns
    each = each + parts.matrix * constants.matrix_gap_ns
    counts = parts.counts
    kernel_ns = each * counts
    views_ns = int((parts.of_node < 0).sum()) * constants.gap_ns
    total = float(kernel_ns.sum()) + views_ns + wanted * constants.faults_per_byte * constants.ns_per_fault
    low, high = _interval(parts, kernel_ns, total, manifest, constants)
    order = np.argsort(-kernel_ns, kind="stable")
    rows = tuple(
        KernelRow(
            kernel=parts.kernels[index],
            count=int(counts[index]),
            ns=float(each[index]),
            low_ns=float(each[index] * np.exp(-parts.half_width[index])),
            high_ns=float(each[index] * np.exp(parts.half_width[index])),
            extrapolated=bool(parts.extrapolated[index]),
        )
        for index in order
    )
    return NetworkPrediction(
        total_ns=total,
        low_ns=low,
        high_ns=high,
        coverage=COVERAGE,
        bytes_moved_share=float(kernel_ns[parts.by_bytes].sum()) / total if total > 0 else 0.0,
        rotated_share=share,
        rows=rows,
        node_ns=np.append(each, constants.gap_ns)[parts.of_node],
        note=constants.note,
    )


def replaced(parts: Parts, known: Mapping[Kernel, tuple[float, float]]) -> Parts:
    """`parts` with the (hot, rotated) latencies of `known`; where rotated is not a number, in proportion to hot."""
    hot_ns, rotated_ns = parts.hot_ns.copy(), parts.rotated_ns.copy()
    for index, kernel in enumerate(parts.kernels):
        if kernel in known:
            hot, rotated = known[kernel]
            rotated_ns[index] = rotated_ns[index] * hot / hot_ns[index] if np.isnan(rotated) else rotated
            hot_ns[index] = hot
    return replace(parts, hot_ns=hot_ns, rotated_ns=rotated_ns)


def sum_deviation(parts: Parts, manifest: "Manifest", *, sure: Flags | None = None) -> float:
    """The standard deviation, in nats, that the kernels' errors give to the sum of hot latencies.

    Kernels marked `sure` have no error.
    """
    if not len(parts.kernels):
        return 0.0
    kernel_ns = parts.hot_ns * parts.counts
    certain = 0.0 if sure is None else float(kernel_ns[sure].sum())
    drawn = draw_sums(parts, kernel_ns if sure is None else np.where(sure, 0.0, kernel_ns), manifest)
    return float(np.log(certain + drawn).std())


def draw_sums(parts: Parts, kernel_ns: Floats, manifest: "Manifest") -> Floats:
    """Sums of `kernel_ns` (all calls of each distinct kernel) in draws of the error model, the same in every call.

    A kind's and a shape group's error are shared by all their kernels within a draw, a kernel's by all its nodes.
    """
    kinds, of_kind = np.unique([kernel.kind for kernel in parts.kernels], return_inverse=True)
    groups, of_group = np.unique(shape_groups(parts.kernels), return_inverse=True)
    known = manifest.kinds
    usual = {kind: known[kind].errors for kind in kinds if kind in known}
    kind_deviation = np.array([usual[k].kind_deviation if k in usual else ANYTHING_DEVIATION for k in kinds])
    own = [usual.get(kernel.kind) for kernel in parts.kernels]
    group_deviation = np.zeros(len(groups))
    group_deviation[of_group] = [errors.group_deviation if errors else 0.0 for errors in own]
    # beyond the training range everything about a kernel is as much less certain as its interval is wider
    wider = np.array(
        [
            width / max(errors.half_width, 1e-9) if errors else 1.0
            for errors, width in zip(own, parts.half_width, strict=True)
        ]
    )
    kernel_deviation = np.array([errors.kernel_deviation if errors else ANYTHING_DEVIATION for errors in own]) * wider
    source = np.random.default_rng(0)
    totals = []
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        errors_drawn = (
            (source.standard_normal((_DRAWS_AT_ONCE, len(kinds))) * kind_deviation)[:, of_kind]
            + (source.standard_normal((_DRAWS_AT_ONCE, len(groups))) * group_deviation)[:, of_group] * wider
            + source.standard_normal((_DRAWS_AT_ONCE, len(own))) * kernel_deviation
        )
        totals.append(np.exp(errors_drawn) @ kernel_ns)
    return np.concatenate(totals)


def _interval(
    parts: Parts, kernel_ns: Floats, total: float, manifest: "Manifest", constants: NetworkConstants
) -> tuple[float, float]:
    """Quantiles of drawn sums, each with a composition error that belongs to the whole."""
    if not len(kernel_ns) or total <= 0:
        return total, total
    sums = draw_sums(parts, kernel_ns, manifest) + (total - float(kernel_ns.sum()))
    whole = np.random.default_rng(1).standard_normal(len(sums)) * constants.composition_deviation
    low, high = np.quantile(sums * np.exp(whole), [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    scale = constants.interval_scale
    below, above = max(0.0, np.log(total / low)), max(0.0, np.log(high / total))
    return total * float(np.exp(-scale * below)), total * float(np.exp(scale * above))
