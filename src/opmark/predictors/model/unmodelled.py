"""Operators of a network that no measurement covers, and the doubt that they add to its interval.

An operator without a kind is predicted as a copy of its bytes, which is the least that it can take; one whose kind was
measured for other operations only, or for sizes far from its own, as one of those. `benchmarks/strangers.py` measures
how far off they can be.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of, work_of
from opmark.models.coverage import is_hidden, operator_of
from opmark.predictors.inputs.arrays import Flags, Floats, Integers
from opmark.predictors.model.measured_kernels import FAR, FAR_AT, MEASURED, OTHER_TYPE, UNSEEN

# Nineteen in twenty operators without a kind take less than this many copies of their bytes; a median takes 250.
MOST_COPIES = 300.0
# Matrix work repeats its bytes as often as the matrices are wide: an LSTM took 350 copies, and it can be wider.
MOST_MATRIX_COPIES = 1000.0
# An operation that was not measured, beside others of its kind: a sort took 147 times as long, a standard deviation 54.
MOST_RELATIVES = 200.0
# Operations that move bytes only differ less (a pixel shuffle: 11), and matrix work of known FLOPs least.
_MOST_MOVEMENTS, _MOST_MATRIX_RELATIVES = 15.0, 8.0
# An operation far from all that was measured of it: norms of rows that lie together took a thirteenth of what rows that
# lie apart suggest. In another float type, elements took at most 2.3 times as long; running sums of floats took 6.4
# times as long as those of truth values suggest.
MOST_FAR = 15.0
# Bytes that a cache or a fused neighbour already holds are not moved again.
_LEAST_COPIES = 0.5
_MOST_NAMED = 5
# An operator that can add less than this share of the predicted time is not worth a sentence.
_NAMED_FROM = 0.01


class Basis(StrEnum):
    """The measurements that the time of an operator is guessed from."""

    BYTES = "bytes"
    OPERATIONS = "operations"
    TYPES = "types"
    SIZES = "sizes"


_BASES = {MEASURED: None, FAR: Basis.SIZES, OTHER_TYPE: Basis.TYPES, UNSEEN: Basis.OPERATIONS}
_SENTENCES = {
    Basis.BYTES: "no measurement covers {}; its time is guessed from the bytes it moves and can be {:.0f} times as "
    "long",
    Basis.OPERATIONS: "no measurement covers {}; its time is guessed from other operations of its kind and can be "
    "{:.0f} times as long, or as short",
    Basis.TYPES: "no measurement covers {} in this element type; its time is guessed from other types and can be "
    "{:.0f} times as long, or as short",
    Basis.SIZES: f"a size of {{}} differs from all measured ones by a factor of more than {FAR_AT + 1:.0f}; its time "
    "can be {:.0f} times as long, or as short",
}


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
    basis: Basis = Basis.BYTES

    @property
    def at_least(self) -> float:
        """The smallest likely ratio of its true time to the predicted one."""
        return _LEAST_COPIES if self.basis is Basis.BYTES else 1 / self.at_most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doubts:
    """The bases of kernels (None where measurements cover them), and the likely ratios of true to predicted time."""

    bases: tuple[Basis | None, ...]
    at_most: Floats
    at_least: Floats


def doubts_about(kernels: Sequence[Kernel], by_bytes: Flags, evidence: Integers) -> Doubts:
    """The doubts about each kernel.

    `by_bytes` marks predictions from bytes alone; `evidence` says what was measured of the operation of each.
    """
    matrix = np.array([kind_of(kernel).matrix for kernel in kernels], dtype=bool)
    moves = np.array([work_of(kernel).flops == 0 for kernel in kernels], dtype=bool)
    copies = np.where(matrix, MOST_MATRIX_COPIES, MOST_COPIES)
    relatives = np.where(matrix, _MOST_MATRIX_RELATIVES, np.where(moves, _MOST_MOVEMENTS, MOST_RELATIVES))
    bases = tuple(
        Basis.BYTES if bytes_only else _BASES[int(found)] for bytes_only, found in zip(by_bytes, evidence, strict=True)
    )
    of_relatives = np.select(
        [evidence == UNSEEN, evidence != MEASURED], [relatives, np.minimum(relatives, MOST_FAR)], 1.0
    )
    return Doubts(
        bases=bases,
        at_most=np.where(by_bytes, copies, of_relatives),
        at_least=np.where(by_bytes, _LEAST_COPIES, 1 / of_relatives),
    )


def unmodelled_operators(
    graph: Graph, of_node: Integers, doubts: Doubts, each_ns: Floats, total_ns: float
) -> tuple[UnmodelledOperator, ...]:
    """The operators of `graph` that no measurement covers, those with most time first.

    `of_node` gives the kernel of each node, -1 for a free one; `doubts` are those about the kernels and `each_ns` the
    times of one call.
    """
    calls: dict[tuple[str, float, Basis], int] = {}
    spent: dict[tuple[str, float, Basis], float] = {}
    for node, index in zip(graph.nodes, of_node, strict=True):
        basis = doubts.bases[index] if index >= 0 else None
        if basis is not None:
            key = operator_of(node), MOST_MATRIX_COPIES if is_hidden(node) else float(doubts.at_most[index]), basis
            calls[key] = calls.get(key, 0) + 1
            spent[key] = spent.get(key, 0.0) + float(each_ns[index])
    return tuple(
        UnmodelledOperator(
            operator=operator,
            calls=calls[operator, ratio, basis],
            share=spent[operator, ratio, basis] / total_ns if total_ns > 0 else 0.0,
            matrix=ratio == MOST_MATRIX_COPIES,
            at_most=ratio,
            basis=basis,
        )
        for operator, ratio, basis in sorted(spent, key=lambda key: (-spent[key], key))
    )


def widened(
    low_ns: float, high_ns: float, total_ns: float, unmodelled: Sequence[UnmodelledOperator]
) -> tuple[float, float]:
    """The interval from `low_ns` to `high_ns`, wider by what the operators may take less and more than predicted."""
    more = sum(one.share * (one.at_most - 1) for one in unmodelled)
    less = sum(one.share * (1 - one.at_least) for one in unmodelled)
    return max(0.0, low_ns - less * total_ns), high_ns + more * total_ns


def warnings_about(unmodelled: Iterable[UnmodelledOperator]) -> tuple[str, ...]:
    """A sentence for each basis and ratio: its operators that matter, and how far off their times can be."""
    operators = tuple(one for one in unmodelled if one.share * (one.at_most - 1) >= _NAMED_FROM)
    sentences = []
    for ratio, basis in sorted({(one.at_most, one.basis) for one in operators}, key=lambda of: (-of[0], of[1])):
        chosen = [one for one in operators if (one.at_most, one.basis) == (ratio, basis)]
        named = ", ".join(one.operator for one in chosen[:_MOST_NAMED])
        more = f" and {len(chosen) - _MOST_NAMED} more" if len(chosen) > _MOST_NAMED else ""
        noun = "the matrix work of " if chosen[0].matrix else ""
        sentences.append(f"{_SENTENCES[basis].format(f'{noun}{named}{more}', ratio)}, which the interval includes")
    return tuple(sentences)
