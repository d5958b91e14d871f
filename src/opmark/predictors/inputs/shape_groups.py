"""Shape groups, and folds of whole groups."""

from collections.abc import Sequence

import numpy as np

from opmark.core.canonical import content_id
from opmark.core.kernel import Kernel
from opmark.kinds import kind_of
from opmark.predictors.inputs.arrays import Integers


def shape_groups(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    """The shape group of each kernel, its kind's name in front so that groups of two kinds never coincide."""
    groups = []
    for kernel in kernels:
        kind = kind_of(kernel)
        groups.append(f"{kernel.kind}: {kind.shape_group(kind.parse(kernel))}")
    return tuple(groups)


def group_folds(groups: Sequence[str], count: int) -> Integers:
    """A fold in [0, count) per row: no group lies in two folds, and folds are as even as whole groups allow.

    With fewer than two groups there is nothing to hold out by group, so rows are dealt out one by one instead.
    """
    sizes: dict[str, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    if len(sizes) < 2:
        return np.arange(len(groups), dtype=np.int64) % max(1, min(count, len(groups)))
    folds = min(count, len(sizes))
    filled = [0] * folds
    fold_of: dict[str, int] = {}
    # the largest groups first; equal ones in the order of their hash, so that names do not decide
    for group in sorted(sizes, key=lambda name: (-sizes[name], content_id(name))):
        emptiest = filled.index(min(filled))
        fold_of[group] = emptiest
        filled[emptiest] += sizes[group]
    return np.array([fold_of[group] for group in groups], dtype=np.int64)
