"""`validate` tells everything that is wrong, and nothing about what is sound."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.datasets import sample
from tests.datasets.tampering import change_manifest, change_rows, set_value

from opmark.core.measurements.measurement import QUANTILES
from opmark.datasets.release.building import build_from
from opmark.datasets.release.release import Release
from opmark.datasets.validation.check import ERROR, WARNING, Finding
from opmark.datasets.validation.validate import CHECK_NAME, validate


@pytest.fixture
def release(tmp_path: Path) -> Release:
    trials = [sample.measurement(kernel) for kernel in (*sample.kernels(60), *sample.kernels(4, "softmax"))]
    trials.append(sample.without_latency(sample.kernels(61)[-1]))
    return build_from([sample.contents(trials)], tmp_path / "datasets")


def usable_row(release: Release, kind: str = "conv", at: int = 0) -> int:
    rows = release.kernels
    return int(rows.index[(rows["status"] == "ok") & (rows["kind"] == kind)][at])


def found(release: Release, check: str) -> list[Finding]:
    return [finding for finding in validate(release.path) if finding.check == check]


def test_a_sound_release_has_no_findings(release: Release) -> None:
    assert validate(release.path) == ()


@pytest.mark.parametrize(
    ("check", "column", "values", "message"),
    [
        ("latencies-positive", "latency_hot_ns", {"latency_hot_ns": float("nan")}, "nan is not a number"),
        ("latencies-positive", "overhead_ns", {"overhead_ns": -2.0}, "-2.0 is negative"),
        ("latencies-positive", "samples", {"samples": -1}, "-1 is negative"),
        ("statuses", "status", {"status": "fine"}, "unknown status 'fine'"),
        ("statuses", "latency_hot_ns", {"status": "failed", "reason": "x"}, "the row is failed and has a latency"),
        ("statuses", "reason", {"status": "skipped", "latency_hot_ns": None}, "does not say why"),
        ("keys-match", "kind", {"kind": "warp-drive"}, "no kind is called 'warp-drive'"),
        ("keys-match", "parameters", {"parameters": '{"speed":9}'}, "not a conv kernel"),
        ("keys-match", "parameters", {"parameters": "{"}, "parameters are not JSON"),
        ("keys-match", "kernel_key", {"kernel_key": "0000000000000000"}, "is not the key of this kernel"),
        ("keys-match", "dtype", {"dtype": "float16"}, "is not the parameters' 'float32'"),
        ("work-matches", "read_bytes", {"read_bytes": 1}, "1, but kind 'conv' counts"),
        ("quantiles-ordered", "hot_quantiles_ns", {"hot_quantiles_ns": [1.0, 2.0]}, "2 quantiles, expected 21"),
        ("quantiles-ordered", "rotated_quantiles_ns", {"rotated_quantiles_ns": [9.0, *QUANTILES[:20]]}, "below 9.0"),
        ("quantiles-ordered", "hot_quantiles_ns", {"latency_hot_ns": 1e15}, "outside its samples"),
        ("environment-complete", "target", {"target": "torch-eager-t1"}, "is not in manifest.json"),
        ("environment-complete", "environment_id", {"environment_id": "?"}, "is not in manifest.json"),
    ],
)
def test_each_check_finds_its_fault(
    release: Release, check: str, column: str, values: dict[str, Any], message: str
) -> None:
    row = usable_row(release)
    set_value(release.path, "kernels", row, **values)
    fault = [finding for finding in found(release, check) if finding.row == row and finding.column == column]
    assert len(fault) == 1
    assert message in fault[0].message
    assert fault[0].level == ERROR
    assert fault[0].where == f"kernels.parquet: row {row}: {column}"


def test_parameters_out_of_order_are_found(release: Release) -> None:
    row = usable_row(release)
    spaced = release.kernels["parameters"][row].replace(":", ": ", 1)
    set_value(release.path, "kernels", row, parameters=spaced)
    assert any("canonically" in finding.message for finding in found(release, "keys-match"))


def test_duplicates_are_found_with_the_first_row(release: Release) -> None:
    first = release.kernels.iloc[0]
    set_value(release.path, "kernels", 5, kind=first["kind"], parameters=first["parameters"])
    (finding,) = found(release, "rows-unique")
    assert (finding.row, finding.file) == (5, "kernels.parquet")
    assert finding.message.startswith("row 0 already holds")


@pytest.mark.parametrize(("factor", "level"), [(2.0, WARNING), (3.5, WARNING), (5.0, ERROR), (1000.0, ERROR)])
@pytest.mark.parametrize(("kind", "quantity"), [("conv", "float32 flops_per_s"), ("softmax", "hot_bytes_per_s")])
def test_rates_above_the_peak_are_flagged_and_above_four_times_refused(
    release: Release, factor: float, level: str, kind: str, quantity: str
) -> None:
    name = "flops_per_s" if kind == "conv" else "hot_bytes_per_s"
    peak = next(peak.rate for peak in release.manifest.peaks if peak.quantity == name)
    rows = release.kernels[release.kernels["kind"] == kind]
    rows = rows[rows["status"] == "ok"]
    work = rows["flops"] if kind == "conv" else rows["read_bytes"] + rows["written_bytes"]
    row = int(work.idxmax())
    latency_ns = float(work[row] / (factor * peak) * 1e9)
    quantiles = [latency_ns * (0.98 + at / 10) for at in QUANTILES]
    set_value(release.path, "kernels", row, latency_hot_ns=latency_ns, hot_quantiles_ns=quantiles)
    findings = [finding for finding in found(release, "rates-plausible") if quantity in finding.message]
    assert [(finding.level, finding.row, finding.column) for finding in findings] == [(level, row, "latency_hot_ns")]


def test_bending_the_manifest_does_not_raise_the_ceiling(release: Release) -> None:
    row = usable_row(release)
    change_manifest(release.path, lambda content: [peak.update(rate=1e18) for peak in content["peaks"]])
    rows = release.kernels
    row = int(rows["flops"].where(rows["status"] == "ok").idxmax())
    set_value(release.path, "kernels", row, latency_hot_ns=rows["latency_hot_ns"][row] / 100, hot_quantiles_ns=[])
    assert any(finding.level == ERROR for finding in found(release, "rates-plausible"))


def test_networks_are_checked_too(release: Release) -> None:
    set_value(release.path, "networks", 0, latency_ns=None, role="other")
    assert {finding.column for finding in found(release, "statuses")} == {"latency_ns", "role"}


def test_an_undescribed_or_foreign_machine_is_found(release: Release) -> None:
    change_manifest(release.path, lambda content: content["targets"][0].update(device="other"))
    change_manifest(release.path, lambda content: content["environments"][0].update(device="other"))
    columns = {finding.column for finding in found(release, "environment-complete")}
    assert {"targets", "environments"} <= columns


def test_it_never_stops_at_the_first_fault(release: Release) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[0]["latency_hot_ns"] = -1.0
        rows[1]["status"] = "fine"
        rows[2]["flops"] += 1
        rows[3]["kernel_key"] = "x"

    change_rows(release.path, "kernels", change)
    (release.path / "networks.parquet").write_bytes(b"nothing")
    (release.path / "notes.txt").write_text("mine")
    findings = validate(release.path)
    assert {finding.check for finding in findings} >= {
        CHECK_NAME,
        "columns",
        "latencies-positive",
        "statuses",
        "work-matches",
        "keys-match",
    }
    assert {finding.file for finding in findings} == {"kernels.parquet", "networks.parquet", "notes.txt"}
    assert [finding.level for finding in findings if finding.file == "notes.txt"] == [WARNING]


def test_an_unreadable_manifest_is_the_only_finding(tmp_path: Path) -> None:
    (finding,) = validate(tmp_path)
    assert finding.file == "manifest.json"
    assert "no such file" in finding.message


def test_a_wrong_row_count_is_found(release: Release) -> None:
    change_manifest(release.path, lambda content: content["files"][0].update(rows=7))
    assert any("65 rows, but manifest.json says 7" in finding.message for finding in found(release, "columns"))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("latency_hot_ns", ["100"] * 65, "holds string, expected double"),
        ("flops", [1.0] * 65, "holds double, expected int64"),
        ("status", [True] * 65, "holds bool, expected string"),
        ("hot_quantiles_ns", [1.0] * 65, "holds double, expected list"),
        ("kind", [None] * 65, "kind: has no value"),
    ],
)
def test_a_column_of_another_type_is_not_converted(
    release: Release, column: str, values: list[Any], message: str
) -> None:
    path = release.path / "kernels.parquet"
    table = pq.read_table(path)
    changed = table.set_column(table.column_names.index(column), column, pa.array(values))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    assert any(message in finding.message for finding in found(release, "columns"))


@pytest.mark.parametrize("version", [b"", b"3", b"\xff", b"2\n", b"0"])
def test_another_schema_of_a_table_is_named(release: Release, version: bytes) -> None:
    path = release.path / "kernels.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"opmark_schema": version}), path)
    assert any("the table's schema version is" in finding.message for finding in found(release, "columns"))


def test_files_that_are_no_files_do_not_stop_it(release: Release) -> None:
    def change(content: dict[str, Any]) -> None:
        for entry in content["files"]:
            if entry["name"] in {"kernels.parquet", "networks.parquet"}:
                entry["size_bytes"] = 0

    change_manifest(release.path, change)
    for name in ("kernels.parquet", "networks.parquet"):
        (release.path / name).unlink()
    os.mkfifo(release.path / "kernels.parquet")
    (release.path / "networks.parquet").symlink_to("/dev/zero")
    messages = {finding.file: finding.message for finding in found(release, CHECK_NAME) if "id" not in finding.column}
    assert messages["kernels.parquet"] == "cannot be read: it is a pipe, not a plain file"
    assert messages["networks.parquet"] == "cannot be read: it is a device, not a plain file"


@pytest.mark.parametrize("changes", [{"rate": 0.0}, {"rate": -1.0}, {"quantity": "speed"}])
def test_a_peak_that_is_none_is_refused(release: Release, changes: dict[str, Any]) -> None:
    change_manifest(release.path, lambda content: content["peaks"][0].update(changes))
    (finding,) = validate(release.path)
    assert (finding.check, next(iter(changes)) in finding.message) == ("manifest", True)
