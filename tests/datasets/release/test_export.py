"""Other formats hold the same numbers, and mlcroissant accepts and reads the metadata."""

import csv
import io
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.datasets import sample

from opmark.core.errors import ContentError, UnknownNameError, UsageError
from opmark.datasets.release.building import build_from
from opmark.datasets.release.croissant import croissant
from opmark.datasets.release.export import FOLDER, FORMATS, export, with_parameters, write
from opmark.datasets.release.huggingface import configurations_text, with_configurations
from opmark.datasets.release.network_kernels import COLUMNS, checked_network_kernels
from opmark.datasets.release.release import Release


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return build_from([sample.contents()], tmp_path / "datasets")


def test_csv_holds_every_column(release: Release) -> None:
    rows = list(csv.DictReader(io.StringIO(export(release, "csv").decode())))
    assert len(rows) == 42
    assert [row["kernel_key"] for row in rows] == release.kernels["kernel_key"].tolist()
    usable = next(row for row in rows if row["status"] == "ok")
    expected = release.kernels.set_index("kernel_key").loc[usable["kernel_key"]]
    assert float(usable["latency_hot_ns"]) == expected["latency_hot_ns"]
    assert json.loads(usable["hot_quantiles_ns"]) == list(expected["hot_quantiles_ns"])
    assert (usable["device"], usable["version"]) == (sample.DEVICE, "1.0.0")


def test_parquet_is_flat_and_complete(release: Release) -> None:
    table = pq.read_table(io.BytesIO(export(release, "parquet", table="networks")))
    assert table.column_names[:2] == ["device", "version"]
    assert table["latency_ns"].to_pylist() == [1.5e6]


def test_markdown_is_a_table(release: Release) -> None:
    lines = export(release, "markdown", target=sample.TARGET.name).decode().splitlines()
    assert len(lines) == 44
    assert len({line.count("|") for line in lines}) == 1


def test_what_is_not_there_is_named(release: Release) -> None:
    with pytest.raises(UnknownNameError, match="no format is called 'cvs'") as refused:
        export(release, "cvs")
    assert refused.value.hint == "did you mean 'csv'?"
    with pytest.raises(UnknownNameError, match="no table"):
        export(release, "csv", table="wires")
    with pytest.raises(UnknownNameError, match="no target"):
        export(release, "csv", target="torch-eager-t1")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != FOLDER])
def test_exports_go_to_files_but_never_into_the_release(release: Release, tmp_path: Path, name: str) -> None:
    write(release, name, tmp_path / "out" / "file")
    assert (tmp_path / "out" / "file").read_bytes() == export(release, name)
    with pytest.raises(UsageError, match="never changed"):
        write(release, name, release.path / "more")


def test_croissant_is_the_published_one_with_addresses_of_the_tables(release: Release) -> None:
    written = json.loads((release.path / "croissant.json").read_text())
    assert written == croissant(release.manifest)
    exported = json.loads(export(release, "croissant"))
    for item, other in zip(exported["distribution"], written["distribution"], strict=True):
        assert item.pop("contentUrl") == str(release.path.resolve() / other.pop("contentUrl"))
    assert exported == written


@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_accepts_the_metadata_and_reads_the_rows(
    release: Release, caplog: pytest.LogCaptureFixture
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    with caplog.at_level(logging.WARNING):
        dataset = mlcroissant.Dataset(jsonld=release.path / "croissant.json")
    assert not dataset.metadata.issues.errors
    assert not [record for record in caplog.records if "@context" in record.getMessage()]
    assert dataset.metadata.name == f"opmark-{sample.DEVICE}"
    rows = list(dataset.records("networks"))
    assert len(rows) == 1
    assert rows[0]["networks/latency_ns"] == 1.5e6


@pytest.mark.filterwarnings("ignore")
def test_croissant_leads_to_the_tables_wherever_it_lies(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(release, "croissant", tmp_path / "croissant.json")
    (tmp_path / "far" / "away").mkdir(parents=True)
    moved = (tmp_path / "croissant.json").rename(tmp_path / "far" / "away" / "c.json")
    assert all(Path(item["contentUrl"]).is_file() for item in json.loads(moved.read_text())["distribution"])
    mlcroissant = pytest.importorskip("mlcroissant")
    monkeypatch.chdir(moved.parent)
    assert len(list(mlcroissant.Dataset(jsonld=Path("c.json")).records("networks"))) == 1


def test_a_folder_cannot_be_printed(release: Release) -> None:
    with pytest.raises(UsageError, match="cannot be printed"):
        export(release, FOLDER)


def test_a_card_without_configurations_gets_them(release: Release) -> None:
    text = (release.path / "README.md").read_text()
    assert export(release, "card").decode() == text
    _, header, body = text.split("---\n", 2)
    before = header.partition("configs:")[0]
    earlier = "---\n".join(("", before, body))
    again = with_configurations(earlier, release.manifest)
    assert yaml.safe_load(again.split("---\n")[1]) == yaml.safe_load(header)
    assert again.endswith("---\n" + body)
    assert with_configurations(again, release.manifest) == again
    assert with_configurations("no header", release.manifest).endswith("---\nno header")


def test_configurations_of_two_releases_differ(release: Release) -> None:
    """`load_dataset` keeps what it read by the name of the folder and a hash of the configurations."""
    for change in ({"version": "1.0.1"}, {"device": "another"}, {"id": "0" * 16}):
        assert configurations_text(replace(release.manifest, **change)) != configurations_text(release.manifest)


def test_flat_kernels_have_a_column_for_each_parameter(release: Release) -> None:
    plain = pq.read_table(io.BytesIO(export(release, "parquet")))
    flat = pq.read_table(io.BytesIO(export(release, "parquet", flat=True)))
    rows = zip(plain["parameters"].to_pylist(), flat.to_pylist(), strict=True)
    for text, row in rows:
        parameters = json.loads(text)
        found = {name.removeprefix("parameter_"): row[name] for name in row if name.startswith("parameter_")}
        assert {name: value for name, value in found.items() if value is not None} == {
            name: json.dumps(value) if isinstance(value, list) else value for name, value in parameters.items()
        }
    assert "parameters" not in flat.column_names
    assert set(plain.column_names) - {"parameters"} <= set(flat.column_names)
    for name in ("csv", "markdown"):
        assert "parameter_channels_in" in export(release, name, flat=True).decode().splitlines()[0]
    with pytest.raises(UsageError, match="networks have no parameters"):
        export(release, "csv", table="networks", flat=True)


def test_parameters_of_unlike_types_stay_readable() -> None:
    import pyarrow

    texts = [json.dumps({"a": 1, "b": [1, 2], "c": True}), json.dumps({"a": 1.5, "c": "x"}), json.dumps({})]
    found = with_parameters(pyarrow.table({"kind": ["k"] * 3, "parameters": texts})).to_pydict()
    assert found["parameter_a"] == [1.0, 1.5, None]
    assert found["parameter_b"] == ["[1, 2]", None, None]
    assert found["parameter_c"] == ["true", '"x"', None]


FORMULA = '=HYPERLINK("http://x","y")'


def test_a_spreadsheet_runs_no_text_of_a_release(tmp_path: Path) -> None:
    """Texts that begin like a formula get a quote before them; numbers stay numbers."""
    reasons = [FORMULA, "@SUM(1)", "+1", "-1", "\tx", "fine = fine"]
    rows = [
        sample.without_latency(kernel, reason=reason) for kernel, reason in zip(sample.kernels(6), reasons, strict=True)
    ]
    found = build_from([sample.contents([*rows, sample.measurement(sample.kernels(7)[-1])])], tmp_path / "datasets")
    exported = list(csv.DictReader(io.StringIO(export(found, "csv").decode())))
    assert sorted(row["reason"] for row in exported if row["reason"]) == sorted(
        [f"'{reason}" for reason in reasons[:5]] + ["fine = fine"]
    )
    assert float(next(row for row in exported if row["status"] == "ok")["latency_hot_ns"]) > 0


def test_a_markdown_table_holds_no_markup_and_no_commands(tmp_path: Path) -> None:
    rows = [sample.network("<script>|\x1b[31m\nx")]
    found = build_from([sample.contents(networks=rows)], tmp_path / "datasets")
    text = export(found, "markdown", table="networks").decode()
    assert len(text.splitlines()) == 3
    assert "&lt;script>\\|\\x1b[31m\\nx" in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda table: table.drop_columns(["calls"]), "calls: the column is missing"),
        (lambda table: table.append_column("more", table["calls"]), "more: unknown column"),
        (lambda table: table.set_column(0, "target", table["calls"]), "target: holds int64, expected string"),
        (lambda table: table.set_column(9, "calls", pa.nulls(1, pa.int64())), "calls: has no value"),
    ],
)
def test_another_table_of_network_kernels_is_refused(change: Callable[[pa.Table], pa.Table], sentence: str) -> None:
    types = {"string": (pa.string(), "a"), "int64": (pa.int64(), 1), "bool": (pa.bool_(), True)}
    table = pa.table({name: pa.array([types[kind][1]], types[kind][0]) for name, (kind, _) in COLUMNS.items()})
    assert checked_network_kernels(table, "a.parquet") == table
    with pytest.raises(ContentError, match=sentence):
        checked_network_kernels(change(table), "a.parquet")
