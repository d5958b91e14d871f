"""Fitting the network sum's constants on training networks, those of a class drawn towards those of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.core.errors import ContentError
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.model.constants import (
    MOST_ROTATED,
    USUAL_COMPOSITION,
    ClassConstants,
    NetworkConstants,
    NetworkSum,
)
from opmark.predictors.model.intervals import COVERAGE

# A minor fault costs 0.1 µs on bare metal and near 1 µs in a guest; networks decide where they can.
_USUAL_FAULT_NS = 500.0
_FAULT_DEVIATION_NS = 500.0
_GAP_DEVIATION_NS = 1000.0
# An interpreter between kernels, allocating as it goes, takes microseconds; a runtime's own loop does not.
_GAP_DEVIATIONS_NS = {"torch-eager": 10_000.0}
# Deviations of the weak priors: in nats of the midpoint and steepness, in w, in v, in both gaps and in faults.
_DEVIATIONS = np.array([0.7, 0.5, 0.4, 0.3, 1.0, 1.0, 1.0])
_LEAST_CLASS_NETWORKS, _LEAST_CLASS_FAMILIES = 3, 2
# How well networks are expected to be matched: what outweighs the priors.
_NETWORK_DEVIATION = 0.05
# How many networks the opinion of composition that there is before any is worth.
_OPINION_NETWORKS = 3
# Nine in ten draws of a normal lie within this many deviations.
NORMAL_90 = 1.6449
# Ratios of error to deviation that a normal gives at even steps, as the opinion before networks say otherwise.
_OPINION_RATIOS = [0.13, 0.39, 0.67, 1.04, 1.64]
_LEAST_SCALE, _MOST_SCALE = 0.5, 4.0
_LOWER = np.array([np.log(0.05), np.log(0.3), 0.0, 0.0, 0.0, 0.0, 0.0])
_UPPER = np.array([np.log(50.0), np.log(8.0), MOST_ROTATED, MOST_ROTATED, 20.0, 20.0, 20.0])


def fit_constants(
    sums: Sequence[NetworkSum],
    *,
    backend: str = "",
    held_out_families: Sequence[str] = (),
    predicted: Sequence[NetworkSum] = (),
) -> NetworkConstants:
    """Constants that match measured training networks in relative error, under weak priors.

    `backend` tells how long gaps usually are. `predicted` are the same networks summed from predictions that were
    made without their kernels: what intervals are calibrated on, `sums` themselves where there are none.

    Raises `ContentError` for a network that is not in the role of training or whose family is reported as unseen.
    """
    for one in sums:
        if one.role != "training":
            raise ContentError(f"network {one.network!r} is {one.role}: constants are fitted on training networks only")
        if one.family in held_out_families:
            raise ContentError(
                f"family {one.family!r} is both training and held-out", hint="give all its networks one role"
            )
    if not sums:
        return NetworkConstants()
    gap_deviation_ns = _GAP_DEVIATIONS_NS.get(backend, _GAP_DEVIATION_NS)
    whole = _solve_all(sums, gap_deviation_ns)
    without = _without_family(sums, gap_deviation_ns)
    composition = _composition(sums, without, USUAL_COMPOSITION)
    classes = {
        name: replace(
            own,
            composition_deviation=_composition(
                [one for one in sums if one.network_class == name], without, composition
            ),
        )
        for name, own in whole.classes.items()
    }
    found = replace(
        whole,
        composition_deviation=composition,
        classes=classes,
        networks=tuple(sorted({one.network for one in sums})),
    )
    return replace(found, interval_scale=_interval_scale(predicted or sums, without, found))


def _solve_all(sums: Sequence[NetworkSum], gap_deviation_ns: float) -> NetworkConstants:
    """Constants of all networks together, and of each class that has enough of them."""
    rates = [one.faults / one.footprint_bytes for one in sums if one.faults and one.footprint_bytes > 0]
    faults_per_byte = float(np.median(rates)) if len(rates) * 2 > len(sums) else 0.0
    usual = NetworkConstants()
    fault_ns = _USUAL_FAULT_NS if faults_per_byte else 0.0
    prior = np.array(
        [
            np.log(usual.midpoint),
            np.log(usual.steepness),
            usual.ceiling,
            usual.activation_share,
            0.0,
            0.0,
            fault_ns / _FAULT_DEVIATION_NS,
        ]
    )
    scale = _Scale(gap_ns=gap_deviation_ns, faults_per_byte=faults_per_byte)
    point = _solve(sums, prior, _DEVIATIONS, scale)
    classes = {}
    for name in sorted({one.network_class for one in sums}):
        own = [one for one in sums if one.network_class == name]
        if len(own) < _LEAST_CLASS_NETWORKS or len({one.family for one in own}) < _LEAST_CLASS_FAMILIES:
            continue
        if len(own) < len(sums):
            at = scale.constants(_solve(own, point, _DEVIATIONS, scale))
            classes[name] = ClassConstants(
                ceiling=at.ceiling,
                midpoint=at.midpoint,
                steepness=at.steepness,
                activation_share=at.activation_share,
                gap_ns=at.gap_ns,
                matrix_gap_ns=at.matrix_gap_ns,
                composition_deviation=at.composition_deviation,
                networks=len(own),
            )
    return replace(scale.constants(point), classes=classes)


def _without_family(sums: Sequence[NetworkSum], gap_deviation_ns: float) -> dict[str, NetworkConstants]:
    """Constants for each family, fitted on the others."""
    found = {}
    for family in sorted({one.family for one in sums}):
        others = [one for one in sums if one.family != family]
        found[family] = _solve_all(others, gap_deviation_ns) if others else NetworkConstants()
    return found


def _composition(sums: Sequence[NetworkSum], without: Mapping[str, NetworkConstants], opinion: float) -> float:
    """The deviation of sums from networks of families left out, beyond what the kernels' own errors explain."""
    squares = [_OPINION_NETWORKS * opinion**2]
    for one in sums:
        error = float(np.log(one.latency_ns / one.total_ns(without[one.family])))
        # what the kernels' own errors explain is in every interval already
        squares.append(max(0.0, error**2 - one.deviation**2))
    return float(np.sqrt(sum(squares) / (len(sums) + _OPINION_NETWORKS)))


def _interval_scale(
    sums: Sequence[NetworkSum], without: Mapping[str, NetworkConstants], constants: NetworkConstants
) -> float:
    """What the errors' stated deviations are multiplied with to cover nine in ten networks of unseen families.

    Split-conformal on the ratio of error to stated deviation. Where networks are few, some that follow the stated
    deviations exactly are added to them, so that the luck of three does not make an interval vanish.
    """
    ratios = []
    for one in sums:
        if one.family in without:
            error = abs(float(np.log(one.latency_ns / one.total_ns(without[one.family]))))
            stated = constants.of(one.network_class).composition_deviation
            ratios.append(error / float(np.hypot(one.deviation, stated)))
    ratios += _OPINION_RATIOS
    rank = min(len(ratios), int(np.ceil((len(ratios) + 1) * COVERAGE)))
    return float(np.clip(sorted(ratios)[rank - 1] / NORMAL_90, _LEAST_SCALE, _MOST_SCALE))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """What a point stands for: log midpoint, log steepness, ceiling, v, and both gaps and faults in deviations."""

    gap_ns: float
    faults_per_byte: float

    def constants(self, point: Floats) -> NetworkConstants:
        return NetworkConstants(
            midpoint=float(np.exp(point[0])),
            steepness=float(np.exp(point[1])),
            ceiling=float(point[2]),
            activation_share=float(point[3]),
            gap_ns=float(point[4]) * self.gap_ns,
            matrix_gap_ns=float(point[5]) * self.gap_ns,
            ns_per_fault=float(point[6]) * _FAULT_DEVIATION_NS if self.faults_per_byte else 0.0,
            faults_per_byte=self.faults_per_byte,
        )


def _solve(sums: Sequence[NetworkSum], prior: Floats, deviations: Floats, scale: _Scale) -> Floats:
    from scipy.optimize import least_squares

    hot, weights, activations, calls, matrix_calls, footprint, wanted, measured, doubt = np.array(
        [
            (
                one.hot_ns,
                one.weights_ns,
                one.activations_ns,
                one.calls,
                one.matrix_calls,
                max(one.footprint, 1e-12),
                one.footprint_bytes,
                one.latency_ns,
                np.hypot(_NETWORK_DEVIATION, one.deviation),
            )
            for one in sums
        ],
        dtype=np.float64,
    ).T
    faults_ns = wanted * scale.faults_per_byte * _FAULT_DEVIATION_NS

    def residuals(point: Floats) -> Floats:
        share = point[2] / (1 + np.exp(np.clip(np.exp(point[1]) * (point[0] - np.log(footprint)), -60, 60)))
        extra = share * weights + point[3] * activations
        # what is faster rotated than hot must not make a network of nothing
        gaps = (calls * point[4] + matrix_calls * point[5]) * scale.gap_ns
        total = np.maximum(hot + extra + gaps + point[6] * faults_ns, 0.1 * hot)
        return np.concatenate([np.log(measured / total) / doubt, (point - prior) / deviations])

    start = np.clip(prior + 0.01, _LOWER + 1e-3, _UPPER - 1e-3)
    # a network that no constants explain (a graph that hid work, say) should not bend the others
    found = least_squares(residuals, start, bounds=(_LOWER, _UPPER), loss="soft_l1", f_scale=3.0)
    return np.asarray(found.x, dtype=np.float64)
