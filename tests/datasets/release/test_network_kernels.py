"""The kernels of each network: a table to join with `kernels`, and the journals beside it."""

import gzip
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.datasets import sample
from tests.datasets.journals import write_journal
from tests.predictors import law

from opmark.core.errors import ContentError, NothingSelectedError, UsageError
from opmark.core.kernels.graph import Graph
from opmark.core.measurements.measurement import NetworkMeasurement
from opmark.datasets.release.building import build
from opmark.datasets.release.export import export
from opmark.datasets.release.network_kernels import COLUMNS, network_kernels
from opmark.datasets.release.release import load

KERNELS = sample.kernels(6)
GRAPH = law.graph("net", [KERNELS[0], KERNELS[1], KERNELS[0]], free=1)


def find(networks: Iterable[NetworkMeasurement], target: str) -> Mapping[str, Graph]:
    assert target == sample.TARGET.name
    return {one.graph_id: GRAPH for one in networks if one.network == "net"}


def test_a_stranger_with_pandas_sees_the_kernels_of_a_network(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "one.jsonl", KERNELS, networks=["net", "other"])
    release = build([journal], tmp_path / "datasets", find=find)
    table = pq.read_table(release.path / "network_kernels.parquet").to_pandas()
    header = (release.path / "README.md").read_text().split("---\n")[1]
    assert "- config_name: network_kernels\n  data_files: network_kernels.parquet\n" in header
    assert list(table.columns) == list(COLUMNS)
    assert set(table["network"]) == {"net"}
    merged = table[~table["view"]].merge(release.kernels, on=["target", "kernel_key"])
    assert dict(zip(merged["kernel_key"], merged["calls"], strict=True)) == {KERNELS[0].key: 2, KERNELS[1].key: 1}
    assert merged["latency_hot_ns"].notna().all()
    assert table[table["view"]]["calls"].tolist() == [1]
    assert release.id == build([journal], tmp_path / "again").id, "the table describes networks, it is no measurement"


def test_older_releases_export_the_table(tmp_path: Path) -> None:
    release = build([write_journal(tmp_path / "one.jsonl", KERNELS, networks=["net"])], tmp_path / "datasets")
    assert release.manifest.entry("network_kernels.parquet") is None
    table = pq.read_table(io.BytesIO(export(release, "parquet", table="network_kernels", find=find)))
    assert table.column_names[:2] == ["device", "version"]
    assert sum(table["calls"].to_pylist()) == len(GRAPH.nodes)
    assert "| net | 1 | conv |" in export(release, "markdown", table="network_kernels", find=find).decode()
    with pytest.raises(UsageError, match="holds no network_kernels"):
        export(release, "csv", table="network_kernels")
    with pytest.raises(NothingSelectedError, match="no measured network has a graph"):
        network_kernels(release.network_measurements(sample.TARGET.name), lambda *_: {})


def test_journals_lie_beside_the_tables_and_rows_name_theirs(tmp_path: Path) -> None:
    journals = [
        write_journal(tmp_path / f"{name}.jsonl", KERNELS[at:], networks=[name], slower=1 + at / 50)
        for at, name in enumerate("ab")
    ]
    release = build(journals, tmp_path / "datasets", with_journals=True)
    for journal in journals:
        assert gzip.decompress((release.path / f"{journal.name}.gz").read_bytes()) == journal.read_bytes()
    assert set(release.kernels["journal"]) <= {"a.jsonl", "b.jsonl"}
    assert set(release.networks["journal"]) == {"a.jsonl", "b.jsonl"}
    repeats = release.tables["kernel_repeats"].to_pylist()
    assert len(repeats) == len(KERNELS) - 1
    assert all(row["journal"] in {"a.jsonl", "b.jsonl"} for row in repeats)
    assert {source.name for source in release.manifest.sources} == {"a.jsonl", "b.jsonl"}
    again = build(journals[::-1], tmp_path / "again", with_journals=True)
    assert [entry.sha256 for entry in again.manifest.files] == [entry.sha256 for entry in release.manifest.files]
    assert load(release.path).id == release.id


def test_the_packed_journals_of_a_release_build_it_again(tmp_path: Path) -> None:
    journals = [write_journal(tmp_path / f"{name}.jsonl", KERNELS[at:]) for at, name in enumerate("ab")]
    release = build(journals, tmp_path / "datasets", with_journals=True)
    packed = sorted(release.path.glob("*.jsonl.gz"))
    assert len(packed) == len(journals)
    again = build(packed, tmp_path / "again", with_journals=True)
    assert [entry.sha256 for entry in again.manifest.files] == [entry.sha256 for entry in release.manifest.files]
    assert build([packed[0], journals[1]], tmp_path / "mixed").id == release.id


def test_a_journal_that_an_earlier_release_holds_is_not_copied(tmp_path: Path) -> None:
    first, second = (write_journal(tmp_path / f"{name}.jsonl", KERNELS[at:]) for at, name in enumerate("ab"))
    earlier = build([first], tmp_path / "datasets", with_journals=True)
    packed = earlier.path / "a.jsonl.gz"
    later = build([packed, second], tmp_path / "datasets", with_journals=True)
    assert [path.name for path in later.path.glob("*.gz")] == ["b.jsonl.gz"]
    assert {source.name for source in later.manifest.sources} == {"a.jsonl", "b.jsonl"}
    (tmp_path / "other").mkdir()
    other = write_journal(tmp_path / "other" / "a.jsonl", KERNELS[2:])
    third = build([other], tmp_path / "datasets", with_journals=True)
    assert [path.name for path in third.path.glob("*.gz")] == ["a.jsonl.gz"], "another journal of the same name"


def test_a_damaged_packed_journal_is_named(tmp_path: Path) -> None:
    packed = tmp_path / "one.jsonl.gz"
    packed.write_bytes(gzip.compress(write_journal(tmp_path / "one.jsonl", KERNELS[:2]).read_bytes())[:-20])
    with pytest.raises(ContentError, match=r"one\.jsonl\.gz: not a complete gzip file"):
        build([packed], tmp_path / "datasets")
    assert not (tmp_path / "datasets").exists()


def test_two_journals_of_one_name_cannot_both_be_kept(tmp_path: Path) -> None:
    folders = [tmp_path / "x", tmp_path / "y"]
    for folder in folders:
        folder.mkdir()
    journals = [write_journal(folder / "one.jsonl", KERNELS[:2]) for folder in folders]
    with pytest.raises(UsageError, match=r"two journals are called 'one\.jsonl'"):
        build(journals, tmp_path / "datasets", with_journals=True)
    assert not (tmp_path / "datasets").exists()
