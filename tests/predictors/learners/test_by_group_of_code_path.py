"""Convolutions that a runtime computes by two codes are learned apart where rows show that it does."""

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.estimators.lightgbm_trees import TreesOnly
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_group import ByCodePath, code_paths, fit_by_code_path, restore_by_code_path
from opmark.predictors.learners.estimator import Fitted

# Forests are quicker than processes, and hold rows out just the same.
QUICK = TreesOnly()


def convolution(channels: int, size: int, kernel: int = 3, batch: int = 1, stride: int = 1, **more: object) -> Kernel:
    parameters = {
        "batch": batch,
        "channels_in": channels,
        "channels_out": 2 * channels,
        "size": [size, size],
        "kernel": [kernel, kernel],
        "stride": [stride, stride],
        "pads": [kernel // 2] * 4,
        "dilation": [1, 1],
        "groups": 1,
        "bias": False,
        "dtype": "float32",
        **more,
    }
    return Kernel.of("conv", parameters)


@pytest.mark.parametrize(
    ("kernel", "without_library"),
    [
        (convolution(64, 16), 1),
        (convolution(64, 18), 0),
        (convolution(64, 16, batch=2), 0),
        (convolution(64, 16, stride=2), 1),
        (convolution(8, 16, kernel=5), 0),
        (convolution(64, 64, kernel=1), 1),
        (convolution(64, 64, kernel=1, batch=8), 1),
        (convolution(64, 64, kernel=1, batch=16), 0),
        (convolution(64, 64, kernel=1, stride=2), 0),
        (convolution(64, 16, groups=4), 0),
        (convolution(64, 16, dtype="bfloat16"), 0),
    ],
)
def test_the_paths_are_those_of_torchs_own_rule(kernel: Kernel, without_library: int) -> None:
    assert code_paths(features([kernel])).tolist() == [without_library]


def test_other_kinds_have_one_path() -> None:
    inputs = features([Kernel.of("gemm", {"m": 4, "k": 8, "n": 8, "dtype": "float32"})])
    assert code_paths(inputs).tolist() == [0]
    assert not isinstance(restore_by_code_path(QUICK.fit(inputs, _labels(inputs)).files(), QUICK.restore), ByCodePath)


def test_two_codes_are_learned_apart_one_is_not() -> None:
    inputs = _many()
    jumping, smooth = _labels(inputs, jump=6.0), _labels(inputs)
    apart = fit_by_code_path(inputs, jumping, _fit)
    assert isinstance(apart, ByCodePath)
    assert apart.held_out is not None
    assert np.all(np.isfinite(apart.held_out.hot_ns))
    assert not isinstance(fit_by_code_path(inputs, smooth, _fit), ByCodePath)
    few = np.concatenate([np.flatnonzero(code_paths(inputs) == 0), np.flatnonzero(code_paths(inputs) == 1)[:20]])
    own = Latencies(hot_ns=jumping.hot_ns[few], rotated_ns=jumping.rotated_ns[few])
    assert not isinstance(fit_by_code_path(inputs.take(few), own, _fit), ByCodePath)


def test_files_bring_both_models_back_within_an_element_types_own() -> None:
    inputs = _many()
    found = QUICK.fit(inputs, _labels(inputs, jump=6.0))
    assert isinstance(found, ByCodePath)
    again = QUICK.restore(found.files())
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)
    assert np.array_equal(again.predict(inputs).rotated_ns, found.predict(inputs).rotated_ns)


def _fit(inputs: Inputs, labels: Latencies) -> Fitted:
    return QUICK.fit_group(inputs, labels)


def _many() -> Inputs:
    draws = np.random.default_rng(5).integers((1, 4), (24, 40), (160, 2)).tolist()
    return features(list(dict.fromkeys(convolution(8 * wide, size) for wide, size in draws)))


def _labels(inputs: Inputs, jump: float = 1.0) -> Latencies:
    noise = np.exp(0.02 * np.random.default_rng(6).standard_normal(len(inputs)))
    hot_ns = (inputs.flops / 100 + 5000) * np.where(code_paths(inputs) == 1, jump, 1.0) * noise
    return Latencies(hot_ns=hot_ns, rotated_ns=1.1 * hot_ns)
