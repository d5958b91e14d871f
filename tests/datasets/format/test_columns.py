"""Rows survive the journey into Parquet and back, and a table that is not one of ours is refused by name."""

import dataclasses
import io
import math
import string

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.measurement import OK, SKIPPED, Measurement, NetworkMeasurement
from opmark.datasets.format.columns import (
    KERNELS,
    NETWORKS,
    TABLES,
    checked_table,
    kernel_of,
    kernel_row,
    measurement_of,
    network_of,
    network_row,
    number_problem,
    table_of,
)

names = st.text(string.ascii_lowercase + "-_ é", max_size=8)
counts = st.integers(0, 2**62)
latencies = st.floats(1.0, 1e12)
fractions = st.none() | st.floats(0.0, 1.0)
parameters = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=6),
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | names | st.lists(st.integers(0, 9), max_size=3),
    max_size=4,
)


@st.composite
def trials(draw: st.DrawFn) -> Measurement:
    usable = draw(st.booleans())
    return Measurement(
        kernel=Kernel.of(draw(names), {**draw(parameters), "dtype": "float32"}),
        work=Work(*(), flops=draw(counts), read_bytes=draw(counts), written_bytes=draw(counts)),
        target="onnxruntime-cpu-t1",
        status=OK if usable else SKIPPED,
        reason=draw(names),
        latency_hot_ns=draw(latencies) if usable else None,
        latency_rotated_ns=draw(st.none() | latencies) if usable else None,
        hot_quantiles_ns=tuple(sorted(draw(st.lists(latencies, max_size=21)))),
        clean_fraction=draw(fractions),
        faults_per_call=draw(fractions),
        samples=draw(st.integers(0, 1000)),
    )


@st.composite
def network_trials(draw: st.DrawFn) -> NetworkMeasurement:
    return NetworkMeasurement(
        network=draw(names),
        family=draw(names),
        target="torch-eager-t1",
        graph_id=draw(names),
        status=OK,
        latency_ns=draw(latencies),
        quantiles_ns=tuple(draw(st.lists(latencies, max_size=21))),
        peak_memory_bytes=draw(st.none() | counts),
        batch=draw(st.integers(1, 1024)),
    )


def through_parquet(table: pa.Table) -> pa.Table:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return pq.read_table(io.BytesIO(buffer.getvalue()))


@given(st.lists(trials(), max_size=4))
@settings(deadline=None, max_examples=60)
def test_kernel_rows_come_back_as_they_were(measurements: list[Measurement]) -> None:
    table = through_parquet(table_of(KERNELS, map(kernel_row, measurements)))
    rows = checked_table(KERNELS, table, "here").to_pylist()
    assert [measurement_of(row) for row in rows] == measurements
    assert [row["kernel_key"] for row in rows] == [item.kernel.key for item in measurements]


@given(st.lists(network_trials(), max_size=4))
@settings(deadline=None, max_examples=40)
def test_network_rows_come_back_as_they_were(measurements: list[NetworkMeasurement]) -> None:
    table = through_parquet(table_of(NETWORKS, map(network_row, measurements)))
    assert [network_of(row) for row in checked_table(NETWORKS, table, "here").to_pylist()] == measurements


def test_every_field_of_a_measurement_has_a_column() -> None:
    kernels = {field.name for field in dataclasses.fields(Measurement)} - {"kernel", "work"}
    assert kernels < {column.name for column in KERNELS.columns}
    networks = {field.name for field in dataclasses.fields(NetworkMeasurement)}
    assert networks == {column.name for column in NETWORKS.columns}


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_says_what_it_holds(table: object) -> None:
    assert all(column.meaning for column in table.columns)
    assert {*table.identity} < {column.name for column in table.columns}


def test_another_schema_is_refused_with_its_version() -> None:
    empty = table_of(KERNELS, [])
    newer = empty.replace_schema_metadata({"opmark_schema": "3"})
    with pytest.raises(ContentError, match=r"file\.parquet: the table's schema version is 3, expected 2"):
        checked_table(KERNELS, newer, "file.parquet")
    with pytest.raises(ContentError, match="schema version is missing"):
        checked_table(KERNELS, empty.replace_schema_metadata(None), "file.parquet")


def test_a_table_without_standard_errors_is_of_schema_1_and_readable() -> None:
    empty = table_of(KERNELS, []).replace_schema_metadata({"opmark_schema": "1"})
    older = empty.drop_columns(["standard_error_hot", "standard_error_rotated"])
    assert checked_table(KERNELS, older, "file.parquet").column_names == [column.name for column in KERNELS.columns]


def test_a_wrong_column_is_named() -> None:
    empty = table_of(NETWORKS, [])
    metadata = empty.schema.metadata
    with pytest.raises(ContentError, match=r"file: batch: the column is missing"):
        checked_table(NETWORKS, empty.drop_columns(["batch"]), "file")
    extra = empty.append_column("surprise", pa.array([], pa.int64()))
    with pytest.raises(ContentError, match=r"file: surprise: unknown column"):
        checked_table(NETWORKS, extra, "file")
    index = empty.column_names.index("latency_ns")
    text = empty.set_column(index, "latency_ns", pa.array([], pa.list_(pa.string())))
    with pytest.raises(ContentError, match=r"file: latency_ns: holds list<.*, expected double"):
        checked_table(NETWORKS, text.replace_schema_metadata(metadata), "file")


def test_a_column_of_later_releases_may_be_missing() -> None:
    rows = [network_row(NetworkMeasurement(network="n", family="f", target="t", graph_id="g", status=SKIPPED))]
    before = table_of(NETWORKS, rows).drop_columns(["clock_ratio"])
    found = checked_table(NETWORKS, before, "file")
    assert found.column_names == [column.name for column in NETWORKS.columns]
    assert network_of(found.to_pylist()[0]).clock_ratio is None


def test_a_missing_value_is_found_by_row() -> None:
    table = pa.table({"target": ["a", None]})
    columns = {name: pa.array([None, None], field.type) for name, field in _fields().items()}
    full = pa.table({**columns, "target": table["target"]}, schema=_nullable())
    with pytest.raises(ContentError, match=r"file: row 1: target: has no value"):
        checked_table(KERNELS, full, "file")


def _fields() -> dict[str, pa.Field]:
    return {field.name: field for field in KERNELS.schema()}


def _nullable() -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in KERNELS.schema()], metadata=KERNELS.schema().metadata)


def test_a_value_that_does_not_fit_its_column_is_refused() -> None:
    with pytest.raises(ContentError, match="does not fit its column"):
        table_of(KERNELS, [{"flops": "many"}])


@pytest.mark.parametrize("text", ["{", "[1]", "7"])
def test_parameters_must_be_a_json_object(text: str) -> None:
    with pytest.raises(ContentError, match="JSON"):
        kernel_of("conv", text)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("latency_hot_ns", math.nan, "nan is not a number"),
        ("latency_hot_ns", math.inf, "inf is not a number"),
        ("latency_hot_ns", -1.0, "-1.0 is negative"),
        ("latency_hot_ns", 0.0, "a latency cannot be 0"),
        ("hot_quantiles_ns", [1.0, math.nan], "nan is not a number"),
        ("overhead_ns", 0.0, ""),
        ("latency_hot_ns", None, ""),
        ("reason", "-1", ""),
    ],
)
def test_what_is_wrong_with_a_number(name: str, value: object, problem: str) -> None:
    column = next(column for column in KERNELS.columns if column.name == name)
    assert number_problem(column, value) == problem
