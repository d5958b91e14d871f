"""Which rows a predictor may learn from and which judge it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.core.registry import unknown_name
from opmark.predictors.inputs.arrays import Flags
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups

# One row in five, or one group in five, judges.
_PARTS = 5
_FRONTIER = 0.1
_HEX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a split may need beside the rows: the kernels of networks no sample came from, as keys by network."""

    network_kernels: Mapping[str, frozenset[str]]


NO_NETWORKS = Context(network_kernels={})
Split = Callable[[Inputs, Context], Flags]


def random(inputs: Inputs, context: Context) -> Flags:
    """One kernel in five, by its key, so that it is the same one in every release."""
    del context
    return np.array([int(kernel.key, _HEX) % _PARTS == 0 for kernel in inputs.kernels], dtype=bool)


def shape_group(inputs: Inputs, context: Context) -> Flags:
    """One shape group in five; nothing where a kind has a single group."""
    del context
    groups = shape_groups(inputs.kernels)
    if len(set(groups)) < 2:
        return np.zeros(len(inputs), dtype=bool)
    return np.asarray(group_folds(groups, _PARTS) == 0)


def frontier(inputs: Inputs, context: Context) -> Flags:
    """The largest tenth by FLOPs and bytes; kernels as large as the smallest of them are among them."""
    del context
    size = np.log1p(inputs.flops) + np.log1p(inputs.moved_bytes)
    if len(size) < 2 or np.ptp(size) == 0:
        return np.zeros(len(inputs), dtype=bool)
    return np.asarray(size >= np.quantile(size, 1 - _FRONTIER))


def real_model(inputs: Inputs, context: Context) -> Flags:
    """Kernels that occur in a network no sample came from."""
    real = frozenset().union(*context.network_kernels.values())
    return np.array([kernel.key in real for kernel in inputs.kernels], dtype=bool)


SPLITS: Mapping[str, Split] = {
    "random": random,
    "shape-group": shape_group,
    "frontier": frontier,
    "real-model": real_model,
}
# Judged by whole networks instead of kernels (`opmark.predictors.judging.scores`).
NETWORKS_UNSEEN = "networks-unseen"
SPLIT_NAMES = (*SPLITS, NETWORKS_UNSEEN)


def split_rows(name: str, inputs: Inputs, context: Context = NO_NETWORKS) -> Flags:
    """True for the rows that judge, False for those to learn from. Raises `UnknownNameError`."""
    if name not in SPLITS:
        raise unknown_name("split", name, SPLIT_NAMES)
    return SPLITS[name](inputs, context)
