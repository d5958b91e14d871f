"""Latencies of kernels and networks from a bundle, computed in one call per kind and then cached."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of, work_of
from opmark.models.coverage import hidden_operators
from opmark.predictors.inputs.arrays import Flags, Floats, Integers, single_thread
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.fused_graph import CutGraph, cut
from opmark.predictors.model.bundle import Bundle, KindPredictor
from opmark.predictors.model.derived_kernels import RULES, derivation
from opmark.predictors.model.intervals import NORMAL_90, outside, unseen
from opmark.predictors.model.manifest import AGAIN
from opmark.predictors.model.measured_kernels import FAR, MEASURED, UNSEEN, MeasuredKernels, width_factors
from opmark.predictors.model.network import NetworkPrediction, Parts, predict_network

BYTES_MOVED = "bytes-moved"
# A refusal names so many kernels that nothing predicts.
NAMED_AT_MOST = 20
# The interval of a kernel predicted from its bytes alone: a factor of two.
_ANYTHING_HALF_WIDTH = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelPredictions:
    """Predictions of kernels, in the order asked for; the interval belongs to the hot latency."""

    hot_ns: Floats
    rotated_ns: Floats
    low_ns: Floats
    high_ns: Floats
    extrapolated: Flags


class CostModel:
    """A table of kernel latencies on one target, filled as kernels are asked for.

    `missing` decides about kernels of kinds that the bundle does not know, and about matrix work without a kind:
    `error` refuses them, `bytes-moved` predicts them from their bytes. Other operators without a kind are always
    predicted from their bytes. A bundle that derives follows `derived_kernels` for kinds that it does not know.

    With `exact`, a kernel that the bundle was trained on is answered from its measurement, and networks tell how far
    the others lie from measured ones. Learning and judging ask for predictions.
    """

    def __init__(self, bundle: Bundle, *, missing: str = "error", exact: bool = False) -> None:
        self.bundle = bundle
        self.missing = missing
        self.exact = exact
        self._row_of: dict[Kernel, int] = {}
        self._table = np.empty((0, 9))
        self._last: tuple[Graph, NetworkPrediction] | None = None

    def kernels(self, kernels: Sequence[Kernel]) -> KernelPredictions:
        """Predict `kernels`. Raises `ContentError` listing every kind that the bundle does not know."""
        rows = self._rows(kernels)
        table = self._table[rows]
        return KernelPredictions(
            hot_ns=table[:, 0],
            rotated_ns=table[:, 1],
            low_ns=table[:, 0] * np.exp(-table[:, 2]),
            high_ns=table[:, 0] * np.exp(table[:, 2]),
            extrapolated=table[:, 3] > 0,
        )

    def network(self, graph: Graph) -> NetworkPrediction:
        """Predict the latency of `graph`.

        A runtime that fuses without telling runs the kernels that its verdicts make of the graph; the time of each is
        that of its main operator's node. Raises `ContentError` as `kernels` does, and for matrix work that no kind
        describes.
        """
        # a caller often asks twice: whether a network can be predicted at all, then for its units
        if self._last is None or self._last[0] is not graph:
            self._last = graph, self._network(graph)
        return self._last[1]

    def _network(self, graph: Graph) -> NetworkPrediction:
        run = self.as_run(graph)
        found = predict_network(run.graph, self.parts(run.graph), self.bundle.manifest)
        if not all(0 <= one < math.inf for one in (found.low_ns, found.total_ns, found.high_ns)):
            raise ContentError(f"gives {graph.name} no latency in nanoseconds", where=self.bundle.where, hint=AGAIN)
        node_ns = np.zeros(len(graph.nodes))
        node_ns[list(run.main)] = found.node_ns
        return replace(found, node_ns=node_ns)

    def as_run(self, graph: Graph) -> CutGraph:
        """Cut `graph` into the kernels that the target makes of it, by the verdicts of fusion tests, if it has any."""
        return cut(graph, self.bundle.manifest.fusion)

    def parts(self, graph: Graph) -> Parts:
        """Predict both labels of every distinct kernel of `graph`. Raises `ContentError` as `network` does."""
        if self.missing != BYTES_MOVED:
            _refuse_hidden(graph)
        number: dict[Kernel, int] = {}
        of_node = np.array(
            [-1 if node.free else number.setdefault(node.kernel, len(number)) for node in graph.nodes], dtype=np.int64
        )
        distinct = tuple(number)
        rows = self._rows(distinct)
        table = self._table[rows]
        return Parts(
            kernels=distinct,
            of_node=of_node,
            hot_ns=table[:, 0],
            rotated_ns=table[:, 1],
            half_width=table[:, 2],
            extrapolated=table[:, 3] > 0,
            by_bytes=table[:, 4] > 0,
            derived=table[:, 5].astype(np.int64),
            evidence=table[:, 6].astype(np.int64),
            exact=table[:, 7] > 0,
            distance=table[:, 8] if self.exact else np.full(len(distinct), np.nan),
        )

    def _rows(self, kernels: Sequence[Kernel]) -> Integers:
        unknown = list(dict.fromkeys(kernel for kernel in kernels if kernel not in self._row_of))
        if unknown:
            with single_thread(scipy_too=False):  # learners predict with numpy alone
                self._add(unknown)
        return np.array([self._row_of[kernel] for kernel in kernels], dtype=np.int64)

    def _add(self, kernels: Sequence[Kernel]) -> None:
        by_kind: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            by_kind.setdefault(kernel.kind, []).append(kernel)
        derives = self.bundle.manifest.derives
        if self.missing != BYTES_MOVED and not derives:
            self._refuse_unknown(by_kind)
        for kind, group in by_kind.items():
            if kind in self.bundle.kinds:
                rows = self._predict(kind, group)
            else:
                rows = self._derived(group) if derives and kind != BYTES_MOVED else self._by_bytes(group)
            first = len(self._table)
            self._table = np.vstack([self._table, rows])
            self._row_of.update(zip(group, range(first, first + len(group)), strict=True))

    def _refuse_unknown(self, by_kind: Mapping[str, Sequence[Kernel]]) -> None:
        missing = sorted(kind for kind in by_kind if kind not in self.bundle.kinds and kind != BYTES_MOVED)
        if missing:
            kernels = [str(kernel) for kind in missing for kernel in by_kind[kind]]
            named = ", ".join(kernels[:NAMED_AT_MOST])
            more = f" and {len(kernels) - NAMED_AT_MOST:,} more" if len(kernels) > NAMED_AT_MOST else ""
            raise ContentError(
                f"no predictor for kind{'s' if len(missing) > 1 else ''} {', '.join(missing)} on {self.bundle.target}:"
                f" {named}{more}",
                hint="measure them and train again, or pass --missing bytes-moved to go by the bytes they move",
            )

    def _predict(self, kind: str, kernels: Sequence[Kernel]) -> Floats:
        predictor = self.bundle.kinds[kind]
        inputs = features(kernels, kind_of(kernels[0]), self.bundle.manifest.hardware)
        # a kind without samples on this device names no features; its donor's learner checks them
        if predictor.entry.features and inputs.names != predictor.entry.features:
            raise ContentError(
                f"this bundle knows other features of kind {kind!r} than this version of OpMark makes",
                hint="train the predictor again",
            )
        latencies = predictor.latencies(inputs)
        zeros = np.zeros(len(kernels))
        try:
            beyond = outside(inputs, predictor.entry.range)
            distance, evidence, wider = self._evidence(inputs, predictor)
        except IndexError as error:
            raise ContentError(
                f"kinds.{kind}.range: does not fit its features", where=self.bundle.where, hint=AGAIN
            ) from error
        errors = predictor.entry.errors
        noise = errors.noise_share or 0.0
        usual = errors.half_width * np.sqrt(noise + (1 - noise) * wider**2)
        width = np.where(beyond, np.maximum(usual, errors.extrapolated_half_width), usual)
        by_bytes = np.full(len(kernels), float(kind == BYTES_MOVED))
        hot, rotated = latencies.hot_ns, latencies.rotated_ns
        rows = np.column_stack([hot, rotated, width, beyond, by_bytes, zeros, evidence, zeros, distance])
        # a measured move of bytes stands for any operator with as many
        if self.exact and kind != BYTES_MOVED and predictor.measured is not None:
            _answer_measured(rows, predictor.measured, kernels)
        return rows

    def _evidence(self, inputs: Inputs, predictor: KindPredictor) -> tuple[Floats, Integers, Floats]:
        """Compute the distance of each kernel to the nearest measured one, what was measured of its operation, and by
        which factor the distance from its form makes it err more.

        Published tables hold one operation of many kinds, which stands for the others. Older predictors know only which
        operations and which element types they were trained on.
        """
        unknown, trusted = np.full(len(inputs), np.nan), np.full(len(inputs), MEASURED)
        derives, measured = self.bundle.manifest.derives, predictor.measured if self._asks_measured else None
        if measured is None:
            known = trusted if derives else np.where(unseen(inputs, predictor.entry.range), UNSEEN, MEASURED)
            return unknown, known, np.ones(len(inputs))
        if measured.raw.keys() != inputs.raw.keys():
            raise ContentError(
                f"the measured kernels of kind {inputs.kind!r} have other features", where=self.bundle.where, hint=AGAIN
            )
        distances, of_form = measured.distances(inputs)
        if derives:
            return distances, trusted, np.ones(len(inputs))
        found = measured.evidence(inputs, distances)
        if predictor.asks_donor:
            # what the donor measured is known, as well as a form that was not measured here
            found = np.where(unseen(inputs, predictor.entry.range), found, np.where(found == FAR, FAR, MEASURED))
        return distances, found, width_factors(of_form)

    @property
    def _asks_measured(self) -> bool:
        """Reading the measured kernels takes a while; those of published tables say nothing but distances."""
        return self.exact or not self.bundle.manifest.derives

    def _by_bytes(self, kernels: Sequence[Kernel]) -> Floats:
        moved = np.array([work_of(kernel).moved_bytes for kernel in kernels], dtype=np.float64)
        latency = self.bundle.manifest.anything.latency_ns(np.zeros_like(moved), moved)
        ones = np.ones_like(moved)
        zeros = np.zeros_like(moved)
        unknown = np.full_like(moved, np.nan)
        width = _ANYTHING_HALF_WIDTH * ones
        return np.column_stack([latency, latency, width, ones, ones, zeros, zeros, zeros, unknown])

    def _derived(self, kernels: Sequence[Kernel]) -> Floats:
        """One row per kernel by its rule; what moves bytes is a known kind, so it does not count as unknown work."""
        found = [derivation(kernel, self.bundle.kinds) for kernel in kernels]
        parts = self._rows([part for one in found for part, _ in one.parts])
        sums = iter(self._table[parts, :2])
        rows = self._by_bytes(kernels)
        for row, one in zip(rows, found, strict=True):
            if one.parts:
                row[:2] = sum((next(sums) * factor for _, factor in one.parts), np.zeros(2))
            row[4:8] = 0, RULES.index(one.rule), 0, 0
        return rows


def _answer_measured(rows: Floats, measured: MeasuredKernels, kernels: Sequence[Kernel]) -> None:
    """Replace the predictions of measured kernels by their labels; an unknown rotated one keeps its ratio to hot."""
    at = measured.rows(kernels)
    own = at >= 0
    at = at[own]
    ratio = rows[own, 1] / rows[own, 0]
    hot, rotated = measured.hot_ns[at], measured.rotated_ns[at]
    rows[own, 0] = hot
    rows[own, 1] = np.where(np.isfinite(rotated), rotated, ratio * hot)
    rows[own, 2] = NORMAL_90 * measured.error[at]
    rows[own, 3] = 0
    rows[own, 6] = MEASURED
    rows[own, 7] = 1


def _refuse_hidden(graph: Graph) -> None:
    hidden = hidden_operators(graph)
    if hidden:
        raise ContentError(
            f"it contains matrix work that no kind describes: {', '.join(hidden)}",
            where=graph.name,
            hint="its bytes do not tell its time; pass --missing bytes-moved to go by them all the same, which is too "
            "fast, often by a factor of ten or more",
        )
