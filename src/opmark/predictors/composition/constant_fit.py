"""The fit of network constants on training networks; those of a class are drawn towards those of all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.core.errors import ContentError
from opmark.predictors.composition.constants import (
    CLASS_FIELDS,
    COVERAGE,
    MOST_ROTATED,
    USUAL_COMPOSITION,
    ClassConstants,
    NetworkConstants,
    NetworkSum,
)
from opmark.predictors.composition.host_time import fit_host
from opmark.predictors.inputs.arrays import Floats

# A minor fault costs 0.1 µs on bare metal and near 1 µs in a guest; networks decide where they can.
_USUAL_FAULT_NS = 500.0
_FAULT_DEVIATION_NS = 500.0
_GAP_DEVIATION_NS = 1000.0
# An interpreter between kernels allocates and takes microseconds; a runtime's own loop does not.
_GAP_DEVIATIONS_NS = {"torch-eager": 10_000.0}
# A function of modules takes some 600 ns.
_PYTHON_DEVIATION_NS = 1000.0
# Deviations of the weak priors of log midpoint, log steepness, w, v, both times between calls, faults, Python calls,
# log k. What makes kernels take longer in a network hardly differs between classes of networks (decision 0064).
_DEVIATIONS = np.array([0.7, 0.5, 0.4, 0.3, 1.0, 1.0, 1.0, 1.0, 0.1])
_CLASS_DEVIATIONS = _DEVIATIONS * np.array([*[1.0] * 8, 0.3])
_LEAST_CLASS_NETWORKS, _LEAST_CLASS_FAMILIES = 3, 2
# The share of the traffic of activations that may count in the footprint; by how much it must reduce the error on
# families that were left out, and in how many of so many draws of these families: a single one must not decide.
_TRAFFIC_SHARE, _LEAST_GAIN = 0.3, 0.05
_DRAWS, _LEAST_DRAWS = 2000, 0.95
# The expected relative error of a network; the smaller, the less the priors weigh.
_NETWORK_DEVIATION = 0.05
# The number of networks that the prior deviation of composition is worth.
_OPINION_NETWORKS = 3
# Nine in ten draws of a normal distribution lie within this many deviations.
_NORMAL_90 = 1.6449
# Prior ratios of error to deviation: quantiles of a normal distribution at even steps.
_OPINION_RATIOS = [0.13, 0.39, 0.67, 1.04, 1.64]
# Never narrower than stated: the training networks' kernels have siblings among the training rows (decision 0030).
_LEAST_SCALE, _MOST_SCALE = 1.0, 4.0
_LOWER = np.array([np.log(0.05), np.log(0.3), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -np.log(2.0)])
_UPPER = np.array([np.log(50.0), np.log(8.0), MOST_ROTATED, MOST_ROTATED, 20.0, 20.0, 20.0, 20.0, np.log(2.0)])


def fit_constants(
    sums: Sequence[NetworkSum],
    *,
    backend: str = "",
    matrix_gap_midpoint: float = 0.0,
    held_out_families: Sequence[str] = (),
    predicted: Sequence[NetworkSum] = (),
    prior: NetworkConstants | None = None,
) -> NetworkConstants:
    """Fit constants to the relative errors of training networks, with weak priors.

    Priors lie around usual constants, or around those of another machine with the same runtime (`prior`), k's around 1.
    `backend` sets the prior of the time between calls, `matrix_gap_midpoint` is the level-2 cache over the last one.
    `predicted` are sums of the same networks over predictions made without their kernels; intervals are calibrated on
    them, or on `sums` where there are none.

    Raises `ContentError` for a network whose role is not training or whose family is reported as unseen.
    """
    _refuse_unseen(sums, held_out_families)
    if not sums:
        return NetworkConstants()
    gap_ns = _GAP_DEVIATIONS_NS.get(backend, _GAP_DEVIATION_NS)
    ((usual_class, _),) = Counter(one.network_class for one in sums).most_common(1)
    around = (prior or NetworkConstants()).of(usual_class)
    choices = _Choices(
        around=around, gap_ns=gap_ns, matrix_gap_midpoint=matrix_gap_midpoint, traffic_share=around.traffic_share
    )
    without = _without_family(sums, choices)
    if not choices.traffic_share and any(one.traffic for one in sums):
        counting = replace(choices, traffic_share=_TRAFFIC_SHARE)
        with_traffic = _without_family(sums, counting)
        if _is_better(sums, with_traffic, without):
            choices, without = counting, with_traffic
    whole = _solve_all(sums, choices)
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


def fit_queue(
    sums: Sequence[NetworkSum],
    *,
    enqueue_ns: Mapping[str, float],
    backend: str = "",
    matrix_gap_midpoint: float = 0.0,
    held_out_families: Sequence[str] = (),
    predicted: Sequence[NetworkSum] = (),
    prior: NetworkConstants | None = None,
) -> NetworkConstants:
    """Fit the constants of a device of its own to its time, and those of its host to the host's (`host_time`).

    `enqueue_ns` is the usual time to enqueue a kernel of each kind. Networks without both times, and those whose host
    waits for results in between, tell nothing about the device. Raises as `fit_constants` does.
    """
    _refuse_unseen(sums, held_out_families)
    device = fit_constants(
        _device_sums(sums),
        backend=backend,
        matrix_gap_midpoint=matrix_gap_midpoint,
        held_out_families=held_out_families,
        predicted=_device_sums(predicted),
        prior=prior,
    )
    known = [one for one in sums if one.host is not None]
    names = tuple(sorted({one.network for one in known}))
    return replace(device, host=fit_host([one.host for one in known if one.host], enqueue_ns), networks=names)


def _refuse_unseen(sums: Sequence[NetworkSum], held_out_families: Sequence[str]) -> None:
    for one in sums:
        if one.role != "training":
            raise ContentError(f"network {one.network!r} is {one.role}: constants are fitted on training networks only")
        if one.family in held_out_families:
            raise ContentError(
                f"family {one.family!r} is both training and held-out", hint="give all its networks one role"
            )


def _device_sums(sums: Sequence[NetworkSum]) -> list[NetworkSum]:
    """Keep the networks whose device's time is known, with that time, without views and Python calls."""
    return [
        replace(one, latency_ns=one.host.device_ns, calls=one.host.calls.kernels, python_calls=0.0)
        for one in sums
        if one.host is not None and not one.host.waits(one.hot_ns)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """The choices that are made before the constants are fitted; priors lie `around` constants."""

    around: NetworkConstants
    gap_ns: float
    matrix_gap_midpoint: float
    traffic_share: float


def _solve_all(sums: Sequence[NetworkSum], choices: _Choices) -> NetworkConstants:
    """Fit constants of all networks, and of each class with enough of them."""
    rates = [one.faults / one.footprint_bytes for one in sums if one.faults and one.footprint_bytes > 0]
    faults_per_byte = float(np.median(rates)) if len(rates) * 2 > len(sums) else 0.0
    ratios = [one.python_calls / max(one.calls, 1) for one in sums if one.python_calls is not None]
    around = choices.around
    fault_ns = (around.ns_per_fault or _USUAL_FAULT_NS) if faults_per_byte else 0.0
    prior = np.array(
        [
            np.log(around.midpoint),
            np.log(max(around.steepness, 1e-9)),
            around.ceiling,
            around.activation_share,
            around.gap_ns / choices.gap_ns,
            around.matrix_gap_ns / choices.gap_ns,
            fault_ns / _FAULT_DEVIATION_NS,
            around.python_call_ns / _PYTHON_DEVIATION_NS,
            0.0,
        ]
    )
    scale = _Scale(
        gap_ns=choices.gap_ns,
        matrix_gap_midpoint=choices.matrix_gap_midpoint,
        traffic_share=choices.traffic_share,
        faults_per_byte=faults_per_byte,
        python_calls_per_node=float(np.median(ratios)) if ratios else 0.0,
    )
    point = _solve(sums, np.clip(prior, _LOWER, _UPPER), _DEVIATIONS, scale)
    classes = {}
    for name in sorted({one.network_class for one in sums}):
        own = [one for one in sums if one.network_class == name]
        if len(own) < _LEAST_CLASS_NETWORKS or len({one.family for one in own}) < _LEAST_CLASS_FAMILIES:
            continue
        if len(own) < len(sums):
            at = scale.constants(_solve(own, point, _CLASS_DEVIATIONS, scale))
            classes[name] = ClassConstants(**{field: getattr(at, field) for field in CLASS_FIELDS}, networks=len(own))
    return replace(scale.constants(point), classes=classes)


def _is_better(
    sums: Sequence[NetworkSum], tried: Mapping[str, NetworkConstants], usual: Mapping[str, NetworkConstants]
) -> bool:
    """Return True if constants predict families that were left out better, and not by a single family's doing.

    The sum of squared errors must fall, and so in nearly all draws of the families with replacement (bootstrap).
    """
    squares = np.array([_left_out_squares(sums, constants) for constants in (tried, usual)])
    total = squares.sum(axis=1)
    drawn = np.random.default_rng(0).integers(0, squares.shape[1], (_DRAWS, squares.shape[1]))
    fewer = squares[0][drawn].sum(axis=1) < squares[1][drawn].sum(axis=1)
    return bool(total[0] < (1 - _LEAST_GAIN) ** 2 * total[1] and fewer.mean() >= _LEAST_DRAWS)


def _left_out_squares(sums: Sequence[NetworkSum], without: Mapping[str, NetworkConstants]) -> list[float]:
    """Sum the squares of the log errors of each family, predicted with constants that were fitted without it."""
    total = dict.fromkeys(without, 0.0)
    for one in sums:
        total[one.family] += float(np.log(one.latency_ns / one.total_ns(without[one.family]))) ** 2
    return list(total.values())


def _without_family(sums: Sequence[NetworkSum], choices: _Choices) -> dict[str, NetworkConstants]:
    """Fit constants for each family on the other families."""
    found = {}
    for family in sorted({one.family for one in sums}):
        others = [one for one in sums if one.family != family]
        found[family] = _solve_all(others, choices) if others else NetworkConstants()
    return found


def _composition(sums: Sequence[NetworkSum], without: Mapping[str, NetworkConstants], opinion: float) -> float:
    """Compute the deviation of sums from networks of left-out families, beyond that from the kernels' errors."""
    squares = [_OPINION_NETWORKS * opinion**2]
    for one in sums:
        error = float(np.log(one.latency_ns / one.total_ns(without[one.family])))
        # every interval already includes the kernels' own errors
        squares.append(max(0.0, error**2 - one.deviation**2))
    return float(np.sqrt(sum(squares) / (len(sums) + _OPINION_NETWORKS)))


def _interval_scale(
    sums: Sequence[NetworkSum], without: Mapping[str, NetworkConstants], constants: NetworkConstants
) -> float:
    """Find the factor on stated deviations that covers nine in ten networks of unseen families.

    Split-conformal on the ratio of error to stated deviation. Ratios of a normal distribution are added, so that luck
    with few networks does not make the interval vanish.
    """
    ratios = []
    for one in sums:
        if one.family in without:
            error = abs(float(np.log(one.latency_ns / one.total_ns(without[one.family]))))
            stated = constants.of(one.network_class).composition_deviation
            ratios.append(error / float(np.hypot(one.deviation, stated)))
    ratios += _OPINION_RATIOS
    rank = min(len(ratios), int(np.ceil((len(ratios) + 1) * COVERAGE)))
    return float(np.clip(sorted(ratios)[rank - 1] / _NORMAL_90, _LEAST_SCALE, _MOST_SCALE))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Turns a point of the solver (log midpoint, log steepness, ceiling, v; both times between calls, faults and Python
    calls in deviations; log k) into constants.
    """

    gap_ns: float
    matrix_gap_midpoint: float
    traffic_share: float
    faults_per_byte: float
    python_calls_per_node: float

    def constants(self, point: Floats) -> NetworkConstants:
        return NetworkConstants(
            midpoint=float(np.exp(point[0])),
            steepness=float(np.exp(point[1])),
            ceiling=float(point[2]),
            activation_share=float(point[3]),
            gap_ns=float(point[4]) * self.gap_ns,
            matrix_gap_ns=float(point[5]) * self.gap_ns,
            matrix_gap_midpoint=self.matrix_gap_midpoint,
            traffic_share=self.traffic_share,
            ns_per_fault=float(point[6]) * _FAULT_DEVIATION_NS if self.faults_per_byte else 0.0,
            faults_per_byte=self.faults_per_byte,
            python_call_ns=float(point[7]) * _PYTHON_DEVIATION_NS if self.python_calls_per_node else 0.0,
            python_calls_per_node=self.python_calls_per_node,
            kernel_scale=float(np.exp(point[8])),
        )


def _solve(sums: Sequence[NetworkSum], prior: Floats, deviations: Floats, scale: _Scale) -> Floats:
    from scipy.optimize import least_squares

    usual = NetworkConstants(
        matrix_gap_midpoint=scale.matrix_gap_midpoint, python_calls_per_node=scale.python_calls_per_node
    )
    hot, weights, activations, calls, matrix_calls, python_calls, footprint, wanted, measured, doubt = np.array(
        [
            (
                one.hot_ns,
                one.weights_ns,
                one.activations_ns,
                one.calls,
                one.matrix_calls * usual.evicted_code_share(one.footprint + scale.traffic_share * one.traffic),
                usual.python_calls(one.python_calls, one.calls),
                max(one.footprint + scale.traffic_share * one.traffic, 1e-12),
                one.footprint_bytes,
                one.latency_ns,
                np.hypot(_NETWORK_DEVIATION, one.deviation),
            )
            for one in sums
        ],
        dtype=np.float64,
    ).T
    faults_ns = wanted * scale.faults_per_byte * _FAULT_DEVIATION_NS
    python_ns = python_calls * _PYTHON_DEVIATION_NS

    def residuals(point: Floats) -> Floats:
        share = point[2] / (1 + np.exp(np.clip(np.exp(point[1]) * (point[0] - np.log(footprint)), -60, 60)))
        extra = share * weights + point[3] * activations
        # kernels that are faster rotated than hot must not make a network take no time
        gaps = (calls * point[4] + matrix_calls * point[5]) * scale.gap_ns
        total = np.exp(point[8]) * (hot + extra) + gaps + point[6] * faults_ns + point[7] * python_ns
        total = np.maximum(total, 0.1 * hot)
        return np.concatenate([np.log(measured / total) / doubt, (point - prior) / deviations])

    start = np.clip(prior + 0.01, _LOWER + 1e-3, _UPPER - 1e-3)
    # a network that no constants explain, such as a graph that hid work, should not distort the others
    found = least_squares(residuals, start, bounds=(_LOWER, _UPPER), loss="soft_l1", f_scale=3.0)
    return np.asarray(found.x, dtype=np.float64)
