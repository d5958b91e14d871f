"""Activations that ONNX Runtime fuses keep their name through a node, and the runtime takes them."""

import pytest
from tests.kinds.single_node import promised, results

from opmark.kinds import KINDS, of_onnx
from opmark.kinds._onnx.activations import ACTIVATIONS, activation_flops, activation_from_onnx, fusable
from opmark.kinds.conv import Conv
from opmark.kinds.gemm import Gemm

FUSED = tuple(name for name in ACTIVATIONS if fusable(name))


@pytest.mark.parametrize("activation", FUSED)
def test_a_convolution_runs_with_it(activation: str) -> None:
    kind = KINDS.load("conv")
    square = (3, 3)
    p = Conv(
        batch=1,
        channels_in=8,
        channels_out=8,
        size=(6, 6),
        kernel=square,
        stride=(1, 1),
        pads=(1, 1, 1, 1),
        dilation=(1, 1),
        activation=activation,
    )
    made = kind.to_onnx(p)
    assert made is not None
    assert results(made) == promised(made)
    assert of_onnx(made)[0] == kind.kernel(p)


@pytest.mark.parametrize("activation", [name for name in FUSED if name != "clip"])
def test_a_matrix_product_runs_with_it(activation: str) -> None:
    kind = KINDS.load("gemm")
    p = Gemm(m=4, k=8, n=6, activation=activation)
    made = kind.to_onnx(p)
    assert made is not None
    assert results(made) == promised(made)
    assert of_onnx(made)[0] == kind.kernel(p)


@pytest.mark.parametrize("activation", [*sorted(set(ACTIVATIONS) - set(FUSED)), "clip"])
def test_what_cannot_be_fused_has_no_node(activation: str) -> None:
    assert KINDS.load("gemm").to_onnx(Gemm(m=4, k=8, n=6, activation=activation)) is None


def test_costs_grow_with_what_is_computed() -> None:
    assert activation_flops("") == 0
    assert 0 < activation_flops("relu") < activation_flops("clip") < activation_flops("tanh")


def test_an_unknown_activation_is_nobodys() -> None:
    assert activation_from_onnx({"activation": "Swirl"}) is None
