"""Operations of one kind, and forms of a convolution, are learned apart where they are told better alone."""

import numpy as np
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_operation import ByOperation, fit_by_operation, restore_by_operation
from opmark.predictors.learners.estimator import Fitted
from opmark.predictors.learners.utilisation import Utilisation

LEARNER = Utilisation()


def reductions(op: str, count: int, dtype: str = "float32", seed: int = 0) -> list[Kernel]:
    sizes = np.random.default_rng(seed).integers(16, 512, (count, 2)).tolist()
    return [Kernel.of("reduce", {"op": op, "shape": tuple(size), "axes": (1,), "dtype": dtype}) for size in sizes]


def labelled(kernels: list[Kernel]) -> tuple[Inputs, Latencies]:
    """A sum takes as long as it has elements; a maximum computes all but whole vectors slowly."""
    inputs = features(kernels, None, law.HARDWARE)
    largest = np.array([kernel.params["op"] == "max" for kernel in kernels])
    left = inputs.raw["along"] % 32
    hot_ns: Floats = 100 + inputs.raw["outer"] * (inputs.raw["along"] + np.where(largest, 40 * left, 0)) / 4
    return inputs, Latencies(hot_ns=hot_ns, rotated_ns=1.2 * hot_ns)


def fitted(kernels: list[Kernel]) -> Fitted:
    with single_thread():
        return fit_by_operation(*labelled(kernels), LEARNER.held_out_errors, LEARNER.fit_group)


def test_operations_with_loops_of_their_own_have_models_of_their_own() -> None:
    kernels = reductions("sum", 90) + reductions("max", 90, seed=1) + reductions("prod", 20, seed=2)
    inputs, labels = labelled(kernels)
    found = fitted(kernels)
    assert isinstance(found, ByOperation)
    rare = int(inputs.raw["op"][-1])
    assert rare not in found.models, "few rows learn from all"
    assert found.held_out is not None
    alone = LEARNER.fit_group(inputs, labels)
    assert alone.held_out is not None
    errors = [np.abs(np.log(told.hot_ns / labels.hot_ns)).mean() for told in (found.held_out, alone.held_out)]
    assert errors[0] < 0.97 * errors[1]
    again = restore_by_operation(found.files(), LEARNER.restore_group)
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)
    assert np.array_equal(again.predict(inputs).rotated_ns, found.predict(inputs).rotated_ns)


def test_forms_of_a_convolution_have_models_of_their_own() -> None:
    sizes = np.random.default_rng(4).integers(8, 160, (180, 2)).tolist()
    kernels = [
        convolution(width, 8 * (channels // 8 + 1), depthwise=row % 2 == 0)
        for row, (width, channels) in enumerate(sizes)
    ]
    inputs = features(kernels, None, law.HARDWARE)
    left = inputs.raw["output_width"] % 16
    slow = np.where(inputs.raw["groups"] > 1, 1 + left / 4, 1.0)
    hot_ns: Floats = 1000 + inputs.flops / 40 * slow
    labels = Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan))
    with single_thread():
        found = fit_by_operation(inputs, labels, LEARNER.held_out_errors, LEARNER.fit_group)
    assert isinstance(found, ByOperation)
    assert found.column == "form"
    again = restore_by_operation(found.files(), LEARNER.restore_group)
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)


def convolution(width: int, channels: int, *, depthwise: bool) -> Kernel:
    size = {"batch": 1, "channels_in": channels, "channels_out": channels, "size": (width, width), "kernel": (3, 3)}
    window = {"stride": (1, 1), "pads": (1, 1, 1, 1), "dilation": (1, 1), "groups": channels if depthwise else 1}
    return Kernel.of("conv", {**size, **window, "bias": False, "dtype": "float32"})


def test_one_operation_is_one_model() -> None:
    assert not isinstance(fitted(reductions("sum", 90)), ByOperation)


def test_rows_of_several_element_types_stay_together() -> None:
    kernels = reductions("sum", 70) + reductions("max", 70, dtype="bfloat16", seed=1)
    assert not isinstance(fitted(kernels), ByOperation)


def test_kinds_without_operations_are_one_model() -> None:
    sizes = np.random.default_rng(3).integers(16, 256, (70, 3)).tolist()
    products = [Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32"}) for m, k, n in sizes]
    inputs = features(products, None, law.HARDWARE)
    with single_thread():
        labels = Latencies(hot_ns=inputs.flops / 50, rotated_ns=inputs.flops / 40)
        found = fit_by_operation(inputs, labels, LEARNER.held_out_errors, LEARNER.fit_group)
    assert not isinstance(found, ByOperation)


def test_files_of_one_model_are_read_as_before() -> None:
    kernels = reductions("sum", 30)
    inputs, labels = labelled(kernels)
    with single_thread():
        model = LEARNER.fit_group(inputs, labels)
    again = restore_by_operation(model.files(), LEARNER.restore_group)
    assert np.array_equal(again.predict(inputs).hot_ns, model.predict(inputs).hot_ns)


def test_an_operation_that_quick_models_tell_worse_alone_is_not_learned_alone() -> None:
    kernels = reductions("sum", 90) + reductions("max", 90, seed=1)
    learned = []

    def fit(inputs: Inputs, labels: Latencies) -> Fitted:
        learned.append(len(inputs))
        return LEARNER.fit_group(inputs, labels)

    def errors(inputs: Inputs, labels: Latencies) -> Floats:
        return np.full(len(inputs), 1.0 if len(inputs) == len(kernels) else 1.1)

    with single_thread():
        found = fit_by_operation(*labelled(kernels), errors, fit)
    assert not isinstance(found, ByOperation)
    assert learned == [len(kernels)]
