"""What every dataset check keeps to, whoever wrote it."""

import pytest
from tests.datasets import sample

from opmark.datasets.format.columns import TABLES, table_of
from opmark.datasets.release.building import build_from
from opmark.datasets.release.release import Release
from opmark.datasets.validation.check import CHECKS, ERROR, WARNING, ReleaseTables


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return build_from([sample.contents()], tmp_path_factory.mktemp("datasets"))


@pytest.mark.parametrize("name", CHECKS.names())
def test_it_is_named_after_its_file_and_explains_itself(name: str) -> None:
    check = CHECKS.load(name)
    assert check.name == name
    assert check.title
    assert check.description.endswith(".")


@pytest.mark.parametrize("name", CHECKS.names())
def test_it_finds_nothing_in_a_sound_release(name: str, release: Release) -> None:
    tables = ReleaseTables(manifest=release.manifest, tables=release.tables)
    assert list(CHECKS.load(name).findings(tables)) == []


@pytest.mark.parametrize("name", CHECKS.names())
def test_it_copes_with_tables_that_are_absent_or_empty(name: str, release: Release) -> None:
    check = CHECKS.load(name)
    assert list(check.findings(ReleaseTables(manifest=release.manifest, tables={}))) == []
    empty = {key: table_of(table, []) for key, table in TABLES.items()}
    assert list(check.findings(ReleaseTables(manifest=release.manifest, tables=empty))) == []


@pytest.mark.parametrize("name", CHECKS.names())
def test_what_it_finds_says_where_and_never_raises(name: str, release: Release) -> None:
    broken = {"status": "?", "kind": "?", "parameters": "?", "kernel_key": "?", "dtype": "?", "target": "?"}
    broken |= {"latency_hot_ns": float("nan"), "latency_rotated_ns": -1.0, "flops": -1, "environment_id": "?"}
    rows = [{**row, **broken} for row in release.tables["kernels"].to_pylist()]
    tables = {"kernels": table_of(TABLES["kernels"], rows)}
    for finding in CHECKS.load(name).findings(ReleaseTables(manifest=release.manifest, tables=tables)):
        assert finding.check == name
        assert finding.level in {ERROR, WARNING}
        assert finding.file == "kernels.parquet"
        assert finding.row is not None
        assert finding.column in {column.name for column in TABLES["kernels"].columns}
        assert finding.message
