"""What makes each baseline the one it claims to be, on laws it can and cannot express."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.estimators.nn_meter_forest import nn_meter_features
from opmark.predictors.inputs.arrays import from_text
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.per_label import FittedLabels

GEMMS = features(law.kernels("gemm", 60), None, law.HARDWARE)


def fitted(name: str, inputs: Inputs, hot_ns: np.ndarray) -> FittedLabels:
    found = ESTIMATORS.load(name).fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=2 * hot_ns))
    assert isinstance(found, FittedLabels)
    return found


@pytest.mark.parametrize(
    ("name", "latency_ns"),
    [
        ("flops", GEMMS.flops / 50 + 900),
        ("flops-bytes", GEMMS.flops / 50 + GEMMS.moved_bytes / 9),
        ("roofline", GEMMS.flops / 50 + GEMMS.moved_bytes / 9 + 900),
        ("median-utilisation", np.maximum(GEMMS.flops / 50, 1.0)),
    ],
)
def test_a_baseline_finds_its_own_law_exactly(name: str, latency_ns: np.ndarray) -> None:
    found = fitted(name, GEMMS, latency_ns).predict(GEMMS)
    assert found.hot_ns == pytest.approx(latency_ns, rel=1e-6)
    assert found.rotated_ns == pytest.approx(2 * latency_ns, rel=1e-6)


def test_a_power_law_is_linear_in_the_logarithm() -> None:
    latency_ns = 3.0 * GEMMS.raw["m"] ** 0.5 * (GEMMS.raw["k"] + 1) ** 0.8 * (GEMMS.raw["n"] + 1)
    found = fitted("linear", GEMMS, latency_ns).predict(GEMMS).hot_ns
    assert np.median(np.abs(found / latency_ns - 1)) < 0.05


def test_a_measured_kernel_is_its_own_nearest_neighbour() -> None:
    hot = np.array([law.hot_ns(kernel) for kernel in GEMMS.kernels])
    assert fitted("nearest", GEMMS, hot).predict(GEMMS).hot_ns == pytest.approx(hot, rel=1e-2)


def test_log_and_raw_trees_learn_what_they_say() -> None:
    hot = np.array([law.hot_ns(kernel) for kernel in GEMMS.kernels])
    for name, logarithmic in (("lightgbm-log", True), ("lightgbm-raw", False)):
        first, _, trees = fitted(name, GEMMS, hot).files()["hot.txt"].partition("\n")
        assert from_text(first)["logarithmic"] is logarithmic
        assert trees.startswith("tree")
    log = np.abs(np.log(fitted("lightgbm-log", GEMMS, hot).predict(GEMMS).hot_ns / hot)).mean()
    raw = np.abs(np.log(fitted("lightgbm-raw", GEMMS, hot).predict(GEMMS).hot_ns / hot)).mean()
    assert log < raw


def test_the_trees_alone_hold_no_surface() -> None:
    hot = np.array([law.hot_ns(kernel) for kernel in GEMMS.kernels])
    labels = Latencies(hot_ns=hot, rotated_ns=hot)
    alone = ESTIMATORS.load("lightgbm-trees").fit(GEMMS, labels).files()
    mixed = ESTIMATORS.load("lightgbm").fit(GEMMS, labels).files()
    assert from_text(alone["hot-smooth.json"])["process"] is None
    assert from_text(mixed["hot-smooth.json"])["process"] is not None
    assert "hot-trees.txt" in alone


def test_the_forest_sees_what_nn_meter_sees() -> None:
    kernel = Kernel.of(
        "conv",
        {
            "batch": 1,
            "channels_in": 24,
            "channels_out": 48,
            "size": (28, 28),
            "kernel": (3, 3),
            "stride": (2, 2),
            "pads": (1, 1, 1, 1),
            "dilation": (1, 1),
            "bias": False,
        },
    )
    inputs = features([kernel])
    height, channels_in, channels_out, size, stride, flops, parameters = nn_meter_features(inputs)[0]
    assert (height, channels_in, channels_out, size, stride) == (28, 24, 48, 3, 2)
    assert flops == pytest.approx(inputs.flops[0] / 2e6)
    assert parameters == pytest.approx(24 * 48 * 9 / 1e6)
    # a kind without those sizes gives what it has
    assert nn_meter_features(features(law.kernels("softmax", 2))).shape[1] > 2


def test_the_forest_never_leaves_the_range_it_saw() -> None:
    hot = np.array([law.hot_ns(kernel) for kernel in GEMMS.kernels])
    far = features(law.kernels("gemm", 80, seed=11), None, law.HARDWARE)
    found = fitted("nn-meter-forest", GEMMS, hot).predict(far).hot_ns
    assert hot.min() / 4 <= found.min() <= found.max() <= hot.max() * 1.0001


def test_few_rotated_labels_become_a_ratio() -> None:
    hot = np.array([law.hot_ns(kernel) for kernel in GEMMS.kernels])
    rotated = np.full(60, np.nan)
    rotated[:2] = 1.7 * hot[:2]
    found = ESTIMATORS.load("roofline").fit(GEMMS, Latencies(hot_ns=hot, rotated_ns=rotated)).predict(GEMMS)
    assert found.rotated_ns == pytest.approx(1.7 * found.hot_ns)


def test_ceer_regresses_what_is_heavy_and_takes_the_median_of_what_is_light() -> None:
    activations, weights = GEMMS.moved_bytes - GEMMS.weight_bytes, GEMMS.weight_bytes
    squares = 2e5 + activations / 5 + weights / 9 + (activations / 1e4) ** 2
    found = fitted("ceer", GEMMS, squares).predict(GEMMS).hot_ns
    assert found == pytest.approx(squares, rel=1e-6)
    light = np.linspace(900, 1100, len(GEMMS))
    assert set(fitted("ceer", GEMMS, light).predict(GEMMS).hot_ns) == {float(np.median(light))}
    values = from_text(fitted("ceer", GEMMS, squares).files()["hot.txt"])
    assert values["degree"] == 2
