"""Intervals: the quantile, the parts of an error, and coverage on groups nobody trained on."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.model.intervals import calibrate, conformal_quantile, kind_errors, outside, training_range


def labels(kernels: tuple, noise: float) -> Latencies:
    rows = [law.measurement(kernel, noise=noise) for kernel in kernels]
    return Latencies(
        hot_ns=np.array([row.latency_hot_ns for row in rows]),
        rotated_ns=np.array([row.latency_rotated_ns for row in rows]),
    )


def test_the_conformal_quantile_is_conservative() -> None:
    assert conformal_quantile(np.arange(1.0, 20.0)) == 18.0
    assert conformal_quantile(np.arange(1.0, 10.0) / 100) == pytest.approx(0.09)
    assert conformal_quantile(np.array([0.1])) == pytest.approx(np.log(2))
    assert conformal_quantile(np.empty(0)) == pytest.approx(np.log(2))


def test_variance_components_are_told_apart() -> None:
    source = np.random.default_rng(0)
    shared = np.repeat(source.normal(0, 0.1, 200), 6)
    found = kind_errors(
        shared + source.normal(0, 0.03, 1200), [f"g{i // 6}" for i in range(1200)], np.zeros(1200, dtype=bool)
    )
    assert found.group_deviation == pytest.approx(0.1, rel=0.15)
    assert found.kernel_deviation == pytest.approx(0.03, rel=0.15)
    assert (found.rows, found.groups) == (1200, 200)


def test_rows_out_of_range_widen_their_own_interval() -> None:
    errors = np.concatenate([np.full(185, 0.02), np.full(15, 0.3)])
    beyond = np.arange(200) >= 185
    found = kind_errors(errors, [str(i) for i in range(200)], beyond)
    assert found.extrapolated_half_width == pytest.approx(0.3)
    few = kind_errors(errors[:190], [str(i) for i in range(190)], beyond[:190])
    assert few.extrapolated_half_width == pytest.approx(3 * few.half_width)
    # what was held out lies just beyond the rest: being no worse there is no promise
    alike = kind_errors(np.full(200, 0.02), [str(i) for i in range(200)], beyond)
    assert alike.extrapolated_half_width == pytest.approx(3 * alike.half_width)


@pytest.mark.parametrize("estimator", ["lightgbm", "roofline"])
def test_nine_in_ten_unseen_groups_are_covered(estimator: str) -> None:
    kernels = law.kernels("gemm", 240)
    groups = np.array(shape_groups(kernels))
    learn = np.isin(groups, sorted(set(groups))[::2])
    inputs, known = features(kernels, None, law.HARDWARE), labels(kernels, 0.05)
    training = Latencies(hot_ns=known.hot_ns[learn], rotated_ns=known.rotated_ns[learn])
    learner = ESTIMATORS.load(estimator)
    fitted = learner.fit(inputs.take(learn), training)
    errors, held_out = calibrate(learner, fitted, inputs.take(learn), training)
    assert len(held_out.hot_ns) == learn.sum()
    fresh = np.abs(np.log(known.hot_ns[~learn] / fitted.predict(inputs.take(~learn)).hot_ns))
    assert 0.8 <= (fresh <= errors.half_width).mean() <= 1.0
    assert errors.half_width < 1.0


def test_shapes_and_codes_never_seen_are_outside() -> None:
    inputs = features(law.kernels("gemm", 60), None, law.HARDWARE)
    known = training_range(inputs)
    assert not outside(inputs, known).any()
    larger = features(law.kernels("gemm", 1), None, law.HARDWARE)
    larger.matrix[0, larger.names.index("k")] += 3
    assert outside(larger, known).all()
    # as large as others in every size, but in all of them together
    assert outside(inputs, replace(known, work=0.0)).all()
    other = features(law.kernels("gemm", 1), None, law.HARDWARE)
    other.matrix[0, other.names.index("dtype_code")] = 5
    assert outside(other, known).all()
