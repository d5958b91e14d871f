"""Element types of one kind are learned apart where each has rows enough."""

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.switches import element_types
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_element_type import ByElementType, fit_by_element_type, restore_by_element_type
from opmark.predictors.learners.roofline import RooflineEstimator
from opmark.predictors.learners.utilisation import Utilisation

ROOFLINE = RooflineEstimator()


def products(dtype: str, count: int) -> list[Kernel]:
    sizes = np.random.default_rng(3).integers(16, 512, (count, 3)).tolist()
    return [Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": dtype}) for m, k, n in sizes]


def labelled(kernels: list[Kernel], flops_per_ns: dict[str, float]) -> tuple[Inputs, Latencies]:
    inputs = features(kernels)
    rates = np.array([flops_per_ns[str(kernel.params["dtype"])] for kernel in kernels])
    hot_ns = inputs.flops / rates
    return inputs, Latencies(hot_ns=hot_ns, rotated_ns=1.2 * hot_ns)


def test_a_fast_type_does_not_make_a_slow_one_look_faster() -> None:
    kernels = products("float32", 80) + products("bfloat16", 80)
    inputs, labels = labelled(kernels, {"float32": 100.0, "bfloat16": 400.0})
    together = ROOFLINE.fit(inputs, labels).predict(inputs).hot_ns / labels.hot_ns
    assert together.max() / together.min() > 3, "one roofline lies between both"
    apart = fit_by_element_type(inputs, labels, ROOFLINE.fit)
    assert isinstance(apart, ByElementType)
    assert np.allclose(apart.predict(inputs).hot_ns, labels.hot_ns, rtol=0.01)


def test_one_type_is_one_model() -> None:
    inputs, labels = labelled(products("float32", 80), {"float32": 100.0})
    assert not isinstance(fit_by_element_type(inputs, labels, ROOFLINE.fit), ByElementType)


def test_few_rows_of_a_type_learn_from_all_and_unseen_types_too() -> None:
    rates = {"float32": 100.0, "bfloat16": 100.0, "float16": 100.0}
    inputs, labels = labelled(products("float32", 80) + products("bfloat16", 8), rates)
    found = fit_by_element_type(inputs, labels, ROOFLINE.fit)
    assert isinstance(found, ByElementType)
    assert sorted(found.models) == [-2, int(element_types(inputs)[0])]
    other, truth = labelled(products("float16", 5), rates)
    assert np.allclose(found.predict(other).hot_ns, truth.hot_ns, rtol=0.01)


def test_files_bring_every_model_back() -> None:
    inputs, labels = labelled(products("float32", 70) + products("bfloat16", 70), {"float32": 100.0, "bfloat16": 400.0})
    found = fit_by_element_type(inputs, labels, ROOFLINE.fit)
    again = restore_by_element_type(found.files(), ROOFLINE.restore)
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)
    assert np.array_equal(again.predict(inputs).rotated_ns, found.predict(inputs).rotated_ns)


def test_a_type_of_one_shape_group_is_not_judged_by_its_siblings() -> None:
    biases = [Kernel.of("quantize", {"op": "dequantize", "shape": (8 * n,), "dtype": "int32"}) for n in range(1, 66)]
    images = [
        Kernel.of("quantize", {"op": "quantize", "shape": (1, 8 * n, side, side), "dtype": "uint8"})
        for n in range(1, 14)
        for side in (7, 14, 28, 56, 112)
    ]
    inputs = features(biases + images)
    hot_ns = 100 + inputs.moved_bytes * np.where(np.arange(len(inputs)) < len(biases), 1.0, 0.05)
    labels = Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(inputs), np.nan))
    fitted = Utilisation().fit(inputs, labels)
    assert isinstance(fitted, ByElementType)
    assert fitted.held_out is not None
    error = np.abs(np.log(fitted.held_out.hot_ns / hot_ns))
    assert np.median(error[: len(biases)]) > 0.3, "nothing but their siblings tells that they are slow"
    assert np.median(error[len(biases) :]) < 0.1
    assert np.abs(np.log(fitted.predict(inputs).hot_ns / hot_ns)).max() < 0.2
