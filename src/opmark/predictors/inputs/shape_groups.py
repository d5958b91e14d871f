"""Shape groups: families of similar shapes that are held out together."""

from collections.abc import Sequence

import numpy as np

from opmark.core.canonical import content_id
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of
from opmark.predictors.inputs.arrays import Flags, Integers

# One group in this many is held out to judge.
PARTS = 5
_ENOUGH_GROUPS = 5


def shape_groups(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    """Name the shape group of each kernel; the kind comes first, so that groups of two kinds never coincide."""
    groups = []
    for kernel in kernels:
        kind = kind_of(kernel)
        groups.append(f"{kernel.kind}: {kind.shape_group(kind.parse(kernel))}")
    return tuple(groups)


def are_enough(kernels: Sequence[Kernel], least_rows: int) -> bool:
    """True for `least_rows` kernels of five shape groups.

    With fewer groups, siblings of a row would be held out with it rarely, and its error would look small.
    """
    return len(kernels) >= least_rows and len(set(shape_groups(kernels))) >= _ENOUGH_GROUPS


def group_folds(groups: Sequence[str], count: int) -> Integers:
    """Assign a fold in [0, count) to each row; no group lies in two folds, and folds are as even as groups allow.

    With fewer than two groups, rows are dealt out one by one instead.
    """
    sizes: dict[str, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    if len(sizes) < 2:
        return np.arange(len(groups), dtype=np.int64) % max(1, min(count, len(groups)))
    folds = min(count, len(sizes))
    filled = [0] * folds
    fold_of: dict[str, int] = {}
    # the largest groups first; equal ones in the order of their hash, so that their names do not matter
    for group in sorted(sizes, key=lambda name: (-sizes[name], content_id(name))):
        emptiest = filled.index(min(filled))
        fold_of[group] = emptiest
        filled[emptiest] += sizes[group]
    return np.array([fold_of[group] for group in groups], dtype=np.int64)


def held_out_groups(kernels: Sequence[Kernel]) -> Flags:
    """Mark the kernels of one shape group in five; none where all kernels belong to one group."""
    groups = shape_groups(kernels)
    if len(set(groups)) < 2:
        return np.zeros(len(kernels), dtype=bool)
    return np.asarray(group_folds(groups, PARTS) == 0)
