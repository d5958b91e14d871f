"""Splits of the rows of a kind into those to learn from and those that judge."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.core.registry import unknown_name
from opmark.predictors.inputs.arrays import Flags
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import PARTS, group_folds, held_out_groups, shape_groups

_FRONTIER = 0.1
_HEX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The keys of the kernels of each network from which no sample was drawn."""

    network_kernels: Mapping[str, frozenset[str]]


NO_NETWORKS = Context(network_kernels={})
Split = Callable[[Inputs, Context], Flags]


def random(inputs: Inputs, context: Context) -> Flags:
    """Select one kernel in five by its key, the same in every release."""
    del context
    return np.array([int(kernel.key, _HEX) % PARTS == 0 for kernel in inputs.kernels], dtype=bool)


def shape_group(inputs: Inputs, context: Context) -> Flags:
    """Select one shape group in five; none of a kind with a single group."""
    del context
    return held_out_groups(inputs.kernels)


def frontier(inputs: Inputs, context: Context) -> Flags:
    """Select the largest tenth by FLOPs and bytes, and kernels as large as the smallest of them."""
    del context
    size = inputs.log_work
    if len(size) < 2 or np.ptp(size) == 0:
        return np.zeros(len(inputs), dtype=bool)
    return np.asarray(size >= np.quantile(size, 1 - _FRONTIER))


def real_model(inputs: Inputs, context: Context) -> Flags:
    """Select the kernels of networks from which no sample was drawn."""
    real = frozenset().union(*context.network_kernels.values())
    return np.array([kernel.key in real for kernel in inputs.kernels], dtype=bool)


SHAPE_GROUP = "shape-group"
SPLITS: Mapping[str, Split] = {
    "random": random,
    SHAPE_GROUP: shape_group,
    "frontier": frontier,
    "real-model": real_model,
}
# Judged by whole networks instead of kernels (`judging.networks`).
NETWORKS_UNSEEN = "networks-unseen"
SPLIT_NAMES = (*SPLITS, NETWORKS_UNSEEN)


def split_rows(name: str, inputs: Inputs, context: Context = NO_NETWORKS) -> Flags:
    """Mark the rows that judge; the others are for learning. Raises `UnknownNameError`."""
    if name not in SPLITS:
        raise unknown_name("split", name, SPLIT_NAMES)
    return SPLITS[name](inputs, context)


def split_folds(name: str, inputs: Inputs, context: Context = NO_NETWORKS) -> list[Flags]:
    """Mark the rows that judge in each fold of a split. Raises `UnknownNameError`.

    Every shape group judges once, in one of five folds: the first fold alone always holds a kind's largest group. The
    other splits have a single fold.
    """
    if name != SHAPE_GROUP:
        return [split_rows(name, inputs, context)]
    groups = shape_groups(inputs.kernels)
    if len(set(groups)) < 2:
        return []
    folds = group_folds(groups, PARTS)
    return [np.asarray(folds == fold) for fold in np.unique(folds)]
