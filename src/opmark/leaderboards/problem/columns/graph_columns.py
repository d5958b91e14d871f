"""The numbers of units and tensors as columns, which compiled code needs, whoever made them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.leaderboards.problem.fields import ProblemFields
from opmark.leaderboards.problem.graph import class_names
from opmark.leaderboards.problem.integers import Integers, integers

_KNOWN = "columns"
# The time of a unit on a type that cannot run it.
CANNOT_RUN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphColumns:
    """Shapes: U units, M tensors, T device types of the cluster, sorted. Times are whole ns.

    `exec_ns` is U×T, -1 if a type cannot run the unit, and `boundary_ns` M×T; both lie flat. `colocation` numbers the
    class of each unit (-1: none). `tensor_home` is the device of a graph input, -1 for every other tensor.
    """

    exec_ns: Integers
    workspace_bytes: Integers
    colocation: Integers
    tensor_bytes: Integers
    tensor_output: Integers
    tensor_home: Integers
    boundary_ns: Integers


def columns_of(problem: ProblemFields) -> GraphColumns:
    """The columns of a problem: those that were read, else made from its units and tensors."""
    known = problem.worked_out.get(_KNOWN)
    return known if isinstance(known, GraphColumns) else _from_objects(problem)


def keep_columns(problem: ProblemFields, columns: GraphColumns) -> None:
    """Let `columns_of` give these columns for a problem."""
    problem.worked_out[_KNOWN] = columns


def _from_objects(problem: ProblemFields) -> GraphColumns:
    units, tensors, types = problem.units, problem.tensors, problem.cluster.types
    numbers = {device.name: number for number, device in enumerate(problem.cluster.devices)}
    class_number: dict[str, int] = {"": -1}
    homes = (
        -1 if tensor.producer else numbers[tensor.home] if tensor.home else numbers[problem.host] for tensor in tensors
    )
    return GraphColumns(
        exec_ns=_by_type([unit.exec_ns for unit in units], types, missing=CANNOT_RUN),
        workspace_bytes=integers(unit.workspace_bytes for unit in units),
        colocation=integers(class_number.setdefault(name, len(class_number) - 1) for name in class_names(problem)),
        tensor_bytes=integers(tensor.size_bytes for tensor in tensors),
        tensor_output=integers(tensor.output for tensor in tensors),
        tensor_home=integers(homes),
        boundary_ns=_by_type([tensor.boundary_ns for tensor in tensors], types, missing=0),
    )


def _by_type(tables: Sequence[Mapping[str, int | float]], types: Sequence[str], *, missing: int) -> Integers:
    """One row per table and one column per type, rounded half-even; flat. Times below 2^53 are exact as floats."""
    found = np.full((len(tables), len(types)), missing, dtype=np.int64)
    if any(tables):
        for column, name in enumerate(types):
            values = np.fromiter((table.get(name, missing) for table in tables), dtype=np.float64, count=len(tables))
            found[:, column] = np.rint(values)
    return found.reshape(-1)
