"""A kernel larger than the measured ones of its operator is told to be as efficient as the largest of them."""

from dataclasses import replace

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.extrapolation.reach import Reach, fit_reach, reach_from
from opmark.predictors.learners.utilisation import Utilisation

# Nanoseconds of one element of each operator.
NS = {"sqrt": 0.3, "exp": 0.9, "neg": 0.05, "relu": 0.04, "abs": 0.06, "tanh": 1.4}


def kernels(names: list[str], counts: list[int]) -> Inputs:
    usual = {"dtype": "float32", "inplace": False, "constant": (), "exponent": None}
    return features(
        [
            Kernel.of("elementwise", {**usual, "op": name, "shapes": ((1, count),)})
            for name, count in zip(names, counts, strict=True)
        ]
    )


def drawn(low: float, high: float, count: int) -> Inputs:
    source = np.random.default_rng(5)
    names = [str(name) for name in source.choice(list(NS), count)]
    return kernels(names, [int(10**digits) for digits in source.uniform(low, high, count)])


MEASURED = drawn(4, 6, 150)
LARGER = drawn(7, 7.5, 30)


def elements(inputs: Inputs) -> Floats:
    return np.array([kernel.params["shapes"][0][1] for kernel in inputs.kernels], dtype=np.float64)


def labels(inputs: Inputs, slower: Floats | float = 1.0) -> Latencies:
    ns = np.array([NS[kernel.params["op"]] for kernel in inputs.kernels])
    latency_ns = (2000 + ns * elements(inputs)) * slower
    return Latencies(hot_ns=latency_ns, rotated_ns=latency_ns)


def test_an_operator_stays_as_fast_as_it_was() -> None:
    with single_thread():
        fitted = replace(Utilisation().fit_group(MEASURED, labels(MEASURED)), beyond=None, largest=None)
    assert fitted.reach is not None
    error, without = (
        np.abs(np.log(one.predict(LARGER).hot_ns / labels(LARGER).hot_ns))
        for one in (fitted, replace(fitted, reach=None))
    )
    assert np.median(error) < 0.1
    assert error.mean() < 0.75 * without.mean()
    restored = Utilisation().restore_group(fitted.files())
    assert np.array_equal(restored.predict(LARGER).hot_ns, fitted.predict(LARGER).hot_ns)


def test_a_trend_that_goes_on_has_no_limits() -> None:
    slower = (elements(MEASURED) / 1e4) ** 0.3
    with single_thread():
        assert fit_reach(MEASURED, labels(MEASURED, slower)) is None


def test_few_rows_or_one_size_have_no_limits() -> None:
    few = MEASURED.take(np.arange(len(MEASURED)) < 39)
    assert fit_reach(few, labels(few)) is None
    alike = kernels(["neg"] * 60, [4096] * 60)
    assert fit_reach(alike, labels(alike)) is None


def test_measured_kernels_are_within_their_limits() -> None:
    with single_thread():
        reach = fit_reach(MEASURED, labels(MEASURED))
    assert reach is not None
    assert np.array_equal(reach.within(MEASURED).matrix, MEASURED.matrix)
    held = reach.within(LARGER)
    assert held.kernels == LARGER.kernels
    assert np.array_equal(held.flops, LARGER.flops)
    codes = list(LARGER.categorical)
    assert np.array_equal(held.matrix[:, codes], LARGER.matrix[:, codes])
    assert (held.matrix <= MEASURED.matrix.max(axis=0)).all()


def test_codes_without_limits_have_those_of_all() -> None:
    numeric = MEASURED.matrix.shape[1] - len(MEASURED.categorical)
    known = tuple(MEASURED.matrix[0, list(MEASURED.categorical)].tolist())
    reach = Reach(most={(): (5.0,) * numeric, known: (3.0,) * numeric})
    held = reach.within(MEASURED).matrix
    columns = [column for column in range(held.shape[1]) if column not in MEASURED.categorical]
    same = (MEASURED.matrix[:, list(MEASURED.categorical)] == known).all(axis=1)
    assert same.any()
    assert not same.all()
    assert held[same][:, columns].max() == 3.0
    assert held[~same][:, columns].max() == 5.0


@pytest.mark.parametrize(
    "text", ['{"most": [[[1.0], [2.0]]]}', "{}", '{"most": [["a", "b"], []]}', '{"most": [[[], [1e999]]]}']
)
def test_foreign_text_is_refused(text: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        reach_from({"reach.json": text})


def test_limits_of_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="other columns"):
        Reach(most={(): (1.0, 2.0)}).within(MEASURED)
