"""The latency of a network as a sum over its kernels, with an interval."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of
from opmark.predictors.composition.constants import COVERAGE, NetworkConstants
from opmark.predictors.composition.host_time import HostCalls
from opmark.predictors.inputs.arrays import Flags, Floats, Integers
from opmark.predictors.inputs.graphs import (
    activation_traffic_bytes,
    counted_python_calls,
    footprint_bytes,
    network_class,
)
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.model.derived_kernels import RULES
from opmark.predictors.model.intervals import NORMAL_90
from opmark.predictors.model.manifest import BundleManifest
from opmark.predictors.model.unmodelled import Doubts, UnmodelledOperator, doubts_about, unmodelled_operators, widened

_DRAWS = 2000
_DRAWS_AT_ONCE = 100
ANYTHING_DEVIATION = 0.4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The distinct kernels of a graph with both labels; `of_node` is the kernel of each node, -1 for a free node.

    `by_bytes` marks those predicted from bytes alone; `evidence` says what was measured of the operation of each
    (`measured_kernels`).
    `derived` numbers the rule of `derived_kernels.RULES` behind each, 0 where none is.
    `exact` marks measured kernels; `distance` is that to the nearest measured kernel (`measured_kernels`), NaN where it
    is unknown.
    """

    kernels: tuple[Kernel, ...]
    of_node: Integers
    hot_ns: Floats
    rotated_ns: Floats
    half_width: Floats
    extrapolated: Flags
    by_bytes: Flags
    derived: Integers
    evidence: Integers
    exact: Flags
    distance: Floats

    @property
    def counts(self) -> Integers:
        """The number of nodes of each distinct kernel."""
        return np.bincount(self.of_node[self.of_node >= 0], minlength=len(self.kernels)).astype(np.int64)

    @property
    def matrix(self) -> Flags:
        """Mark the distinct kernels that do matrix work."""
        return np.array([kind_of(kernel).matrix for kernel in self.kernels], dtype=bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """One distinct kernel of a network; `ns` is the time of one call within the network.

    `derived` names the rule for a kind that the predictor's table lacks, empty for a measured kind.
    `exact` marks a measured latency; `distance` is the share by which the size that differs most differs from the
    nearest measured kernel, None where that is unknown.
    """

    kernel: Kernel
    count: int
    ns: float
    low_ns: float
    high_ns: float
    extrapolated: bool
    derived: str = ""
    exact: bool = False
    distance: float | None = None

    @property
    def total_ns(self) -> float:
        """The time of all calls."""
        return self.count * self.ns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkPrediction:
    """A network's latency; it lies between `low_ns` and `high_ns` with probability `coverage`.

    `node_ns` has one entry per node of the graph, for a free node the time between calls alone; `rows` are sorted by
    total time; `bytes_moved_share` is the share of time predicted from bytes alone, `unmodelled` the
    operators that no measurement covers; `rotated_share` is w, `derived_share` the share of time of kinds that a
    published table lacks, `noise_share` the share of the labels' noise in the variance of the interval
    (None for predictors whose labels have no standard errors). On a device of its own, `device_ns` and `host_ns` are
    the times of both sides, of which `total_ns` is the longer; None elsewhere. Shares and `node_ns` are the device's.
    """

    total_ns: float
    low_ns: float
    high_ns: float
    coverage: float
    bytes_moved_share: float
    unmodelled: tuple[UnmodelledOperator, ...] = ()
    rotated_share: float
    derived_share: float = 0.0
    rows: tuple[KernelRow, ...]
    node_ns: Floats
    note: str
    noise_share: float | None = None
    host_ns: float | None = None
    device_ns: float | None = None


def predict_network(graph: Graph, parts: Parts, manifest: BundleManifest) -> NetworkPrediction:
    """Sum k · [hot + (w · s + v · (1 − s)) · (rotated − hot)] over the graph's kernels, s being the share of weights in
    their bytes; add the time between calls, more of it before matrix work of a large network, and page faults where the
    target has them. On a device of its own, views take no time, and the host's time is the least.

    Time of Python calls is spread evenly over the nodes.
    """
    constants = manifest.constants.of(network_class(graph))
    wanted = footprint_bytes(graph)
    competing = wanted + constants.traffic_share * activation_traffic_bytes(graph)
    footprint = competing / manifest.hardware.last_level_cache_bytes
    share = constants.rotated_share(footprint)
    weights = weight_shares(graph, parts)
    cold = share * weights + constants.activation_share * (1 - weights)
    nodes = len(graph.nodes)
    python_ns = constants.python_calls(counted_python_calls(graph), nodes) * constants.python_call_ns
    gap_ns = constants.gap_ns + python_ns / max(nodes, 1)
    each = constants.kernel_scale * (parts.hot_ns + cold * (parts.rotated_ns - parts.hot_ns)) + gap_ns
    each = each + parts.matrix * constants.evicted_code_share(footprint) * constants.matrix_gap_ns
    counts = parts.counts
    kernel_ns = each * counts
    view_ns = gap_ns if constants.host is None else 0.0
    views_ns = int((parts.of_node < 0).sum()) * view_ns
    sum_ns = float(kernel_ns.sum()) + views_ns + wanted * constants.faults_per_byte * constants.ns_per_fault
    doubts = doubts_about(parts.kernels, parts.by_bytes, parts.evidence)
    unmodelled = unmodelled_operators(graph, parts.of_node, doubts, each, sum_ns)
    low, high = widened(*_interval(parts, kernel_ns, sum_ns, manifest, constants), sum_ns, unmodelled)
    noise_share = _noise_share(parts, kernel_ns, sum_ns, log(high / low) / 2 if low > 0 else 0.0, manifest)
    total, host_ns = sum_ns, None
    if constants.host is not None:
        # The longer of two times with one chance in ten each to lie outside lies outside with at most that chance.
        host_ns = constants.host.time_ns(host_calls(graph, parts))
        spread = float(np.exp(NORMAL_90 * constants.host.deviation))
        total, low, high = max(total, host_ns), max(low, host_ns / spread), max(high, host_ns * spread)
    return NetworkPrediction(
        total_ns=total,
        low_ns=low,
        high_ns=high,
        coverage=COVERAGE,
        bytes_moved_share=float(kernel_ns[parts.by_bytes].sum()) / sum_ns if sum_ns > 0 else 0.0,
        unmodelled=unmodelled,
        rotated_share=share,
        derived_share=float(kernel_ns[parts.derived > 0].sum()) / sum_ns if sum_ns > 0 else 0.0,
        rows=_rows(parts, each, doubts),
        node_ns=np.append(each, view_ns)[parts.of_node],
        note=constants.summary,
        noise_share=noise_share,
        host_ns=host_ns,
        device_ns=None if host_ns is None else sum_ns,
    )


def _rows(parts: Parts, each_ns: Floats, doubts: Doubts) -> tuple[KernelRow, ...]:
    """Make the rows of all distinct kernels, those with most time first."""
    counts = parts.counts
    return tuple(
        KernelRow(
            kernel=parts.kernels[index],
            count=int(counts[index]),
            ns=float(each_ns[index]),
            low_ns=float(each_ns[index] * min(doubts.at_least[index], np.exp(-parts.half_width[index]))),
            high_ns=float(each_ns[index] * max(doubts.at_most[index], np.exp(parts.half_width[index]))),
            extrapolated=bool(parts.extrapolated[index]),
            derived=RULES[parts.derived[index]],
            exact=bool(parts.exact[index]),
            distance=None if np.isnan(parts.distance[index]) else float(parts.distance[index]),
        )
        for index in np.argsort(-each_ns * counts, kind="stable")
    )


def _noise_share(
    parts: Parts, kernel_ns: Floats, total: float, half_width: float, manifest: BundleManifest
) -> float | None:
    """Compute the share of the labels' noise in the variance of an interval of `half_width` nats."""
    found = [
        manifest.kinds[one.kind].errors.label_error if one.kind in manifest.kinds else None for one in parts.kernels
    ]
    if all(error is None for error in found):
        return None
    noise = np.array([0.0 if error is None else error for error in found])
    noise = np.where(parts.exact, parts.half_width / NORMAL_90, noise)
    deviation = float(np.sqrt(((kernel_ns * noise) ** 2).sum())) / max(total, 1e-9)
    return min(1.0, (NORMAL_90 * deviation / half_width) ** 2) if half_width > 0 else 0.0


def replaced(parts: Parts, known: Mapping[Kernel, tuple[float, float]]) -> Parts:
    """Replace latencies of `parts` by the (hot, rotated) ones of `known`; where rotated is NaN, by its ratio to hot."""
    hot_ns, rotated_ns = parts.hot_ns.copy(), parts.rotated_ns.copy()
    for index, kernel in enumerate(parts.kernels):
        if kernel in known:
            hot, rotated = known[kernel]
            rotated_ns[index] = rotated_ns[index] * hot / hot_ns[index] if np.isnan(rotated) else rotated
            hot_ns[index] = hot
    return replace(parts, hot_ns=hot_ns, rotated_ns=rotated_ns, exact=np.zeros_like(parts.exact))


def weight_shares(graph: Graph, parts: Parts) -> Floats:
    """Compute the share of weights, between 0 and 1, in the bytes that each distinct kernel of `parts` moves."""
    shares = np.zeros(len(parts.kernels))
    for node, index in zip(graph.nodes, parts.of_node, strict=True):
        if index >= 0:
            shares[index] = min(1.0, node.work.weight_bytes / max(node.work.moved_bytes, 1))
    return shares


class Deviations(NamedTuple):
    """Standard deviations of each kernel's log error; `wider` scales those of group and kernel beyond the range."""

    kind: Floats
    group: Floats
    kernel: Floats
    wider: Floats


def deviations(parts: Parts, manifest: BundleManifest) -> Deviations:
    """Look up the deviations of every kernel: large ones for unknown kinds, the label's alone for measured kernels."""
    known = [manifest.kinds[one.kind].errors if one.kind in manifest.kinds else None for one in parts.kernels]
    found = Deviations(
        kind=np.array([errors.kind_deviation if errors else ANYTHING_DEVIATION for errors in known]),
        group=np.array([errors.group_deviation if errors else 0.0 for errors in known]),
        kernel=np.array([errors.kernel_deviation if errors else ANYTHING_DEVIATION for errors in known]),
        wider=np.array(
            [
                width / max(errors.half_width, 1e-9) if errors else 1.0
                for errors, width in zip(known, parts.half_width, strict=True)
            ]
        ),
    )
    if not parts.exact.any():
        return found
    return Deviations(
        kind=np.where(parts.exact, 0.0, found.kind),
        group=np.where(parts.exact, 0.0, found.group),
        kernel=np.where(parts.exact, parts.half_width / NORMAL_90, found.kernel),
        wider=np.where(parts.exact, 1.0, found.wider),
    )


def sum_deviation(parts: Parts, manifest: BundleManifest, *, sure: Flags | None = None) -> float:
    """Compute the standard deviation, in nats, of the sum of hot latencies from the kernels' errors.

    Kernels marked `sure` have no error.
    """
    if not len(parts.kernels):
        return 0.0
    kernel_ns = parts.hot_ns * parts.counts
    certain = 0.0 if sure is None else float(kernel_ns[sure].sum())
    drawn = draw_sums(parts, kernel_ns if sure is None else np.where(sure, 0.0, kernel_ns), manifest)
    return float(np.log(certain + drawn).std())


def draw_sums(parts: Parts, kernel_ns: Floats, manifest: BundleManifest) -> Floats:
    """Draw sums of `kernel_ns` (all calls of each distinct kernel) from the error model, the same in every call.

    Within a draw, all kernels of a kind share an error, and so do those of a shape group and all nodes of a kernel.
    """
    kinds, of_kind = np.unique([kernel.kind for kernel in parts.kernels], return_inverse=True)
    groups, of_group = np.unique(shape_groups(parts.kernels), return_inverse=True)
    deviation = deviations(parts, manifest)
    source = np.random.default_rng(0)
    totals = []
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        errors = (
            source.standard_normal((_DRAWS_AT_ONCE, len(kinds)))[:, of_kind] * deviation.kind
            + source.standard_normal((_DRAWS_AT_ONCE, len(groups)))[:, of_group] * deviation.group * deviation.wider
            + source.standard_normal((_DRAWS_AT_ONCE, len(kernel_ns))) * (deviation.kernel * deviation.wider)
        )
        totals.append(np.exp(errors) @ kernel_ns)
    return np.concatenate(totals)


def host_calls(graph: Graph, parts: Parts) -> HostCalls:
    """Count what the host of a device of its own does for `graph`."""
    kinds = Counter[str]()
    for kernel, count in zip(parts.kernels, parts.counts, strict=True):
        kinds[kernel.kind] += int(count)
    views = int((parts.of_node < 0).sum())
    return HostCalls(kinds=kinds, views=views, python_calls=counted_python_calls(graph) or 0.0)


def _interval(
    parts: Parts, kernel_ns: Floats, total: float, manifest: BundleManifest, constants: NetworkConstants
) -> tuple[float, float]:
    """Find quantiles of drawn sums, each with an error of composition of its own."""
    if not len(kernel_ns) or total <= 0:
        return total, total
    sums = draw_sums(parts, kernel_ns, manifest) + (total - float(kernel_ns.sum()))
    whole = np.random.default_rng(1).standard_normal(len(sums)) * constants.composition_deviation
    low, high = np.quantile(sums * np.exp(whole), [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    # below 1, it was earned by networks whose kernels have measured siblings (decision 0030)
    scale = max(1.0, constants.interval_scale)
    below, above = max(0.0, np.log(total / low)), max(0.0, np.log(high / total))
    return total * float(np.exp(-scale * below)), total * float(np.exp(scale * above))
