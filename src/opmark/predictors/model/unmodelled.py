"""Operators of a network that no predictor covers, and the doubt that they add to its interval.

Such an operator is predicted as a copy of its bytes, which is the least that it can take. `benchmarks/strangers.py`
measures how much longer operators take in truth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opmark.core.kernels.graph import Graph
from opmark.kinds import kind_of
from opmark.models.coverage import is_hidden, operator_of
from opmark.predictors.inputs.arrays import Flags, Floats, Integers

# Nineteen in twenty operators without a kind take less than this many copies of their bytes.
MOST_COPIES = 30.0
# Matrix work repeats its bytes as often as the matrices are wide.
MOST_MATRIX_COPIES = 300.0
# Bytes that a cache or a fused neighbour already holds are not moved again.
_LEAST_COPIES = 0.5
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmodelledOperator:
    """An operator predicted from its bytes alone, all its calls in one network together.

    `share` is its part of the predicted time, in [0, 1]; `matrix` marks matrix work, which takes far longer.
    """

    operator: str
    calls: int
    share: float
    matrix: bool

    @property
    def most_copies(self) -> float:
        """The largest likely ratio of its true time to the predicted one."""
        return MOST_MATRIX_COPIES if self.matrix else MOST_COPIES


def unmodelled_operators(
    graph: Graph, of_node: Integers, by_bytes: Flags, each_ns: Floats, total_ns: float
) -> tuple[UnmodelledOperator, ...]:
    """The operators of `graph` whose kernels are marked `by_bytes`, those with most time first.

    `of_node` gives the kernel of each node, -1 for a free one; `each_ns` is the time of one call of each kernel.
    """
    calls: dict[tuple[str, bool], int] = {}
    spent: dict[tuple[str, bool], float] = {}
    for node, index in zip(graph.nodes, of_node, strict=True):
        if index >= 0 and by_bytes[index]:
            key = operator_of(node), is_hidden(node) or kind_of(node.kernel).matrix
            calls[key] = calls.get(key, 0) + 1
            spent[key] = spent.get(key, 0.0) + float(each_ns[index])
    order = sorted(spent, key=lambda key: (-spent[key], key))
    return tuple(
        UnmodelledOperator(
            operator=operator,
            calls=calls[operator, matrix],
            share=spent[operator, matrix] / total_ns if total_ns > 0 else 0.0,
            matrix=matrix,
        )
        for operator, matrix in order
    )


def widened(
    low_ns: float, high_ns: float, total_ns: float, unmodelled: Sequence[UnmodelledOperator]
) -> tuple[float, float]:
    """The interval from `low_ns` to `high_ns`, wider by what the operators may take less and more than predicted."""
    more = sum(one.share * (one.most_copies - 1) for one in unmodelled)
    less = sum(one.share * (1 - _LEAST_COPIES) for one in unmodelled)
    return max(0.0, low_ns - less * total_ns), high_ns + more * total_ns


def warnings_about(unmodelled: Iterable[UnmodelledOperator]) -> tuple[str, ...]:
    """A sentence about the matrix work among the operators, and one about the others."""
    sentences = []
    operators = tuple(unmodelled)
    for matrix, most, noun in ((True, MOST_MATRIX_COPIES, "matrix work"), (False, MOST_COPIES, "work")):
        chosen = [one for one in operators if one.matrix == matrix]
        if chosen:
            named = ", ".join(one.operator for one in chosen[:_MOST_NAMED])
            more = f" and {len(chosen) - _MOST_NAMED} more" if len(chosen) > _MOST_NAMED else ""
            sentences.append(
                f"no predictor knows the {noun} of {named}{more}; it counts as the bytes it moves, but can take up to "
                f"{most:.0f} times as long, and the interval says so"
            )
    return tuple(sentences)
