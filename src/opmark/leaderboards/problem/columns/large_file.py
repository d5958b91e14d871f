"""Large problem files by columns: Arrow parses all units and tensors at once, and checks are made on whole arrays.

A million objects of units and tensors take longer to make than everything else that a simulation needs, so they are
made from the text when somebody asks for them. Files with anything wrong or unusual are left to the reader of objects,
which says what is wrong.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opmark.core.errors import OpMarkError
from opmark.core.hardware.cluster import LIMIT
from opmark.core.reading import LARGE_BYTES
from opmark.core.schema import convert_json, sealed_text
from opmark.leaderboards.problem.columns.graph_columns import CANNOT_RUN, GraphColumns, keep_columns
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.graph import UNKNOWN, NumberedGraph, cycle_finding, keep_numbered, sorted_rows
from opmark.leaderboards.problem.graph_checks import FACTOR_BELOW, keep_graph_findings
from opmark.leaderboards.problem.integers import Integers, integers
from opmark.leaderboards.problem.problem import Problem

if TYPE_CHECKING:
    import pyarrow

# Smaller files are read as fast by objects.
FROM_BYTES = 2**24
# Arrow parses blocks of so many bytes; a row must fit in one.
_BLOCK_BYTES = 2**22
# As `problem_text` writes them: a line per row, and nowhere else a line that begins like these.
_BEGIN, _END, _BETWEEN = b'\n  "%b": [\n', b"\n  ]", b"},\n"
# Their mapping is one line.
_WEIGHTS = b'\n  "weights": '
# Text that Arrow would read otherwise than JSON says, or that takes more than one way to be read.
_UNUSUAL = (b"\\", b"null", b"NaN")

Floats = npt.NDArray[np.float64]


def load_by_columns(path: Path, *, schema: int, from_bytes: int = FROM_BYTES) -> Problem | None:
    """The sound problem in a large file that OpMark wrote; None for every other file, which `schema.load` reads."""
    try:
        if path.stat().st_size < from_bytes:
            return None
        text = sealed_text(path, schema=schema, at_most=LARGE_BYTES)
        return None if text is None else _problem(text, str(path))
    except (OSError, ValueError, OpMarkError):
        return None


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: millions of new objects hold none, and every collection would walk all of them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Parts(NamedTuple):
    """The rows of units and tensors, the mapping of weights, and the text without them."""

    units: bytes
    tensors: bytes
    weights: bytes
    rest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    rows: tuple[Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensors:
    rows: tuple[Tensor, ...]


def _problem(text: bytes, where: str) -> Problem:
    """Raises `ValueError` or `ContentError` where anything is wrong or unusual."""
    parts = _parts(text)
    problem = convert_json(parts.rest, Problem, where=where)
    _require(not problem.units and not problem.tensors, "rows in two places")
    _require(not problem.cluster.problems(), "the cluster is wrong")
    problem.__dict__["weights"] = _weights(parts.weights)
    types = problem.cluster.types
    units, tensors = _table(parts.units, _unit_types(types)), _table(parts.tensors, _tensor_types(types))
    problem.put_off(
        units=partial(_objects, parts.units, _Units, where), tensors=partial(_objects, parts.tensors, _Tensors, where)
    )
    _check_names(units)
    _check_names(tensors)
    problem.__dict__["unit_names"] = tuple(units["name"].to_numpy(zero_copy_only=False).tolist())
    _require(_only(units, "phase", "forward") and _only(units, "colocation", ""), "phases or classes")
    _require(_only(tensors, "home", ""), "homes")
    _check_intervals(units)
    graph = _graph(problem, units, tensors)
    _check_graph(graph)
    keep_numbered(problem, graph)
    keep_columns(problem, _columns(problem, graph, units, tensors))
    keep_graph_findings(problem, cycle_finding(problem))
    return problem


def _graph(problem: Problem, units: "pyarrow.Table", tensors: "pyarrow.Table") -> NumberedGraph:
    """The graph by numbers. Arrow looks up millions of names without making a Python text of each."""
    import pyarrow
    import pyarrow.compute

    names = units["name"].combine_chunks()
    weight_names = pyarrow.array(list(problem.weights), type=pyarrow.string())
    producer = tensors["producer"].combine_chunks()
    absent = pyarrow.compute.equal(producer, "").fill_null(True).to_numpy(zero_copy_only=False)
    consumer_offsets, consumer_units = _rows(tensors, "consumers", names)
    weight_offsets, weight_ids = _rows(units, "weights", weight_names)
    return NumberedGraph(
        producer=np.where(absent, -1, _numbers(producer, names)),
        consumer_offsets=consumer_offsets,
        consumer_units=consumer_units,
        weight_offsets=weight_offsets,
        weight_ids=weight_ids,
    )


def _columns(problem: Problem, graph: NumberedGraph, units: "pyarrow.Table", tensors: "pyarrow.Table") -> GraphColumns:
    exec_ns = _by_type(units, "exec_ns", missing=CANNOT_RUN)
    _require(bool((exec_ns >= 0).any(axis=1).all()), "a unit runs nowhere")
    host = [device.name for device in problem.cluster.devices].index(problem.host)
    output = tensors["output"].fill_null(False).to_numpy()
    return GraphColumns(
        exec_ns=exec_ns.reshape(-1),
        workspace_bytes=_whole(units, "workspace_bytes"),
        colocation=np.full(graph.units, -1, dtype=np.int64),
        tensor_bytes=_whole(tensors, "size_bytes", required=True),
        tensor_output=output.astype(np.int64),
        tensor_home=np.where(graph.producer < 0, host, -1).astype(np.int64),
        boundary_ns=_by_type(tensors, "boundary_ns", missing=0).reshape(-1),
    )


def _parts(text: bytes) -> _Parts:
    _require(text.isascii() or bool(text.decode()), "not a text")  # bytes that are no UTF-8 raise an error
    begin, end = _extent(text, b"units")
    begin_tensors, end_tensors = _extent(text, b"tensors")
    _require(end < begin_tensors, "tensors before units")
    units, tensors = text[begin:end], text[begin_tensors:end_tensors]
    _require(not any(mark in rows for rows in (units, tensors) for mark in _UNUSUAL), "unusual characters")
    rest = text[:begin] + text[end:begin_tensors] + text[end_tensors:]
    _require(rest.count(b'"units"') == rest.count(b'"tensors"') == 1, "a key twice")
    begin = rest.index(_WEIGHTS)
    end = rest.index(b"\n", begin + len(_WEIGHTS))
    weights, rest = rest[begin + len(_WEIGHTS) : end], rest[:begin] + rest[end:]
    _require(b'"weights"' not in rest, "a key twice")
    return _Parts(units=units, tensors=tensors, weights=weights, rest=rest)


def _weights(text: bytes) -> dict[str, int]:
    """The bytes of each weight. Pydantic would look at every one by itself."""
    from pydantic_core import from_json

    found = from_json(text.removesuffix(b","), allow_inf_nan=False, cache_strings=False)
    _require(isinstance(found, dict) and set(map(type, found.values())) <= {int}, "weights of another type")
    _require(_in_range(integers(found.values())), "a weight is out of range")
    weights: dict[str, int] = found
    return weights


def _extent(text: bytes, key: bytes) -> tuple[int, int]:
    """The places between which the rows of `key` lie."""
    mark = _BEGIN % key
    begin = text.index(mark) + len(mark)
    return begin, text.index(_END, begin)


def _table(rows: bytes, types: "pyarrow.Schema") -> "pyarrow.Table":
    """Rows as columns of these types. Raises `ValueError` for all else: other keys, a key twice, another type."""
    import pyarrow

    lines = rows.replace(_BETWEEN, b"}\n")
    # Fields that no row has cost as much time as others, and the first rows show most of those that any row has.
    first = lines[:_BLOCK_BYTES]
    shown = pyarrow.schema([field for field in types if f'"{field.name}"'.encode() in first])
    try:
        found = _parsed(lines, shown)
    except ValueError:
        found = _parsed(lines, types)
    _require(len(rows) - len(lines) == found.num_rows - 1, "a comma is missing")
    for field in types:
        if field.name not in found.column_names:
            found = found.append_column(field, pyarrow.nulls(found.num_rows, field.type))
    return found.combine_chunks()


def _parsed(lines: bytes, types: "pyarrow.Schema") -> "pyarrow.Table":
    import pyarrow
    from pyarrow import json

    return json.read_json(
        pyarrow.BufferReader(lines),
        read_options=json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        parse_options=json.ParseOptions(explicit_schema=types, unexpected_field_behavior="error"),
    )


def _unit_types(types: tuple[str, ...]) -> "pyarrow.Schema":
    from pyarrow import float64, int64, list_, schema, string, struct

    return schema(
        {
            "name": string(),
            "exec_ns": struct({name: float64() for name in types}),
            "weights": list_(string()),
            "workspace_bytes": int64(),
            "colocation": string(),
            "phase": string(),
            "kind": string(),
            "interval": struct({name: list_(float64()) for name in types}),
            "shape_group": string(),
        }
    )


def _tensor_types(types: tuple[str, ...]) -> "pyarrow.Schema":
    from pyarrow import bool_, float64, int64, list_, schema, string, struct

    return schema(
        {
            "name": string(),
            "size_bytes": int64(),
            "producer": string(),
            "consumers": list_(string()),
            "home": string(),
            "output": bool_(),
            "boundary_ns": struct({name: float64() for name in types}),
        }
    )


def _check_names(table: "pyarrow.Table") -> None:
    names = table["name"].combine_chunks()
    distinct = len(names.dictionary_encode().dictionary)
    _require(names.null_count == 0 and distinct == len(names), "a name is missing or appears twice")


def _rows(table: "pyarrow.Table", key: str, names: "pyarrow.Array") -> tuple[Integers, Integers]:
    """The lists of names in a column as compressed rows of their places among `names`."""
    import pyarrow.compute

    column = table[key].combine_chunks()
    lengths = pyarrow.compute.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    return sorted_rows(lengths, _numbers(pyarrow.compute.list_flatten(column), names), len(names))


def _numbers(values: "pyarrow.Array", names: "pyarrow.Array") -> Integers:
    """The place of each value among `names`, `UNKNOWN` where it is none of them."""
    import pyarrow.compute

    found: Integers = pyarrow.compute.index_in(values, value_set=names).fill_null(UNKNOWN).to_numpy().astype(np.int64)
    return found


def _by_type(table: "pyarrow.Table", key: str, *, missing: int) -> Integers:
    """One row per row of the table and one column per device type, rounded half-even."""
    found = np.full((table.num_rows, table.schema.field(key).type.num_fields), missing, dtype=np.int64)
    for column, values in enumerate(_children(table, key)):
        numbers: Floats = values.fill_null(missing).to_numpy()
        known = values.is_valid().to_numpy(zero_copy_only=False)
        _require(bool(((numbers >= 0) & (numbers < LIMIT))[known].all()), "a time is out of range")
        found[:, column] = np.rint(numbers)
    return found


def _children(table: "pyarrow.Table", key: str) -> list[Any]:
    """The columns of the fields of a mapping; null where the mapping itself is missing."""
    (chunk,) = table[key].chunks
    found: list[Any] = chunk.flatten()
    return found


def _check_intervals(units: "pyarrow.Table") -> None:
    import pyarrow.compute

    for pairs in _children(units, "interval"):
        lengths = pyarrow.compute.list_value_length(pairs).drop_null().to_numpy()
        _require(bool((lengths == 2).all()), "an interval is no pair")
        low, high = pairs.flatten().to_numpy().reshape(-1, 2).T
        _require(bool(((low > 0) & (low <= 1) & (high >= 1) & (high < FACTOR_BELOW)).all()), "an interval is wrong")


def _whole(table: "pyarrow.Table", key: str, *, required: bool = False) -> Integers:
    _require(not required or table[key].null_count == 0, "a number is missing")
    # A copy, since compiled functions take no array that cannot be written.
    found = np.array(table[key].fill_null(0).to_numpy(), dtype=np.int64)
    _require(_in_range(found), "a number is out of range")
    return found


def _in_range(values: Integers) -> bool:
    return bool(((values >= 0) & (values < LIMIT)).all())


def _only(table: "pyarrow.Table", key: str, value: str) -> bool:
    """True if every text of a column is missing or `value`."""
    return set(table[key].unique().to_pylist()) <= {None, value}


def _check_graph(graph: NumberedGraph) -> None:
    _require(graph.names_known, "a name is unknown")
    unit_of_weight = np.repeat(np.arange(graph.units), np.diff(graph.weight_offsets))
    for row, value in ((graph.tensor_of_consumer, graph.consumer_units), (unit_of_weight, graph.weight_ids)):
        _require(not ((row[1:] == row[:-1]) & (value[1:] == value[:-1])).any(), "a name appears twice in a row")


def _objects(rows: bytes, kind: type[_Units] | type[_Tensors], where: str) -> tuple[Any, ...]:
    """The units or tensors of rows, which stay for as long as the problem does."""
    with no_collection():
        found: tuple[Any, ...] = convert_json(b'{"rows":[' + rows + b"]}", kind, where=where).rows
        gc.freeze()
    return found


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)
