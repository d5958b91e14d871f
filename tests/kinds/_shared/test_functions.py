"""Every elementwise function of the table exists in ONNX Runtime under the name it claims, and has a cost."""

import pytest
from tests.kinds.single_node import promised, results

from opmark.kinds import KINDS, of_onnx
from opmark.kinds._shared.functions import BINARY, FLOPS, FROM_ONNX, LOGICAL, ONNX, UNARY
from opmark.kinds.elementwise import Elementwise

TWO = {
    "add", "sub", "mul", "div", "max", "min", "sum", "mean", "equal", "less", "less-or-equal", "greater",
    "greater-or-equal", "and", "or", "xor", "bitwise-and", "bitwise-or", "prelu", "mod", "pow", "bias-gelu",
    "qlinear-add", "qlinear-mul",
}  # fmt: skip


def example(op: str) -> Elementwise:
    dtype = "bool" if op in LOGICAL else "int32" if op.startswith("bitwise") else "float32"
    dtype = "uint8" if op.startswith("qlinear") else dtype
    small = (5,) if op in {"bias-gelu", "prelu"} else (3, 5)
    shapes = ((3, 5), small) if op in TWO else ((3, 5),) * 3 if op.endswith("where") else ((3, 5),)
    return Elementwise(op=op, shapes=shapes, dtype=dtype)


@pytest.mark.parametrize("op", ONNX)
def test_a_function_runs_and_is_recognised(op: str) -> None:
    kind = KINDS.load("elementwise")
    p = example(op)
    made = kind.to_onnx(p)
    assert made is not None
    assert results(made) == promised(made)
    assert of_onnx(made)[0] == kind.kernel(p)


def test_every_name_has_a_cost() -> None:
    assert {*ONNX, *UNARY, *BINARY, *FROM_ONNX.values()} <= set(FLOPS)
    assert min(FLOPS.values()) >= 1
    assert FLOPS["add"] < FLOPS["div"] < FLOPS["exp"] < FLOPS["gelu"]


@pytest.mark.parametrize(("exponent", "flops"), [(2.0, 1), (3.0, 2), (0.5, 8), (None, 8)])
def test_a_power_by_a_small_constant_is_cheap(exponent: float | None, flops: int) -> None:
    kind = KINDS.load("elementwise")
    p = Elementwise(op="pow", shapes=((10,), ()), constant=(1,), exponent=exponent)
    assert kind.work(p).flops == 10 * flops


def test_a_sum_of_three_adds_twice() -> None:
    kind = KINDS.load("elementwise")
    assert kind.work(Elementwise(op="sum", shapes=((10,),) * 3)).flops == 20
