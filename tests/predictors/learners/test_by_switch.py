"""Kernels that a runtime computes by two codes are learned apart where rows show that it does."""

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.estimators.lightgbm_trees import TreesOnly
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.switches import WITHOUT_ONEDNN, switched, switches
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_switch import BySwitch, fit_by_switch, restore_by_switch
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
def test_torch_does_without_onednn_by_its_own_rule(kernel: Kernel, without_library: int) -> None:
    assert switched(features([kernel]), WITHOUT_ONEDNN).tolist() == [bool(without_library)]


def test_switches_are_those_of_the_kinds_sizes_and_layout() -> None:
    products = features([Kernel.of("gemm", {"m": 4, "k": 8, "n": 8, "dtype": "float32"})])
    assert not switches(products)
    for name in (WITHOUT_ONEDNN, "no-such-switch"):
        with pytest.raises(ValueError, match="gemm has no switch"):
            switched(products, name)
    kernels = [
        convolution(16, 8),
        convolution(16, 8, groups=16, channels_out=16),
        convolution(16, 8, kernel=1, stride=2),
    ]
    found = switches(features(kernels))
    on = {name: flags.tolist() for name, flags in found.items() if flags.any()}
    assert on == {
        WITHOUT_ONEDNN: [True, False, True],
        "grouped": [False, True, False],
        "depthwise": [False, True, False],
        "pointwise": [False, False, True],
        "strided": [False, False, True],
    }
    for name, flags in found.items():
        assert np.array_equal(switched(features(kernels), name), flags)


def test_two_codes_are_learned_apart_one_is_not() -> None:
    inputs = _many()
    jumping, smooth = _labels(inputs, jump=6.0), _labels(inputs)
    apart = _fit(inputs, jumping)
    assert isinstance(apart, BySwitch)
    assert apart.name == WITHOUT_ONEDNN
    assert apart.held_out is not None
    assert np.all(np.isfinite(apart.held_out.hot_ns))
    assert not isinstance(_fit(inputs, smooth), BySwitch)
    without = switched(inputs, WITHOUT_ONEDNN)
    few = np.concatenate([np.flatnonzero(~without), np.flatnonzero(without)[:20]])
    own = Latencies(hot_ns=jumping.hot_ns[few], rotated_ns=jumping.rotated_ns[few])
    assert not isinstance(_fit(inputs.take(few), own), BySwitch)


@pytest.mark.parametrize(("groups", "apart"), [(4, False), (5, True)])
def test_a_side_of_few_shape_groups_is_not_learned_apart(groups: int, apart: bool) -> None:
    inputs = features([convolution(8 * wide, 8 + size) for size in range(groups) for wide in range(1, 80)])
    on = switched(inputs, WITHOUT_ONEDNN)
    assert min(on.sum(), (~on).sum()) >= 100
    assert isinstance(_fit(inputs, _labels(inputs, jump=6.0)), BySwitch) == apart


def test_files_bring_both_models_back_within_an_element_types_own() -> None:
    inputs = _many()
    found = QUICK.fit(inputs, _labels(inputs, jump=6.0))
    assert isinstance(found, BySwitch)
    again = QUICK.restore(found.files())
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)
    assert np.array_equal(again.predict(inputs).rotated_ns, found.predict(inputs).rotated_ns)


def test_an_older_bundle_knows_one_switch_by_another_name() -> None:
    inputs = _many()
    found = QUICK.fit(inputs, _labels(inputs, jump=6.0))
    files = {
        name.replace("off.", "path-0.").replace("on.", "path-1."): text
        for name, text in found.files().items()
        if name != "switch.json"
    }
    again = restore_by_switch(files, QUICK.restore_group)
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)


def _fit(inputs: Inputs, labels: Latencies) -> Fitted:
    return fit_by_switch(inputs, labels, QUICK.held_out_errors, QUICK.fit_group)


def _many() -> Inputs:
    draws = np.random.default_rng(5).integers((1, 4), (24, 40), (160, 2)).tolist()
    return features(list(dict.fromkeys(convolution(8 * wide, size) for wide, size in draws)))


def _labels(inputs: Inputs, jump: float = 1.0) -> Latencies:
    noise = np.exp(0.02 * np.random.default_rng(6).standard_normal(len(inputs)))
    hot_ns = (inputs.flops / 100 + 5000) * np.where(switched(inputs, WITHOUT_ONEDNN), jump, 1.0) * noise
    return Latencies(hot_ns=hot_ns, rotated_ns=1.1 * hot_ns)
