"""What tells the operations of a kind apart."""

import pytest
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.operations import operation_codes, operation_column


def convolutions(kind: str, *forms: tuple[tuple[int, int], int], **more: object) -> Inputs:
    """Convolutions of 8 channels: each form is a filter and a number of groups."""
    kernels = []
    for kernel, groups in forms:
        size = {"batch": 1, "channels_in": 8, "channels_out": 8, "size": (9, 9), "kernel": kernel, "groups": groups}
        window = {"stride": (1, 1), "pads": (0, 0, 0, 0), "dilation": (1, 1), "bias": False, "dtype": "float32"}
        kernels.append(Kernel.of(kind, {**size, **window, **more}))
    return features(kernels, None, law.HARDWARE)


def test_a_convolution_is_dense_or_pointwise_grouped_or_depthwise() -> None:
    inputs = convolutions("conv", ((3, 3), 1), ((1, 3), 1), ((1, 1), 1), ((3, 3), 4), ((1, 1), 4), ((3, 3), 8))
    assert operation_column(inputs) == "form"
    assert operation_codes(inputs, "form").tolist() == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("kernel", "column"),
    [
        (Kernel.of("reduce", {"op": "sum", "shape": (8, 8), "axes": (1,), "dtype": "float32"}), "op"),
        (Kernel.of("gemm", {"m": 4, "k": 8, "n": 16, "dtype": "float32"}), None),
    ],
)
def test_an_operation_is_a_column_of_codes(kernel: Kernel, column: str | None) -> None:
    inputs = features((kernel,), None, law.HARDWARE)
    assert operation_column(inputs) == column
    if column is not None:
        assert operation_codes(inputs, column).tolist() == inputs.raw[column].tolist()


def test_a_column_that_the_kind_lacks_is_an_error() -> None:
    with pytest.raises(KeyError):
        operation_codes(convolutions("conv", ((3, 3), 1)), "mode")
