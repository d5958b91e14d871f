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
