"""The sizes that a saved program leaves open, and their expressions: `2*s0 + 1` or `Symbol('s0', integer=True)`.

torch reads such an expression with `eval`. Here only sums, products and quotients of numbers and names are computed.
"""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError, UsageError
from opmark.models.programs.archive import whole

_MOST_NODES = 100
_MOST_CHARACTERS = 1000


def input_shapes(
    inputs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]],
    ranges: Mapping[str, Mapping[str, Any]],
    dimensions: Mapping[str, int],
    path: Path,
) -> list[tuple[int, ...]]:
    """The shapes of a program's inputs, which are given by name and sizes.

    `dimensions` gives open sizes by the name in the file (`s0`), or by `input.axis`. Raises `ContentError` for a size
    that stays open, `UsageError` for a dimension that is not open or out of the range that was exported.
    """
    values: dict[str, int] = {}
    known: dict[str, str] = {}
    for name, sizes in inputs:
        for axis, size in enumerate(sizes):
            symbol = _symbol(size)
            if symbol:
                known.setdefault(symbol, f"{name}.{axis}")
                for key in (symbol, f"{name}.{axis}"):
                    if key in dimensions and values.setdefault(symbol, dimensions[key]) != dimensions[key]:
                        raise UsageError(f"{key} and {known[symbol]} are one dimension, given with two sizes")
    _refuse_unknown(dimensions, known, inputs, path)
    for symbol, place in known.items():
        if symbol not in values:
            continue
        limits = ranges.get(symbol, {})
        low, high = limits.get("min_val") or 1, limits.get("max_val")
        if values[symbol] < low or (high is not None and values[symbol] > high):
            raise UsageError(f"{place} was exported for {low} to {high or 'any size'}, not for {values[symbol]}")
    missing = [place for symbol, place in known.items() if symbol not in values]
    if missing:
        name, _, last = missing[0].rpartition(".")
        raise ContentError(
            f"its input {name!r} leaves dimension {last} open",
            where=str(path),
            hint=f"give {'them' if len(missing) > 1 else 'it'}: "
            + " ".join(
                f"--dimension {place}={ranges.get(_of(known, place), {}).get('min_val') or 1}" for place in missing
            ),
        )
    return [tuple(_size(size, values) for size in sizes) for _, sizes in inputs]


def _of(known: Mapping[str, str], place: str) -> str:
    return next(symbol for symbol, where in known.items() if where == place)


def _refuse_unknown(
    dimensions: Mapping[str, int],
    known: Mapping[str, str],
    inputs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]],
    path: Path,
) -> None:
    places = {f"{name}.{axis}" for name, sizes in inputs for axis, size in enumerate(sizes) if _symbol(size)}
    unknown = sorted(set(dimensions) - set(known) - places)
    if unknown and not known:
        raise UsageError(
            f"the shapes of {path.name} are fixed, {', '.join(unknown)} cannot be set",
            hint="export it with dynamic_shapes, or with the shapes you want",
        )
    if unknown:
        raise UsageError(
            f"{path.name} has no open dimension {unknown[0]!r}",
            hint=f"its open dimensions: {', '.join(sorted(known.values()))}",
        )
    for key, number in dimensions.items():
        if number < 1:
            raise UsageError(f"dimension {key!r} cannot be {number}", hint="give a whole number of at least 1")


def _expression(size: Mapping[str, Any]) -> ast.expr | None:
    if "as_int" in size:
        return None
    text = str(size["as_expr"]["expr_str"])
    if len(text) > _MOST_CHARACTERS:
        raise ValueError("an expression of a size is too long")
    tree = ast.parse(text, mode="eval").body
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise ValueError("an expression of a size is too long")
    return tree


def _symbol(size: Mapping[str, Any]) -> str:
    """The name of a size that is one symbol, else an empty text."""
    tree = _expression(size)
    return "" if tree is None else _name(tree)


def _name(tree: ast.expr) -> str:
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "Symbol":
        first = tree.args[0] if tree.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return first.value
    return ""


def _size(size: Mapping[str, Any], values: Mapping[str, int]) -> int:
    tree = _expression(size)
    found = whole(size["as_int"] if tree is None else _computed(tree, values))
    if found < 0:
        raise ValueError("a size below zero")
    return found


def _computed(tree: ast.expr, values: Mapping[str, int]) -> int:
    name = _name(tree)
    if name:
        return values[name]
    if isinstance(tree, ast.Constant):
        return whole(tree.value)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_computed(tree.operand, values)
    parts: list[int] = []
    if isinstance(tree, ast.BinOp):
        parts = [_computed(tree.left, values), _computed(tree.right, values)]
        rule = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv"}.get(type(tree.op), "")
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        parts = [_computed(item, values) for item in tree.args]
        rule = tree.func.id
    else:
        raise ValueError("an expression of a size that is not arithmetic")
    if rule == "Integer":
        return parts[0]
    if rule == "Add":
        return sum(parts)
    if rule == "Sub":
        return parts[0] - parts[1]
    if rule == "Mul":
        return whole(parts[0] * parts[1]) if len(parts) == 2 else whole(parts[0] * parts[1] * parts[2])
    if rule == "FloorDiv" and parts[1]:
        return parts[0] // parts[1]
    raise ValueError(f"an expression of a size that calls {rule!r}")
