"""Sealed networks: the last word on a predictor, from families that nobody looked at while it was made.

Nothing is trained here. The predictor answers as it is, and its errors are reported network by network, as they come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph
from opmark.core.measurements.measurement import SEALED, USABLE, NetworkMeasurement
from opmark.models.source import split_variant
from opmark.models.zoo import family_of, models
from opmark.predictors.inputs.graphs import network_class
from opmark.predictors.judging.evidence import Evidence, Judged
from opmark.predictors.judging.scores import Score, scores_of
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel

NO_GRAPH = "no graph of it here"


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedNetwork:
    """One sealed network, measured and predicted; latencies are None where it failed, and `reason` says why.

    `exact_share` is the share of the predicted time in kernels that were measured for training.
    """

    network: str
    family: str
    batch: int
    size: int | None
    status: str
    reason: str = ""
    measured_ns: float | None = None
    standard_error: float | None = None
    predicted_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    exact_share: float | None = None

    @property
    def error(self) -> float | None:
        """The signed error as a fraction of the measured latency."""
        return None if self.predicted_ns is None or not self.measured_ns else self.predicted_ns / self.measured_ns - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedResult:
    """All sealed networks of one target in the order of the release, and the scores of those that were measured.

    `predictor` is the id of the bundle; `scores` is empty where no network could be judged.
    """

    target: str
    predictor: str
    networks: tuple[SealedNetwork, ...]
    scores: tuple[Score, ...]


def judge_sealed(
    rows: Sequence[NetworkMeasurement],
    others: Sequence[NetworkMeasurement],
    bundle: Bundle,
    graphs: Mapping[str, Graph],
) -> SealedResult:
    """Predict the sealed networks `rows` with `bundle`, which learned from some of `others`, and compare.

    `graphs` are by graph id. Raises `ContentError` for a family that is not sealed any more.
    """
    _refuse_broken_seals(rows, others, bundle)
    model = CostModel(bundle, missing=BYTES_MOVED, exact=True)
    found = tuple(_network(one, graphs.get(one.graph_id), model) for one in rows)
    judged = _judged(found, [network_class(graphs[one.graph_id]) if one.graph_id in graphs else "" for one in rows])
    evidence = Evidence(target=bundle.target, measurements=(), networks=rows)
    return SealedResult(
        target=bundle.target.name,
        predictor=bundle.manifest.id,
        networks=found,
        scores=() if judged is None else tuple(scores_of(evidence, bundle.manifest.estimator, SEALED, judged)),
    )


def _refuse_broken_seals(
    rows: Sequence[NetworkMeasurement], others: Sequence[NetworkMeasurement], bundle: Bundle
) -> None:
    """Raise `ContentError` for a family with a network that is not sealed, in the release, the zoo or the training."""
    fitted = {split_variant(name)[0] for name in bundle.constants.networks}
    used = {one.family for one in others if one.role != SEALED}
    used |= {family_of(name).label(name) for name in fitted & models().keys()}
    used |= {family.label(name) for name, family in models().items() if not family.sealed}
    broken = sorted({one.family for one in rows} & used)
    if broken:
        raise ContentError(
            f"not sealed any more: {', '.join(broken)}; predictors were trained or compared on networks of the family",
            hint="give these networks another role, and seal families that nobody has looked at",
        )


def _network(one: NetworkMeasurement, graph: Graph | None, model: CostModel) -> SealedNetwork:
    known = SealedNetwork(
        network=one.network,
        family=one.family,
        batch=one.batch,
        size=one.size,
        status=one.status,
        reason=one.reason or ("" if graph is not None else NO_GRAPH),
    )
    if one.status not in USABLE or not one.latency_ns or graph is None:
        return known
    found = model.network(graph)
    return replace(
        known,
        measured_ns=one.latency_ns,
        standard_error=one.standard_error,
        predicted_ns=found.total_ns,
        low_ns=found.low_ns,
        high_ns=found.high_ns,
        exact_share=sum(row.total_ns for row in found.rows if row.exact) / found.total_ns,
    )


def _judged(found: Sequence[SealedNetwork], classes: Sequence[str]) -> Judged | None:
    pairs = [(one, name) for one, name in zip(found, classes, strict=True) if one.predicted_ns is not None]
    if not pairs:
        return None
    known = [one for one, _ in pairs]
    measured, predicted, low, high = (
        np.array([getattr(one, name) for one in known], dtype=np.float64)
        for name in ("measured_ns", "predicted_ns", "low_ns", "high_ns")
    )
    return Judged(
        kinds=tuple(one.network for one in known),
        families=tuple(one.family for one in known),
        measured_ns=measured,
        predicted_ns=predicted,
        variation=np.full(len(known), np.nan),
        low_ns=low,
        high_ns=high,
        classes=tuple(name for _, name in pairs),
    )
