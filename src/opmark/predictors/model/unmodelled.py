"""Operators of a network that no measurement covers, and the doubt that they add to its interval.

An operator without a kind is predicted as a copy of its bytes, which is the least that it can take; one whose kind was
measured for other operations only, as one of those. `benchmarks/strangers.py` measures how much longer both can take.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of, work_of
from opmark.models.coverage import is_hidden, operator_of
from opmark.predictors.inputs.arrays import Flags, Floats, Integers

# Nineteen in twenty operators without a kind take less than this many copies of their bytes; a median takes 250.
MOST_COPIES = 300.0
# Matrix work repeats its bytes as often as the matrices are wide: an LSTM took 350 copies, and it can be wider.
MOST_MATRIX_COPIES = 1000.0
# An operation that was not measured, beside others of its kind: a standard deviation took 54 times as long.
MOST_RELATIVES = 60.0
# Operations that move bytes only differ less (a pixel shuffle: 11), and matrix work of known FLOPs least.
_MOST_MOVEMENTS, _MOST_MATRIX_RELATIVES = 15.0, 8.0
# Bytes that a cache or a fused neighbour already holds are not moved again.
_LEAST_COPIES = 0.5
_MOST_NAMED = 5
_COPIES = (MOST_COPIES, MOST_MATRIX_COPIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmodelledOperator:
    """An operator that no measurement covers, all its calls in one network together.

    `share` is its part of the predicted time, in [0, 1]; `matrix` marks matrix work; `at_most` is the largest likely
    ratio of its true time to the predicted one.
    """

    operator: str
    calls: int
    share: float
    matrix: bool
    at_most: float


def largest_ratios(kernels: Sequence[Kernel], by_bytes: Flags, unseen: Flags) -> Floats:
    """The largest likely ratio of true to predicted time of each kernel; 1 for kernels that measurements cover.

    `by_bytes` marks predictions from bytes alone, `unseen` those of operations that were not measured.
    """
    matrix = np.array([kind_of(kernel).matrix for kernel in kernels], dtype=bool)
    moves = np.array([work_of(kernel).flops == 0 for kernel in kernels], dtype=bool)
    copies = np.where(matrix, MOST_MATRIX_COPIES, MOST_COPIES)
    relatives = np.where(matrix, _MOST_MATRIX_RELATIVES, np.where(moves, _MOST_MOVEMENTS, MOST_RELATIVES))
    ratios: Floats = np.where(by_bytes, copies, np.where(unseen, relatives, 1.0))
    return ratios


def unmodelled_operators(
    graph: Graph, of_node: Integers, ratios: Floats, each_ns: Floats, total_ns: float
) -> tuple[UnmodelledOperator, ...]:
    """The operators of `graph` that no measurement covers, those with most time first.

    `of_node` gives the kernel of each node, -1 for a free one; `ratios` are the `largest_ratios` of the kernels and
    `each_ns` the times of one call.
    """
    calls: dict[tuple[str, float], int] = {}
    spent: dict[tuple[str, float], float] = {}
    for node, index in zip(graph.nodes, of_node, strict=True):
        if index >= 0 and ratios[index] > 1:
            key = operator_of(node), MOST_MATRIX_COPIES if is_hidden(node) else float(ratios[index])
            calls[key] = calls.get(key, 0) + 1
            spent[key] = spent.get(key, 0.0) + float(each_ns[index])
    return tuple(
        UnmodelledOperator(
            operator=operator,
            calls=calls[operator, ratio],
            share=spent[operator, ratio] / total_ns if total_ns > 0 else 0.0,
            matrix=ratio == MOST_MATRIX_COPIES,
            at_most=ratio,
        )
        for operator, ratio in sorted(spent, key=lambda key: (-spent[key], key))
    )


def widened(
    low_ns: float, high_ns: float, total_ns: float, unmodelled: Sequence[UnmodelledOperator]
) -> tuple[float, float]:
    """The interval from `low_ns` to `high_ns`, wider by what the operators may take less and more than predicted."""
    more = sum(one.share * (one.at_most - 1) for one in unmodelled)
    less = sum(one.share * (1 - _LEAST_COPIES) for one in unmodelled)
    return max(0.0, low_ns - less * total_ns), high_ns + more * total_ns


def warnings_about(unmodelled: Iterable[UnmodelledOperator]) -> tuple[str, ...]:
    """A sentence for each ratio: its operators, and how far off their times can be."""
    operators = tuple(unmodelled)
    sentences = []
    for ratio in sorted({one.at_most for one in operators}, reverse=True):
        chosen = [one for one in operators if one.at_most == ratio]
        named = ", ".join(one.operator for one in chosen[:_MOST_NAMED])
        more = f" and {len(chosen) - _MOST_NAMED} more" if len(chosen) > _MOST_NAMED else ""
        noun = "the matrix work of " if chosen[0].matrix else ""
        basis = "the bytes it moves" if ratio in _COPIES else "other operations of its kind"
        sentences.append(
            f"no measurement covers {noun}{named}{more}; its time is guessed from {basis} and can be {ratio:.0f} times "
            "as long, which the interval includes"
        )
    return tuple(sentences)
