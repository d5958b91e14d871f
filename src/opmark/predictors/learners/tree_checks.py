"""Read a LightGBM text model as arrays, and refuse one that cannot be followed: LightGBM itself would crash on it.

The text must have the layout of `compact_trees`, which leaves nothing to guess. An ensemble has up to 1,500 trees, so
one expression takes all of them apart, and their numbers are checked together as arrays.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic_core import from_json

from opmark.predictors.inputs.arrays import Flags, Floats, Integers

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
# The first bit of a decision marks a split by categories, the second says where missing values go, the others which.
_CATEGORICAL, _MISSING_LEFT, _MISSING_SHIFT, _MOST_DECISION = 1, 2, 2, 15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeArrays:
    """The trees of an ensemble of `columns` columns as arrays; with `average` their mean counts, else their sum.

    `root` has one entry per tree, `leaf_value` one per leaf, all others but `bits` one per split. Splits of all trees
    are numbered from 0 and leaves follow the last split: `root`, `left` and `right` hold such numbers. `missing` says
    which values are missing (0 none, 1 zero, 2 NaN) and `missing_left` where these go. A split by category goes left
    for the codes whose bit is set in its `words` words of `bits`, from `first_word` on.
    """

    columns: int
    average: bool
    root: Integers
    feature: Integers
    threshold: Floats
    left: Integers
    right: Integers
    missing: Integers
    missing_left: Flags
    by_category: Flags
    first_word: Integers
    words: Integers
    bits: Integers
    leaf_value: Floats


def checked_trees(text: str) -> TreeArrays:
    """Read a text in the layout of `compact_trees`; refuse one that LightGBM could not follow.

    Raises `ValueError` for another layout, an index out of range, a split or leaf that is reached twice or never, a
    bitset of categories out of range, and a threshold or leaf that is no finite number.
    """
    head, first, _ = text.partition("\n\nTree=0\n")
    columns, average = _header(head)
    body = text[len(head) : -len(COMPACT_END)]
    trees = _TREE.findall(body)
    # what an expression skipped would be missing from the sum of the lengths of its parts
    if not first or not text.endswith(COMPACT_END) or _length(trees) != len(body):
        raise ValueError("its trees have another layout")
    numbers, *lines = zip(*trees, strict=True)
    if list(map(int, numbers)) != list(range(len(trees))):
        raise ValueError("its trees are out of order")
    return _read(dict(zip((*LINES, *CATEGORY_LINES), lines, strict=True)), columns, average=average)


_FIXED = len("\n\nTree=") + sum(len(f"\n{name}=") for name in LINES)
_FIXED_CATEGORIES = sum(len(f"\n{name}=") for name in CATEGORY_LINES)


def _length(trees: Sequence[Sequence[str]]) -> int:
    """The length of a text of `trees`, as they were found in it."""
    with_categories = sum(1 for tree in trees if tree[-1])
    return _FIXED * len(trees) + _FIXED_CATEGORIES * with_categories + sum(len("".join(tree)) for tree in trees)


def _header(head: str) -> tuple[int, bool]:
    """The number of columns that a header describes, and whether the trees are averaged."""
    found = _HEADER.fullmatch(head)
    count = int(found["last"]) + 1 if found else 0
    if not found or {len(found[name].split(" ")) for name in ("names", "infos")} != {count}:
        raise ValueError("its header does not describe a regression on its features")
    return count, bool(found["average"])


def _read(lines: dict[str, Sequence[str]], columns: int, *, average: bool) -> TreeArrays:
    leaves = _small(lines["num_leaves"], "num_leaves", _MOST_LEAVES)
    categories = _small(lines["num_cat"], "num_cat", _MOST_LEAVES)
    if leaves.min() < 1:
        raise ValueError("num_leaves: a tree without a leaf")
    nodes = leaves - 1
    leaf_value, threshold = _decimals(lines, "leaf_value", leaves), _decimals(lines, "threshold", nodes)
    feature = _integers(lines["split_feature"], "split_feature", nodes)
    _refuse((feature < 0) | (feature >= columns), "split_feature")
    decision = _integers(lines["decision_type"], "decision_type", nodes)
    _refuse((decision < 0) | (decision > _MOST_DECISION), "decision_type")
    children = [_integers(lines[name], name, nodes) for name in ("left_child", "right_child")]
    left, right = _numbered(leaves, children)
    tree = np.repeat(np.arange(len(leaves)), nodes)
    by_category = (decision & _CATEGORICAL) > 0
    _refuse(by_category & (categories[tree] == 0), "decision_type: categories that its tree does not have")
    first_word, words, bits = _bitsets(lines, categories, tree, np.where(by_category, threshold, np.nan))
    return TreeArrays(
        columns=columns,
        average=average,
        root=np.where(nodes > 0, _starts(nodes), len(tree) + _starts(leaves)),
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        missing=decision >> _MISSING_SHIFT,
        missing_left=(decision & _MISSING_LEFT) > 0,
        by_category=by_category,
        first_word=first_word,
        words=words,
        bits=bits,
        leaf_value=leaf_value,
    )


def _numbered(leaves: Integers, children: Sequence[Integers]) -> list[Integers]:
    """The left and the right children in numbers that are unique over all trees: splits from 0, then leaves.

    Raises `ValueError` unless each split but the first has one parent, which comes before it, and each leaf has one.
    """
    nodes = leaves - 1
    first_node, first_leaf = _starts(nodes), _starts(leaves)
    parent = np.arange(int(nodes.sum()))
    offset = np.repeat(first_node, nodes)
    limits = np.repeat(leaves, nodes)
    seen = np.zeros(len(parent) + int(leaves.sum()), dtype=np.int64)
    found = []
    for side in children:
        is_leaf = side < 0
        number = np.where(is_leaf, ~side, side)
        _refuse(number >= limits - ~is_leaf, "left_child or right_child: out of range")
        _refuse(~is_leaf & (side + offset <= parent), "left_child or right_child: a split after its own child")
        number += np.where(is_leaf, len(parent) + np.repeat(first_leaf, nodes), offset)
        seen += np.bincount(number, minlength=len(seen))
        found.append(number)
    expected = np.ones(len(seen), dtype=np.int64)
    # nothing leads to the root, nor to the leaf of a tree that has no split
    expected[first_node[nodes > 0]] = 0
    expected[len(parent) + first_leaf[nodes == 0]] = 0
    _refuse(seen != expected, "left_child or right_child: a split or leaf that is reached twice or never")
    return found


def _bitsets(
    lines: dict[str, Sequence[str]], categories: Integers, tree: Integers, wanted: Floats
) -> tuple[Integers, Integers, Integers]:
    """The first word and the number of words of each split's bitset, and the words of all trees.

    `tree` and `wanted` have the tree of each split and the bitset that it names, NaN for a split by size. The bitsets
    of a tree lie one after another.
    """
    first_word, words = (np.zeros(len(tree), dtype=np.int64) for _ in range(2))
    chosen = np.flatnonzero(categories)
    if not len(chosen):
        return first_word, words, np.zeros(0, dtype=np.int64)
    some = {name: [lines[name][one] for one in chosen.tolist()] for name in CATEGORY_LINES}
    counts = categories[chosen]
    by_category = ~np.isnan(wanted)
    place = np.searchsorted(chosen, tree[by_category])
    number = wanted[by_category]
    _refuse(
        (number < 0) | (number >= counts[place]) | (number != np.floor(number)), "threshold: no bitset of categories"
    )
    bounds = _integers(some["cat_boundaries"], "cat_boundaries", counts + 1)
    starts = _starts(counts + 1)
    steps = np.diff(bounds)
    # from the end of one tree to the start of the next is no step
    steps[starts[1:] - 1] = 1
    _refuse((bounds[starts] != 0) | (bounds[starts + counts] > _MOST_LEAVES), "cat_boundaries")
    _refuse((steps < 1) | (steps > _MOST_LEAVES), "cat_boundaries")
    lengths = bounds[starts + counts]
    bits = _integers(some["cat_threshold"], "cat_threshold", lengths)
    _refuse((bits < 0) | (bits >= 2**32), "cat_threshold")
    bitset = starts[place] + number.astype(np.int64)
    first_word[by_category] = _starts(lengths)[place] + bounds[bitset]
    words[by_category] = bounds[bitset + 1] - bounds[bitset]
    return first_word, words, bits


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
        values = _whole(joined, name)
    if len(values) != int(counts.sum()):
        raise ValueError(f"{name}: not whole numbers")
    return values


def _decimals(lines: dict[str, Sequence[str]], name: str, counts: Integers) -> Floats:
    listed = ",".join(_joined(lines[name], name, counts).split())
    try:
        # four times as fast as numpy, with the same numbers
        values: Floats = np.array(from_json(f"[{listed}]", allow_inf_nan=False), dtype=np.float64)
    except (ValueError, OverflowError):
        raise ValueError(f"{name}: not numbers") from None
    if len(values) != int(counts.sum()) or not np.isfinite(values).all():
        raise ValueError(f"{name}: not finite numbers")
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


def _whole(joined: str, name: str) -> Integers:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(joined, dtype=np.int64, sep=" ")
        except DeprecationWarning:
            raise ValueError(f"{name}: not whole numbers") from None


def _refuse(wrong: np.ndarray, what: str) -> None:
    if wrong.any():
        raise ValueError(f"{what}: wrong in {int(wrong.sum())} places")


def _starts(counts: Integers) -> Integers:
    """The first position of each tree where `counts` numbers of each lie one after another."""
    starts: Integers = np.cumsum(counts) - counts
    return starts
