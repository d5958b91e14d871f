"""LightGBM's text of a model without what no prediction needs: statistics of training, parameters, most digits."""

# Everything else in a tree's text says how it was trained: gains, weights and counts of leaves and inner nodes.
_KEPT = frozenset(
    {
        "num_leaves",
        "num_cat",
        "split_feature",
        "threshold",
        "decision_type",
        "left_child",
        "right_child",
        "leaf_value",
        "cat_boundaries",
        "cat_threshold",
    }
)
# LightGBM refuses a model without it, and reads it only to draw and to explain.
_UNKNOWN_RANGE = "none"
# Up to 1,500 leaves are added up: half of the eighth decimal of each is mostly below 1e-7 in the sum.
_LEAF_DECIMALS = 8
# A threshold lies between two logarithms of whole numbers: those of 10^10 and its successor share ten digits.
_THRESHOLD_DIGITS = 12
_END = "end of trees"


def compact_trees(text: str) -> str:
    """A third of `text`, as LightGBM reads it again; nothing else about the trees changes.

    Predict with what is read from the result, not with the booster that `text` came from: leaf values are rounded to
    eight decimals. Raises `ValueError` where `text` is no LightGBM text model, or one of linear trees.
    """
    head, first, rest = text.partition("\nTree=0\n")
    trees, end, _ = rest.partition(f"\n{_END}")
    if not (first and end):
        raise ValueError("not a LightGBM text model with a tree")
    lines = [line for line in map(_header, head.split("\n")) if line is not None]
    lines += ["", "Tree=0"]
    for line in trees.split("\n"):
        name, equals, value = line.partition("=")
        if name == "is_linear" and value != "0":
            raise ValueError("linear trees cannot be compacted")
        if name == "Tree":
            lines += ["", line]
        elif equals and name in _KEPT:
            lines.append(f"{name}={_rounded(name, value)}")
    return "\n".join([*lines, "", _END, ""])


def _header(line: str) -> str | None:
    name, _, value = line.partition("=")
    if name == "feature_infos":
        return f"{name}={' '.join([_UNKNOWN_RANGE] * len(value.split()))}"
    # the sizes of the trees' texts, which are others now; without them LightGBM looks for the trees itself
    return None if name == "tree_sizes" or not line else line


def _rounded(name: str, value: str) -> str:
    if name == "leaf_value":
        return " ".join(_decimal(float(number)) for number in value.split())
    if name == "threshold":
        return " ".join(f"{float(number):.{_THRESHOLD_DIGITS}g}" for number in value.split())
    return value


def _decimal(number: float) -> str:
    return f"{number:.{_LEAF_DECIMALS}f}".rstrip("0").rstrip(".")
