"""The operators that a saved program may call: tensor operators of known libraries and arithmetic on sizes.

A program names any attribute of torch, and torch holds the whole of Python (`torch.os.system`). Only names that are
listed here, or that torch's dispatcher knows as tensor operators, are looked up.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

_BITS_AT_MOST = 64
_TENSOR_OPERATOR = re.compile(r"torch\.ops\.([a-z_]+)\.([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)")
_LIBRARIES = frozenset({"aten", "prims", "quantized_decomposed", "torchvision"})
# They open a file, or print.
_REFUSED = frozenset({"from_file", "_print"})
# They check or bound sizes and values, and compute nothing.
_CHECKS = re.compile(r"torch\.ops\.aten\.(_assert|sym_constrain_range|_functional_assert|_functional_sym_constrain)")
_ARITHMETIC = frozenset(
    {
        *("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "neg", "pos", "abs", "eq", "ne", "lt", "le", "gt"),
        *("ge", "and_", "or_", "xor", "not_", "lshift", "rshift", "getitem"),
    }
)
_MATHEMATICS = frozenset({"ceil", "floor", "trunc", "sqrt", "log2", "pow"})
_SIZES = frozenset({"sym_int", "sym_float", "sym_max", "sym_min", "sym_not", "sym_ite", "sym_sum", "_sym_sqrt"})
# They run a graph once, as it is; the number is the place of the graph among their arguments.
WRAPPERS = {
    "torch.ops.higher_order.wrap_with_set_grad_enabled": 1,
    "torch.ops.higher_order.wrap_with_autocast": 4,
    "torch.ops.higher_order.tag_activation_checkpoint": 0,
}


class UnknownOperatorError(ValueError):
    """A program calls what is no known operator."""


def is_check(target: str) -> bool:
    """True for an operator that only checks or bounds values."""
    return _CHECKS.match(target) is not None


def operator_of(target: str) -> Callable[..., Any]:
    """The operator called `target`. Raises `UnknownOperatorError`."""
    import torch

    found = _TENSOR_OPERATOR.fullmatch(target)
    if found:
        library, name, overload = found.groups()
        if library in _LIBRARIES and name not in _REFUSED and not name.startswith("_test"):
            _load(library)
            # TorchScript knows further operators, such as one that writes files; the dispatcher does not
            registered = "" if overload == "default" else overload
            try:
                torch._C._dispatch_find_schema_or_throw(f"{library}::{name}", registered)
                resolved: Callable[..., Any] = getattr(getattr(getattr(torch.ops, library), name), overload)
            except (RuntimeError, AttributeError) as error:
                raise UnknownOperatorError(target) from error
            return resolved
    module, _, name = target.rpartition(".")
    for place, known, holder in (
        ("_operator", _ARITHMETIC, operator),
        ("math", _MATHEMATICS, math),
        ("torch", _SIZES, torch),
    ):
        if module == place and name in known:
            plain: Callable[..., Any] = getattr(holder, name)
            return plain if name == "getitem" or holder is torch else bounded(plain)
    raise UnknownOperatorError(target)


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of numbers alone, whose whole results take at most 64 bits, as sizes do.

    In Python, `3 ** 10 ** 9` takes hours, `[0] * 10 ** 10` all memory, and `%` writes texts of any length. The function
    raises `ValueError` for those.
    """
    name = function.__name__

    def call(*given: Any) -> Any:
        if any(isinstance(one, str | bytes | list | tuple | Mapping) for one in given):
            raise ValueError(f"{name} of what is no number")
        if name in {"pow", "lshift"} and all(isinstance(one, int) for one in given):
            base, exponent = given
            least_bits = exponent if name == "lshift" else (base.bit_length() - 1) * exponent
            if least_bits > _BITS_AT_MOST:
                raise ValueError(f"{name} gives more than {_BITS_AT_MOST} bits")
        found = function(*given)
        if isinstance(found, int) and found.bit_length() > _BITS_AT_MOST:
            raise ValueError(f"{name} gives more than {_BITS_AT_MOST} bits")
        return found

    # another name than that of Python's own function, for which torch would write an expression instead of the call
    call.__name__ = call.__qualname__ = f"bounded_{name}"
    return call


def _load(library: str) -> None:
    """Import the package that registers the operators of `library`, where it is installed."""
    import contextlib
    import importlib

    package = {"quantized_decomposed": "torch.ao.quantization.fx._decomposed", "torchvision": "torchvision"}.get(
        library
    )
    if package:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
