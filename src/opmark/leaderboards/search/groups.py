"""Colocation classes contracted: what a placer may decide about."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """G groups in the topological order of their first units.

    `of_unit` is the group of each unit; `run_ns` (G×D) sums its units, -1 where the device cannot run all of them;
    `weight_bytes` counts every weight of the group once, `size_bytes` everything its units hold: weights, outputs and
    workspace.
    """

    of_unit: Integers
    members: tuple[tuple[int, ...], ...]
    run_ns: Integers
    weight_bytes: Integers
    size_bytes: Integers

    @property
    def count(self) -> int:
        """How many groups."""
        return len(self.members)

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """G×D: which devices can run a group."""
        return self.run_ns >= 0

    def spread(self, device_of_group: npt.ArrayLike) -> Integers:
        """A device per group (the last axis) as a device per unit."""
        spread: Integers = np.asarray(device_of_group, dtype=np.int64)[..., self.of_unit]
        return np.ascontiguousarray(spread)


def groups_of(problem: Problem) -> Groups:
    """The groups of `problem`. Raises `PlacementError` if no device can run all units of a class."""
    # kept with the arrays that they were made from, as cached properties are
    known: Groups | None = problem.arrays.__dict__.get("groups")
    if known is None:
        known = problem.arrays.__dict__["groups"] = _contracted(problem)
    return known


def _contracted(problem: Problem) -> Groups:
    arrays = problem.arrays
    classes = arrays.colocation.tolist()
    number: dict[int, int] = {}
    of_unit = np.empty(arrays.units, dtype=np.int64)
    for unit in arrays.topological.tolist():
        key = classes[unit] if classes[unit] >= 0 else -1 - unit
        of_unit[unit] = number.setdefault(key, len(number))
    table = arrays.run_ns
    run_ns = np.zeros((len(number), arrays.devices), dtype=np.int64)
    np.add.at(run_ns, of_unit, np.where(table < 0, 0, table))
    unable = np.zeros_like(run_ns, dtype=bool)
    np.logical_or.at(unable, of_unit, table < 0)
    run_ns[unable] = -1
    members: list[list[int]] = [[] for _ in number]
    for unit, group in enumerate(of_unit.tolist()):
        members[group].append(unit)
    for group in np.flatnonzero(unable.all(axis=1)).tolist():
        names = ", ".join(problem.units[unit].name for unit in members[group][:3])
        raise PlacementError(f"no device can run all units of the class that holds {names}")
    weight = np.array([_weight_bytes(problem, row) for row in members], dtype=np.int64)
    size = weight.copy()
    np.add.at(size, of_unit, arrays.workspace_bytes)
    made = arrays.tensor_producer >= 0
    np.add.at(size, of_unit[arrays.tensor_producer[made]], arrays.tensor_bytes[made])
    return Groups(
        of_unit=of_unit, members=tuple(map(tuple, members)), run_ns=run_ns, weight_bytes=weight, size_bytes=size
    )


def _weight_bytes(problem: Problem, members: list[int]) -> int:
    names = {name for unit in members for name in problem.units[unit].weights}
    return sum(problem.held_bytes[name] for name in names)
