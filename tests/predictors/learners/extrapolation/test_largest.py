"""Half of what a kernel larger than the measured ones is told comes from the largest of them alone."""

from dataclasses import replace

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Hardware, Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.extrapolation.largest import Largest, fit_largest, largest_from
from opmark.predictors.learners.utilisation import FittedUtilisation, Utilisation

HARDWARE = Hardware(vector_bytes=64, cache_bytes=(32 << 10, 1 << 20, 32 << 20))


def products(drawn: np.random.Generator, low: float, high: float, count: int) -> Inputs:
    sides = np.exp(drawn.uniform(low, high, (count, 3))).astype(int).tolist()
    return features(
        [Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32"}) for m, k, n in sides], hardware=HARDWARE
    )


SOURCE = np.random.default_rng(7)
MEASURED, LARGER = products(SOURCE, 3, 7, 400), products(SOURCE, 7.2, 8, 40)


def hot_ns(inputs: Inputs) -> Floats:
    """Small products have a speed that follows their rows in waves; large ones have one speed."""
    rows = np.array([kernel.params["m"] for kernel in inputs.kernels])
    small = np.exp(-inputs.flops / 1e7)
    return 500 + inputs.flops / 100 * (1 + small * np.sin(3 * np.log(rows))) + inputs.moved_bytes / 10


def labels(inputs: Inputs) -> Latencies:
    return Latencies(hot_ns=hot_ns(inputs), rotated_ns=hot_ns(inputs))


@pytest.fixture(scope="module")
def fitted() -> FittedUtilisation:
    with single_thread():
        found = Utilisation().fit_group(MEASURED, labels(MEASURED))
    assert found.largest is not None
    return found


def test_larger_kernels_are_told_better(fitted: FittedUtilisation) -> None:
    without = replace(fitted, largest=None)
    errors = [np.abs(np.log(one.predict(LARGER).hot_ns / hot_ns(LARGER))).mean() for one in (fitted, without)]
    assert errors[0] < 0.7 * errors[1]


def test_measured_sizes_keep_what_they_are_told(fitted: FittedUtilisation) -> None:
    assert fitted.largest is not None
    assert not fitted.largest.larger(MEASURED).any()
    assert fitted.largest.larger(LARGER).all()
    without = replace(fitted, largest=None)
    assert np.array_equal(fitted.predict(MEASURED).hot_ns, without.predict(MEASURED).hot_ns)


def test_half_of_the_logarithm_is_the_law(fitted: FittedUtilisation) -> None:
    assert fitted.largest is not None
    usual_ns = hot_ns(LARGER)
    ratio = fitted.largest.mean_ns(LARGER, 4 * usual_ns) / fitted.largest.mean_ns(LARGER, usual_ns)
    assert ratio == pytest.approx(2.0)


def test_text_restores_it(fitted: FittedUtilisation) -> None:
    whole = Utilisation().restore_group(fitted.files())
    assert isinstance(whole.largest, Largest)
    assert np.array_equal(whole.predict(LARGER).hot_ns, fitted.predict(LARGER).hot_ns)
    assert largest_from({}) is None


def test_a_law_without_limits_is_refused(fitted: FittedUtilisation) -> None:
    files = {name: text for name, text in fitted.files().items() if name != "largest-reach.json"}
    with pytest.raises(ValueError, match="lacks the limits"):
        largest_from(files)


def test_few_rows_have_no_law() -> None:
    few = MEASURED.take(slice(150))
    with single_thread():
        assert fit_largest(few, labels(few)) is None
