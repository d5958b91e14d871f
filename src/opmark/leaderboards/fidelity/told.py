"""Measured makespans of executed placements: told at the state of the labels, or as the clock told them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from opmark.leaderboards.fidelity.records import ExecutedPlacement, FidelityRecord

# The parts of measured minus predicted.
PARTS = ("kernels", "slowdown", "transfers", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPlacement:
    """A predicted makespan beside the measured one; `visits_ns` has one number per visit.

    `standard_error` is a fraction of `measured_ns`, None where the figures are those of the clock. `parts` are shares
    of the measured makespan by name.
    """

    predicted_ns: int
    measured_ns: float
    visits_ns: tuple[float, ...]
    standard_error: float | None = None
    parts: Mapping[str, float]

    @property
    def error(self) -> float:
        """The error of the prediction as a share of the measured makespan."""
        return self.predicted_ns / self.measured_ns - 1


def raw_placements(records: Sequence[FidelityRecord]) -> list[list[MeasuredPlacement]]:
    """The executed placements of each record by the clock: the median of the visits' medians."""
    return [[_raw(one) for one in record.executed] for record in records]


def told_placements(records: Sequence[FidelityRecord]) -> list[list[MeasuredPlacement]]:
    """The executed placements of each record at the state of the labels.

    Each execution is told by the effect that most work has; two visits are too few to fit another one, and a fitted one
    would hide what differs between them. Robust means and standard errors are those of labels
    (`core.measurements.labelling`). Records without states stay as the clock told them.
    """
    import numpy as np

    from opmark.core.measurements.labelling import LASTING_EFFECT, labels_of
    from opmark.core.measurements.looks import STATES, Look

    looks, groups = {}, {}
    for number, record in enumerate(records):
        for place, one in enumerate(record.executed):
            if one.states:
                visits = zip(one.visits_ns, one.states, strict=True)
                looks[number, place] = [
                    Look(
                        process=n,
                        ns=np.array(ns) * np.exp(-np.array(states) @ np.array(LASTING_EFFECT)),
                        state=np.zeros((len(ns), len(STATES))),
                    )
                    for n, (ns, states) in enumerate(visits)
                ]
                groups[number, place] = record.problem
    labels = labels_of(looks, groups, calm=False)
    found = []
    for number, record in enumerate(records):
        own = []
        for place, one in enumerate(record.executed):
            label = labels.get((number, place))
            if label is None:
                own.append(_raw(one))
                continue
            own.append(
                MeasuredPlacement(
                    predicted_ns=one.predicted_ns,
                    measured_ns=label.latency_ns,
                    visits_ns=label.by_process_ns,
                    standard_error=label.standard_error,
                    parts=_parts(one, label.latency_ns),
                )
            )
        found.append(own)
    return found


def _raw(one: ExecutedPlacement) -> MeasuredPlacement:
    measured_ns = median(one.visit_medians_ns)
    return MeasuredPlacement(
        predicted_ns=one.predicted_ns,
        measured_ns=measured_ns,
        visits_ns=tuple(one.visit_medians_ns),
        parts=_parts(one, measured_ns),
    )


def _parts(one: ExecutedPlacement, measured_ns: float) -> dict[str, float]:
    return {name: getattr(one, f"{name}_ns") / measured_ns for name in PARTS}
