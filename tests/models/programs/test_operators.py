"""A program reaches operators and arithmetic on sizes, and nothing else of torch or Python."""

import pytest

from opmark.models.programs.operators import UnknownOperatorError, is_check, operator_of


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten.conv2d.default", "torch.ops.aten.add.Tensor",
        "torch.ops.quantized_decomposed.quantize_per_tensor.default", "_operator.mul", "math.ceil", "torch.sym_max",
    ],
)  # fmt: skip
def test_operators_are_found(target: str) -> None:
    assert callable(operator_of(target))


@pytest.mark.parametrize(
    "target",
    [
        "torch.os.system", "torch.ops.load_library", "torch.ops.aten.save.default", "torch.ops.aten.from_file.default",
        "torch.ops.aten._print.default", "torch.ops.aten.add.__class__", "torch.ops.aten.__class__.default",
        "torch.ops.aten.conv2d", "torch.ops.inductor.x.default", "torch.ops.higher_order.cond", "torch.load",
        "_operator.methodcaller", "_operator.attrgetter", "_operator.call", "math.factorial", "builtins.eval", "eval",
        "#extension:op", "", "torch.ops.aten.add.Tensor\n", "operator.add", "torch.sym_int.__globals__",
    ],
)  # fmt: skip
def test_everything_else_is_refused(target: str) -> None:
    with pytest.raises(UnknownOperatorError):
        operator_of(target)


def test_checks_of_values_are_known() -> None:
    assert is_check("torch.ops.aten._assert_scalar.default")
    assert not is_check("torch.ops.aten.add.Tensor")


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("_operator.pow", (3, 10**9)), ("_operator.pow", (2, 65)), ("_operator.lshift", (1, 10**12)),
        ("_operator.mul", (2**63, 2**63)), ("_operator.mul", ([0], 10**10)), ("_operator.mul", ("x", 10**10)),
        ("_operator.mod", ("%999999999d", 1)), ("_operator.add", ((0,), (0,))), ("math.ceil", (1e30,)),
    ],
)  # fmt: skip
def test_arithmetic_of_sizes_ends_and_stays_small(target: str, given: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"of what is no number|gives more than 64 bits"):
        operator_of(target)(*given)


def test_arithmetic_of_sizes_is_that_of_python() -> None:
    assert operator_of("_operator.pow")(2, 60) == 2**60
    assert operator_of("_operator.pow")(1, 10**9) == 1
    assert operator_of("_operator.pow")(2, -1) == 0.5
    assert operator_of("_operator.lshift")(3, 4) == 48
    assert operator_of("_operator.floordiv")(-7, 2) == -4
    assert operator_of("math.ceil")(2.5) == 3
    assert operator_of("_operator.getitem")([4, 5], 1) == 5
