"""Checks of a LightGBM text model before LightGBM reads it: it trusts every index, and a wrong one crashes the process.

The text must have the layout of `compact_trees`, which leaves nothing to guess. An ensemble has up to 1,500 trees, so
one expression takes all of them apart, and their numbers are checked together as arrays.
"""

import re
import warnings
from collections.abc import Sequence

import numpy as np

from opmark.predictors.inputs.arrays import Integers

END = "end of trees"
# A text straight from LightGBM goes on with its parameters.
COMPACT_END = f"\n\n{END}\n"
# The lines of a tree that predictions need, in LightGBM's order, and the characters of each. The others describe
# training: gains, weights and counts of nodes. `1e999` and NaN cannot be written: an exponent is negative.
_WHOLE, _DECIMAL = b"0123456789- ", b"0123456789-. "
LINES = {
    "num_leaves": _WHOLE,
    "num_cat": _WHOLE,
    "split_feature": _WHOLE,
    "threshold": _DECIMAL,
    "decision_type": _WHOLE,
    "left_child": _WHOLE,
    "right_child": _WHOLE,
    "leaf_value": _DECIMAL,
}
CATEGORY_LINES = {"cat_boundaries": _WHOLE, "cat_threshold": _WHOLE}
_TREE = re.compile(
    r"\n\nTree=(?P<number>[0-9]+)"
    + "".join(rf"\n{name}=(?P<{name}>[^\n]*)" for name in LINES)
    + "(?:" + "".join(rf"\n{name}=(?P<{name}>[^\n]*)" for name in CATEGORY_LINES) + ")?"
)  # fmt: skip
_HEADER = re.compile(
    r"tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=(?P<last>[0-9]{1,4})"
    r"\nobjective=regression(?P<average>\naverage_output)?"
    r"\nfeature_names=(?P<names>[\x21-\x7e ]+)\nfeature_infos=(?P<infos>[\x21-\x7e ]+)"
)
_MOST_LEAVES = 2**17
_NEW_LINE, _SPACE = b"\n "
# The first bit of a decision marks a split by categories, the next three say where missing values go.
_CATEGORICAL, _MOST_DECISION = 1, 15


def check_trees(text: str) -> None:
    """Refuse a text in the layout of `compact_trees` that LightGBM could not follow.

    Raises `ValueError` for another layout, an index out of range, a split or leaf that is reached twice or never, a
    bitset of categories out of range, and a threshold or leaf that is no finite number.
    """
    head, first, _ = text.partition("\n\nTree=0\n")
    features = _features(head)
    body = text[len(head) : -len(COMPACT_END)]
    trees = _TREE.findall(body)
    # what an expression skipped would be missing from the sum of the lengths of its parts
    if not first or not text.endswith(COMPACT_END) or _length(trees) != len(body):
        raise ValueError("its trees have another layout")
    numbers, *columns = zip(*trees, strict=True)
    if list(map(int, numbers)) != list(range(len(trees))):
        raise ValueError("its trees are out of order")
    names = (*LINES, *CATEGORY_LINES)
    _check(dict(zip(names, columns, strict=True)), features)


_FIXED = len("\n\nTree=") + sum(len(f"\n{name}=") for name in LINES)
_FIXED_CATEGORIES = sum(len(f"\n{name}=") for name in CATEGORY_LINES)


def _length(trees: Sequence[Sequence[str]]) -> int:
    """The length of a text of `trees`, as they were found in it."""
    with_categories = sum(1 for tree in trees if tree[-1])
    return _FIXED * len(trees) + _FIXED_CATEGORIES * with_categories + sum(len("".join(tree)) for tree in trees)


def _features(head: str) -> int:
    """The number of features that a header describes."""
    found = _HEADER.fullmatch(head)
    count = int(found["last"]) + 1 if found else 0
    if not found or {len(found[name].split(" ")) for name in ("names", "infos")} != {count}:
        raise ValueError("its header does not describe a regression on its features")
    return count


def _check(lines: dict[str, Sequence[str]], features: int) -> None:
    leaves = _small(lines["num_leaves"], "num_leaves", _MOST_LEAVES)
    categories = _small(lines["num_cat"], "num_cat", _MOST_LEAVES)
    if leaves.min() < 1:
        raise ValueError("num_leaves: a tree without a leaf")
    nodes = leaves - 1
    # the signs of a decimal are checked, not its value: LightGBM refuses what is no number
    for name, counts in (("leaf_value", leaves), ("threshold", nodes)):
        _joined(lines[name], name, counts)
    feature = _integers(lines["split_feature"], "split_feature", nodes)
    _refuse((feature < 0) | (feature >= features), "split_feature")
    decision = _integers(lines["decision_type"], "decision_type", nodes)
    _refuse((decision < 0) | (decision > _MOST_DECISION), "decision_type")
    left, right = (_integers(lines[name], name, nodes) for name in ("left_child", "right_child"))
    _check_children(leaves, left, right)
    tree = np.repeat(np.arange(len(leaves)), nodes)
    by_category = (decision & _CATEGORICAL) > 0
    _refuse(by_category & (categories[tree] == 0), "decision_type: categories that its tree does not have")
    _check_categories(lines, categories, nodes, by_category)


def _check_children(leaves: Integers, left: Integers, right: Integers) -> None:
    """Each split but the first has one parent, which comes before it, and each leaf has one parent."""
    nodes = leaves - 1
    first_node, first_leaf = _starts(nodes), _starts(leaves)
    # numbers that are unique over all trees: splits from 0, leaves after the last split
    parent = np.arange(int(nodes.sum()))
    offset = np.repeat(first_node, nodes)
    limits = np.repeat(leaves, nodes)
    seen = np.zeros(len(parent) + int(leaves.sum()), dtype=np.int64)
    for children in (left, right):
        is_leaf = children < 0
        number = np.where(is_leaf, ~children, children)
        _refuse(number >= limits - ~is_leaf, "left_child or right_child: out of range")
        _refuse(~is_leaf & (children + offset <= parent), "left_child or right_child: a split after its own child")
        number += np.where(is_leaf, len(parent) + np.repeat(first_leaf, nodes), offset)
        seen += np.bincount(number, minlength=len(seen))
    expected = np.ones(len(seen), dtype=np.int64)
    # nothing leads to the root, nor to the leaf of a tree that has no split
    expected[first_node[nodes > 0]] = 0
    expected[len(parent) + first_leaf[nodes == 0]] = 0
    _refuse(seen != expected, "left_child or right_child: a split or leaf that is reached twice or never")


def _check_categories(
    lines: dict[str, Sequence[str]], categories: Integers, nodes: Integers, by_category: np.ndarray
) -> None:
    """A split by categories names a bitset of its tree, and the bitsets lie one after another."""
    chosen = np.flatnonzero(categories)
    if not len(chosen):
        return
    some = {name: [lines[name][tree] for tree in chosen.tolist()] for name in ("threshold", *CATEGORY_LINES)}
    counts = categories[chosen]
    inside = np.repeat(np.isin(np.arange(len(nodes)), chosen), nodes)
    threshold = _parsed(" ".join(filter(None, some["threshold"])), "threshold", np.dtype(np.float64))
    if len(threshold) != int(inside.sum()):
        raise ValueError("threshold: not numbers")
    wanted = threshold[by_category[inside]]
    limits = np.repeat(counts, nodes[chosen])[by_category[inside]]
    _refuse((wanted < 0) | (wanted >= limits) | (wanted != np.floor(wanted)), "threshold: no bitset of categories")
    bounds = _integers(some["cat_boundaries"], "cat_boundaries", counts + 1)
    starts = _starts(counts + 1)
    steps = np.diff(bounds)
    # from the end of one tree to the start of the next is no step
    steps[starts[1:] - 1] = 1
    _refuse((bounds[starts] != 0) | (bounds[starts + counts] > _MOST_LEAVES), "cat_boundaries")
    _refuse((steps < 1) | (steps > _MOST_LEAVES), "cat_boundaries")
    bits = _integers(some["cat_threshold"], "cat_threshold", bounds[starts + counts])
    _refuse((bits < 0) | (bits >= 2**32), "cat_threshold")


def _small(texts: Sequence[str], name: str, most: int) -> Integers:
    """The number of each tree."""
    found = _integers(texts, name, np.ones(len(texts), dtype=np.int64))
    _refuse((found < 0) | (found > most), name)
    return found


def _integers(texts: Sequence[str], name: str, counts: Integers) -> Integers:
    joined = _joined(texts, name, counts)
    if not joined.strip():
        # A forest of trees without splits says nothing about them.
        values: Integers = np.zeros(0, dtype=np.int64)
    else:
        values = _parsed(joined, name, np.dtype(np.int64))
    if len(values) != int(counts.sum()):
        raise ValueError(f"{name}: not whole numbers")
    return values


def _joined(texts: Sequence[str], name: str, counts: Integers) -> str:
    """The numbers of one line of all trees, `counts` of them in each.

    Between two numbers stands one space, so that numpy, LightGBM and this count agree.
    """
    joined = "\n".join(texts)
    signs = {**LINES, **CATEGORY_LINES}[name]
    content = joined.encode()
    others = content.translate(None, signs + b"\n")
    plain = not others or (signs is _DECIMAL and others.strip(b"e") == b"" and content.count(b"e-") == len(others))
    written = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(written == _NEW_LINE), len(written))
    spaces = np.searchsorted(np.flatnonzero(written == _SPACE), ends)
    found = np.diff(spaces, prepend=0) + (np.diff(ends, prepend=-1) > 1)
    if not plain or not np.array_equal(found, counts) or "  " in joined:
        raise ValueError(f"{name}: not the numbers that its trees need")
    return joined


def _parsed(joined: str, name: str, dtype: "np.dtype[np.generic]") -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(joined, dtype=dtype, sep=" ")
        except DeprecationWarning:
            raise ValueError(f"{name}: not numbers") from None


def _refuse(wrong: np.ndarray, what: str) -> None:
    if wrong.any():
        raise ValueError(f"{what}: wrong in {int(wrong.sum())} places")


def _starts(counts: Integers) -> Integers:
    """The first position of each tree where `counts` numbers of each lie one after another."""
    starts: Integers = np.cumsum(counts) - counts
    return starts
