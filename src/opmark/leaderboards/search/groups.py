"""Groups, the units of placement: colocation classes contracted to one item each."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """G groups in the topological order of their first units.

    `of_unit` is the group of each unit; `run_ns` (G×D) sums the times of a group's units, -1 if a device cannot run all
    of them. `weight_bytes` counts every weight of a group once, `size_bytes` also its outputs and workspace.
    """

    of_unit: Integers
    members: tuple[tuple[int, ...], ...]
    run_ns: Integers
    weight_bytes: Integers
    size_bytes: Integers

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.members)

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """G×D: true if the device can run the group."""
        return self.run_ns >= 0

    def spread(self, device_of_group: npt.ArrayLike) -> Integers:
        """A device per group (the last axis) as a device per unit."""
        spread: Integers = np.asarray(device_of_group, dtype=np.int64)[..., self.of_unit]
        return np.ascontiguousarray(spread)


def groups_of(problem: Problem) -> Groups:
    """The groups of `problem`. Raises `PlacementError` if no device can run all units of a class."""
    # Kept with the arrays that the groups are computed from, like a cached property.
    known: Groups | None = problem.arrays.__dict__.get("groups")
    if known is None:
        known = problem.arrays.__dict__["groups"] = _contracted(problem)
    return known


def summed_run_ns(run_ns: Integers, label: Integers, count: int) -> Integers:
    """count×D: the rows of `run_ns` summed by label, -1 if a device cannot run all rows of a label."""
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    rows = run_ns[order]
    total = np.zeros((count, run_ns.shape[1]), dtype=np.int64)
    total[label[order][first]] = np.where(
        np.minimum.reduceat(rows, first) < 0, -1, np.add.reduceat(np.maximum(rows, 0), first)
    )
    return total


def whole_graph_ns(run_ns: Integers) -> npt.NDArray[np.float64]:
    """Per device, the sum of all rows; infinite if the device cannot run one of them."""
    return np.asarray(np.where(run_ns < 0, np.inf, run_ns).sum(axis=0), dtype=np.float64)


def _contracted(problem: Problem) -> Groups:
    arrays = problem.arrays
    of_unit = _numbered(arrays)
    run_ns = summed_run_ns(arrays.run_ns, of_unit, int(of_unit.max()) + 1)
    ends = np.cumsum(np.bincount(of_unit)).tolist()
    by_group = np.argsort(of_unit, kind="stable").tolist()
    members = tuple(tuple(by_group[first:last]) for first, last in pairwise([0, *ends]))
    for group in np.flatnonzero((run_ns < 0).all(axis=1)).tolist():
        names = ", ".join(problem.units[unit].name for unit in members[group][:3])
        raise PlacementError(f"no device can run all units of the class that holds {names}")
    weight = _weight_bytes(arrays, of_unit, len(members))
    size = weight.copy()
    np.add.at(size, of_unit, arrays.workspace_bytes)
    produced = arrays.tensor_producer >= 0
    np.add.at(size, of_unit[arrays.tensor_producer[produced]], arrays.tensor_bytes[produced])
    return Groups(of_unit=of_unit, members=members, run_ns=run_ns, weight_bytes=weight, size_bytes=size)


def _numbered(arrays: ProblemArrays) -> Integers:
    """The group of each unit: a class, or the unit by itself, numbered where the topological order meets it first."""
    classes = arrays.colocation[arrays.topological]
    key = np.where(classes >= 0, classes, arrays.units + arrays.topological)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    of_unit = np.empty(arrays.units, dtype=np.int64)
    of_unit[arrays.topological] = number[place]
    return of_unit


def _weight_bytes(arrays: ProblemArrays, of_unit: Integers, count: int) -> Integers:
    """The bytes of the weights of each of `count` groups, every weight of a group once."""
    weights = max(1, len(arrays.weight_bytes))
    used = np.unique(np.repeat(of_unit, np.diff(arrays.weight_offsets)) * weights + arrays.weight_ids)
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, used // weights, arrays.weight_bytes[used % weights])
    return found
