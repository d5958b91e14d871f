"""The tables of a release: their columns, and the conversion of rows to and from measurements.

Format history (`schema` in manifest.json and in the metadata of every Parquet file):
1  kernels, networks; kernel_repeats and network_repeats of repeated measurements; fusion and links if they were
   measured. An absent table was not measured. The first releases have no clock_ratio.
2  labels have standard errors, and the status follows from them: ok, coarse or doubtful instead of ok or low_quality.
"""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opmark.core.canonical import canonical_json
from opmark.core.errors import ContentError
from opmark.core.hardware.link import LinkMeasurement
from opmark.core.kernels.fusion import FusionMeasurement
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.measurement import Measurement, NetworkMeasurement
from opmark.core.reading import parse_json
from opmark.datasets.format.parquet_file import is_alike

if TYPE_CHECKING:
    import pyarrow

SCHEMA = 2
# Older tables that can still be read; columns that came later are empty there.
READABLE = (1, SCHEMA)
_METADATA_KEY = b"opmark_schema"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Values of an `optional` column may be absent, those of a `signed` one negative.

    A `later` column was added to the format and may be missing from older files.
    """

    name: str
    type: str
    meaning: str
    optional: bool = False
    signed: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """One table of a release, stored as `<name>.parquet`; rows are sorted by the `identity` columns.

    A `required` table exists even without rows. In a `unique` table no two rows have the same identity.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...]
    required: bool = True
    unique: bool = True

    @property
    def file(self) -> str:
        """The name of the file in a release."""
        return f"{self.name}.parquet"

    def schema(self) -> "pyarrow.Schema":
        """Build the Arrow schema, with the format's version in its metadata."""
        return _arrow_schema(self)


_TARGET = Column("target", "string", "runtime, provider and threads; the manifest says the rest")
_STATUS = (
    Column("status", "string", "ok, coarse, doubtful, skipped or failed; low_quality in releases of schema 1"),
    Column("reason", "string", "why, where the status is not ok"),
)
_PROVENANCE = (
    Column("samples", "int64", "clean samples behind the label"),
    Column("processes", "int64", "processes that took them"),
    Column("scheduling", "string", "scheduling class of the timed bursts"),
    Column("suite", "string", "the suite that asked for the row"),
    Column("environment_id", "string", "the environment of the manifest it was measured in"),
    Column("journal", "string", "the journal with its samples, a source of the manifest", optional=True, later=True),
    Column("measured_at", "string", "UTC time of its first look, where the journal says it", optional=True, later=True),
)
_FAULTS = Column("faults_per_call", "double", "minor page faults of one call", optional=True)
_CLEAN = Column("clean_fraction", "double", "samples without an involuntary context switch, over all", optional=True)


def _added(name: str, meaning: str) -> Column:
    return Column(name, "double", meaning, optional=True, later=True)


def _error(name: str, latency: str) -> Column:
    return _added(name, f"standard error of {latency}, as a fraction of it")


_CLOCK = _added("clock_ratio", "time as it was taken over time at the state of the machine that labels are given at")
_KERNEL_COLUMNS = (
    _TARGET,
    Column("kind", "string", "kernel family"),
    Column("parameters", "string", "canonical JSON of everything that changes what runs"),
    Column("kernel_key", "string", "hash of kind and parameters"),
    Column("dtype", "string", "element type, also among the parameters"),
    *_STATUS,
    Column("latency_hot_ns", "double", "inputs in cache, call overhead removed", optional=True),
    Column(
        "latency_rotated_ns",
        "double",
        "over up to 64 copies in turn, 1.4 times the last-level cache where that many suffice",
        optional=True,
    ),
    _error("standard_error_hot", "latency_hot_ns"),
    _error("standard_error_rotated", "latency_rotated_ns"),
    Column("overhead_ns", "double", "the runtime's fixed cost per call", optional=True),
    Column("flops", "int64", "floating-point operations, 2 per multiply-accumulate"),
    Column("read_bytes", "int64", "bytes read, each input once, weights included"),
    Column("written_bytes", "int64", "bytes written"),
    Column("weight_bytes", "int64", "the constant part of read_bytes"),
    Column(
        "construction",
        "string",
        "one call at a time (single), or copies one after (chain) or beside (parallel) the other, or added up (sum)",
    ),
    Column("hot_quantiles_ns", "list<double>", "0, 0.05 … 1 quantiles of the clean hot samples"),
    Column("rotated_quantiles_ns", "list<double>", "the same of the rotated samples"),
    _CLEAN,
    _CLOCK,
    Column("between_process_variation", "double", "relative spread of the label between processes", optional=True),
    _FAULTS,
    *_PROVENANCE,
)

_NETWORK_COLUMNS = (
    Column("network", "string", "model name"),
    Column("family", "string", "model family; splits hold out whole families"),
    _TARGET,
    Column("graph_id", "string", "hash of the kernel graph that ran"),
    *_STATUS,
    Column(
        "role", "string", "training where constants of the network sum may be fitted on it, else held-out or sealed"
    ),
    Column("batch", "int64", "batch size"),
    Column("size", "int64", "image side in pixels or sequence length, where it can be chosen", optional=True),
    Column("latency_ns", "double", "end to end", optional=True),
    _error("standard_error", "latency_ns"),
    _added("host_ns", "the host's time to enqueue all calls on a GPU"),
    _added("device_ns", "the GPU's time for calls that were enqueued before it began"),
    Column("quantiles_ns", "list<double>", "0, 0.05 … 1 quantiles of the clean samples"),
    Column("peak_memory_bytes", "int64", "peak memory of the process above its start", optional=True),
    _FAULTS,
    _CLEAN,
    _CLOCK,
    *_PROVENANCE,
)

_FUSION_COLUMNS = (
    _TARGET,
    Column("pair", "string", "the operators, those before and behind the seam"),
    Column("first", "string", "the operators before the seam"),
    Column("second", "string", "those behind it"),
    Column("shape", "string", "shape of the first operator's input"),
    *_STATUS,
    Column("white_box", "string", "fused or not-fused, by the runtime's own optimised graph"),
    Column("black_box", "string", "fused, not-fused or undecided, by the clock"),
    Column("kernels", "string", "the kernels of that graph and the operators each covers"),
    Column("inserted_saved", "int64", "layout changes that both together do without", signed=True),
    Column("first_ns", "double", "the first part alone, call overhead removed", optional=True),
    Column("second_ns", "double", "the second part alone", optional=True),
    Column("block_ns", "double", "both together", optional=True),
    Column("overhead_ns", "double", "the runtime's fixed cost per call", optional=True),
    Column("saving", "double", "(first + second - block) / min(first, second)", optional=True, signed=True),
    Column("saving_low", "double", "lower end of its 95 % interval", optional=True, signed=True),
    Column("saving_high", "double", "upper end", optional=True, signed=True),
    _CLEAN,
    *_PROVENANCE,
)

_LINK_COLUMNS = (
    Column("source", "string", "the device that has the bytes"),
    Column("destination", "string", "the device that gets them"),
    Column("memory", "string", "shared, pinned or pageable"),
    *_STATUS,
    Column("hand_off_ns", "double", "the part of every transfer that wakes the other side up", optional=True),
    Column("sizes_bytes", "list<double>", "powers of two that were transferred"),
    Column("transfers_ns", "list<double>", "the label of each transfer"),
    Column("knot_sizes_bytes", "list<double>", "corners of the model, straight lines in log-log space"),
    Column("knot_transfers_ns", "list<double>", "its time at each corner"),
    Column(
        "largest_error", "double", "most by which the model misses a transfer, unseen sizes included", optional=True
    ),
    Column("bandwidth_bytes_per_s", "double", "the rate between the two largest transfers", optional=True),
    _CLEAN,
    *_PROVENANCE,
)

_ABOVE_ZERO = frozenset({"latency_hot_ns", "latency_rotated_ns", "latency_ns", "first_ns", "second_ns", "block_ns"})
_KERNEL_IDENTITY = ("target", "kind", "parameters")
_NETWORK_IDENTITY = ("target", "network", "batch", "graph_id")

KERNELS = TableFormat(
    name="kernels", title="one kernel on a target", columns=_KERNEL_COLUMNS, identity=_KERNEL_IDENTITY
)
NETWORKS = TableFormat(
    name="networks", title="one whole network on a target", columns=_NETWORK_COLUMNS, identity=_NETWORK_IDENTITY
)
KERNEL_REPEATS = TableFormat(
    name="kernel_repeats",
    title="further trials of a kernel that kernels already holds",
    columns=_KERNEL_COLUMNS,
    identity=_KERNEL_IDENTITY,
    required=False,
    unique=False,
)
NETWORK_REPEATS = TableFormat(
    name="network_repeats",
    title="further trials of a network that networks already holds",
    columns=_NETWORK_COLUMNS,
    identity=_NETWORK_IDENTITY,
    required=False,
    unique=False,
)
FUSION = TableFormat(
    name="fusion",
    title="two operators at one shape, and whether a target makes one kernel of them",
    columns=_FUSION_COLUMNS,
    identity=("target", "pair", "shape"),
    required=False,
)
LINKS = TableFormat(
    name="links",
    title="transfers between two devices of the machine",
    columns=_LINK_COLUMNS,
    identity=("source", "destination", "memory"),
    required=False,
)
TABLES: Mapping[str, TableFormat] = {
    table.name: table for table in (KERNELS, NETWORKS, KERNEL_REPEATS, NETWORK_REPEATS, FUSION, LINKS)
}


def kernel_row(measurement: Measurement) -> dict[str, Any]:
    """Make the row of one trial."""
    kernel, work = measurement.kernel, measurement.work
    derived = {
        "kind": kernel.kind,
        "parameters": canonical_json(kernel.params),
        "kernel_key": kernel.key,
        "dtype": str(kernel.params.get("dtype", "")),
        "flops": work.flops,
        "read_bytes": work.read_bytes,
        "written_bytes": work.written_bytes,
        "weight_bytes": work.weight_bytes,
    }
    return {
        column.name: derived[column.name] if column.name in derived else getattr(measurement, column.name)
        for column in _KERNEL_COLUMNS
    }


def measurement_of(row: Mapping[str, Any]) -> Measurement:
    """Make the trial of one row. Raises `ContentError` for a row without a kernel."""
    derived = {"kind", "parameters", "kernel_key", "dtype", "flops", "read_bytes", "written_bytes", "weight_bytes"}
    fields = {column.name: _frozen(row[column.name]) for column in _KERNEL_COLUMNS if column.name not in derived}
    work = Work(
        flops=row["flops"],
        read_bytes=row["read_bytes"],
        written_bytes=row["written_bytes"],
        weight_bytes=row["weight_bytes"],
    )
    return Measurement(kernel=kernel_of(row["kind"], row["parameters"]), work=work, **fields)


@functools.lru_cache(maxsize=65536)
def kernel_of(kind: str, parameters: str) -> Kernel:
    """Make the kernel of a row. Raises `ContentError` unless `parameters` is a JSON object."""
    try:
        content = parse_json(parameters.encode(), kind)
    except ContentError as error:
        raise ContentError(f"parameters are {error.message}", where=kind) from None
    if not isinstance(content, dict):
        raise ContentError("parameters are not a JSON object", where=kind)
    return Kernel.of(kind, content)


def network_row(measurement: NetworkMeasurement) -> dict[str, Any]:
    """Make the row of one network trial."""
    return _row(measurement, _NETWORK_COLUMNS)


def network_of(row: Mapping[str, Any]) -> NetworkMeasurement:
    """Make the network trial of one row."""
    return NetworkMeasurement(**_fields(row, _NETWORK_COLUMNS))


def fusion_row(measurement: FusionMeasurement) -> dict[str, Any]:
    """Make the row of one pair at one shape."""
    return _row(measurement, _FUSION_COLUMNS)


def fusion_of(row: Mapping[str, Any]) -> FusionMeasurement:
    """Make the pair at one shape of one row."""
    return FusionMeasurement(**_fields(row, _FUSION_COLUMNS))


def link_row(measurement: LinkMeasurement) -> dict[str, Any]:
    """Make the row of one link."""
    return _row(measurement, _LINK_COLUMNS)


def link_of(row: Mapping[str, Any]) -> LinkMeasurement:
    """Make the link of one row."""
    return LinkMeasurement(**_fields(row, _LINK_COLUMNS))


def table_of(table: TableFormat, rows: Iterable[Mapping[str, Any]]) -> "pyarrow.Table":
    """Make an Arrow table with exactly the columns of `table`. Raises `ContentError` where a value does not fit."""
    import pyarrow

    try:
        return pyarrow.Table.from_pylist(list(rows), schema=table.schema())
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError) as error:
        raise ContentError(f"a value does not fit its column: {error}", where=table.file) from error


def number_problem(column: Column, value: Any) -> str:
    """Describe the problem of a number (NaN, infinite, negative, a latency of zero); empty if there is none."""
    if value is None or column.type == "string":
        return ""
    for number in value if isinstance(value, (list, tuple)) else (value,):
        if number is None or not math.isfinite(number):
            return f"{number} is not a number"
        if number < 0 and not column.signed:
            return f"{number} is negative"
        if number == 0 and column.name in _ABOVE_ZERO:
            return "a latency cannot be 0"
    return ""


def checked_table(table: TableFormat, found: "pyarrow.Table", where: str) -> "pyarrow.Table":
    """Cast `found` to the types of `table`. Raises `ContentError` naming the file and the column that differs."""
    import pyarrow

    schema = table.schema()
    version = (found.schema.metadata or {}).get(_METADATA_KEY, b"").decode(errors="replace")
    if version not in map(str, READABLE):
        stated = f"is {version[:20]}" if version else "is missing"
        raise ContentError(f"the table's schema version {stated}, expected {SCHEMA}", where=where)
    for column in table.columns:
        if column.name not in found.column_names:
            if not column.later:
                raise ContentError("the column is missing", where=f"{where}: {column.name}")
            absent = pyarrow.nulls(len(found), schema.field(column.name).type)
            found = found.append_column(column.name, absent)
    for name in found.column_names:
        if name not in schema.names:
            raise ContentError("unknown column", where=f"{where}: {name}")
    columns = []
    for field in schema:
        values = found.column(field.name)
        try:
            # A text that looks like a number would be cast to one.
            if not is_alike(values.type, field.type):
                raise pyarrow.ArrowInvalid("another kind of value")
            columns.append(values.cast(field.type))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise ContentError(
                f"holds {values.type}, expected {field.type}: {error}", where=f"{where}: {field.name}"
            ) from error
        if values.null_count and not field.nullable:
            row = values.is_null().to_pylist().index(True)
            raise ContentError("has no value", where=f"{where}: row {row}: {field.name}")
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _row(measurement: object, columns: tuple[Column, ...]) -> dict[str, Any]:
    return {column.name: getattr(measurement, column.name) for column in columns}


def _fields(row: Mapping[str, Any], columns: tuple[Column, ...]) -> dict[str, Any]:
    return {column.name: _frozen(row[column.name]) for column in columns}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@functools.cache
def _arrow_schema(table: TableFormat) -> "pyarrow.Schema":
    import pyarrow

    types = {
        "string": pyarrow.string(),
        "double": pyarrow.float64(),
        "int64": pyarrow.int64(),
        "list<double>": pyarrow.list_(pyarrow.float64()),
    }
    fields = [pyarrow.field(column.name, types[column.type], nullable=column.optional) for column in table.columns]
    return pyarrow.schema(fields, metadata={_METADATA_KEY: str(SCHEMA).encode()})
