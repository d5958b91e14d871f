"""Kernels larger than every measured one follow the law of the largest, as far as FLOPs make up their time."""

from dataclasses import replace

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import single_thread
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.extrapolation.beyond import Beyond, beyond_from, fit_beyond
from opmark.predictors.learners.utilisation import FittedUtilisation, Utilisation


def products(shapes: list[tuple[int, int, int]]) -> Inputs:
    return features([Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32"}) for m, k, n in shapes])


def drawn(rows: tuple[int, int], sides: tuple[int, int], count: int) -> list[tuple[int, int, int]]:
    source = np.random.default_rng(3)
    return [
        (int(source.integers(*rows)), int(source.integers(*sides)), int(source.integers(*sides))) for _ in range(count)
    ]


# As on a machine on which large products are not measured: large weights only under few rows.
MEASURED = products(drawn((16, 300), (32, 300), 60) + drawn((1, 4), (1000, 3000), 60))
LARGER = products([(512, 2048, 2048), (700, 3000, 1500), (1024, 1024, 4096)])


def hot_ns(inputs: Inputs) -> np.ndarray:
    """Weights under few rows come in at a fifth of the speed of FLOPs, as on a CPU."""
    return 500 + np.maximum(inputs.flops / 100, inputs.weight_bytes / 10 + inputs.moved_bytes / 20)


def labels(inputs: Inputs, factor: np.ndarray | float = 1.0) -> Latencies:
    latency_ns = hot_ns(inputs) * factor
    return Latencies(hot_ns=latency_ns, rotated_ns=latency_ns)


@pytest.fixture(scope="module")
def fitted() -> FittedUtilisation:
    with single_thread():
        found = Utilisation().fit_group(MEASURED, labels(MEASURED))
    assert found.beyond is not None
    return found


def test_larger_products_than_any_measured_follow_the_law(fitted: FittedUtilisation) -> None:
    without = replace(fitted, beyond=None)
    errors = [np.abs(np.log(one.predict(LARGER).hot_ns / hot_ns(LARGER))) for one in (fitted, without)]
    assert errors[0].max() < 0.25
    assert errors[0].mean() < 0.5 * errors[1].mean()


def test_measured_sizes_are_left_to_what_was_learned(fitted: FittedUtilisation) -> None:
    beyond = fitted.beyond
    assert beyond is not None
    assert not beyond.larger(MEASURED).any()
    assert beyond.larger(LARGER).all()
    inside = products(drawn((16, 200), (32, 200), 20))
    assert not beyond.larger(inside).any()
    assert np.array_equal(fitted.predict(inside).hot_ns, replace(fitted, beyond=None).predict(inside).hot_ns)


def test_only_the_share_of_flops_follows_the_law() -> None:
    beyond = fit_beyond(MEASURED, labels(MEASURED))
    assert beyond is not None
    long_rows = products([(1, 9000, 9000)])
    assert beyond.larger(long_rows).all()
    share = beyond.roofline.flops_share(long_rows)
    usual_ns = np.array([1e6])
    kept = beyond.latency_ns(long_rows, 2 * usual_ns) / beyond.latency_ns(long_rows, usual_ns)
    assert kept == pytest.approx(2 ** (1 - share))


def test_text_restores_it(fitted: FittedUtilisation) -> None:
    # a fitted model may ask for more columns than kernels have by themselves
    beyond = fit_beyond(MEASURED, labels(MEASURED))
    assert beyond is not None
    again = beyond_from(beyond.files())
    assert isinstance(again, Beyond)
    usual_ns = np.full(len(LARGER), 1e6)
    assert np.array_equal(again.latency_ns(LARGER, usual_ns), beyond.latency_ns(LARGER, usual_ns))
    assert beyond_from({}) is None
    whole = Utilisation().restore_group(fitted.files())
    assert np.array_equal(whole.predict(LARGER).hot_ns, fitted.predict(LARGER).hot_ns)


def test_there_is_no_law_where_none_tells_the_largest_or_rows_are_few() -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.5, len(MEASURED)))
    assert fit_beyond(MEASURED, labels(MEASURED, noise)) is None
    assert fit_beyond(MEASURED.take(slice(30)), labels(MEASURED.take(slice(30)))) is None
