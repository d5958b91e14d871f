"""`opmark datasets`: data on stdout, one sentence on stderr, the documented exit codes."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.datasets import sample
from tests.datasets.journals import write_journal
from tests.datasets.tampering import set_value

from opmark.cli.main import cli
from opmark.core.units import format_ns
from opmark.core.workspace import ROOMS
from opmark.datasets.release.building import build_from


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    return tmp_path


def opmark(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--workspace", str(root), "datasets", *arguments])


@pytest.fixture
def name(root: Path) -> str:
    return build_from([sample.contents()], root / "datasets").name


def test_build_makes_a_release_and_says_where(root: Path) -> None:
    journals = [
        str(write_journal(root / f"{part}.jsonl", sample.kernels(8)[part::2], networks=["tiny"])) for part in (0, 1)
    ]
    result = opmark(root, "build", *journals, "--json")
    assert result.exit_code == 0, result.stderr
    built = json.loads(result.stdout)
    assert (built["kernels"], built["networks"], built["refused"]) == (8, 1, 0)
    assert Path(built["path"]) == root / "datasets" / sample.DEVICE / "1.0.0"
    again = opmark(root, "build", *journals, "--version", "1.0.0")
    assert again.exit_code == 2
    assert "never changed" in again.stderr
    assert "1.1.0" in again.stderr
    assert opmark(root, "build").exit_code == 5
    (root / "bench" / "journals").mkdir()
    write_journal(root / "bench" / "journals" / "a.jsonl", sample.kernels(3))
    assert json.loads(opmark(root, "build", "--json").stdout)["kernels"] == 3
    assert opmark(root, "build", str(root / "absent.jsonl")).exit_code == 3


def test_list_names_every_release(root: Path, name: str) -> None:
    listed = json.loads(opmark(root, "list", "--json").stdout)
    assert [item["name"] for item in listed] == [name]
    assert name in opmark(root, "list").stdout


def test_an_empty_workspace_lists_nothing(root: Path) -> None:
    assert json.loads(opmark(root, "list", "--json").stdout) == []
    assert "No release" in opmark(root, "list").stderr
    assert opmark(root, "show", "anything").exit_code == 5


def test_show_reports_what_a_call_costs(root: Path, name: str) -> None:
    overhead_ns = json.loads(opmark(root, "show", name, "--json").stdout)["statistics"]["onnxruntime-cpu-t1"][
        "overhead_ns"
    ]
    assert overhead_ns > 0
    assert f"call overhead, median {format_ns(overhead_ns)}" in " ".join(opmark(root, "show", name).stdout.split())


def test_show_reports_coverage_statuses_peaks_and_noise(root: Path, name: str) -> None:
    shown = json.loads(opmark(root, "show", sample.DEVICE, "--json").stdout)
    assert shown["targets"][0]["name"] == sample.TARGET.name
    assert shown["statistics"][sample.TARGET.name]["kinds"]["conv"]["statuses"]["ok"] == 40
    assert {peak["quantity"] for peak in shown["peaks"]} == {
        "flops_per_s",
        "hot_bytes_per_s",
        "rotated_bytes_per_s",
    }
    text = " ".join(opmark(root, "show", name).stdout.split())
    assert "40 ok, 1 skipped, 1 failed" in text
    assert "50.0 GFLOP/s" in text
    assert "variation between processes: median over 40 1.0%" in text


def test_validate_lists_all_and_exits_3(root: Path, name: str) -> None:
    path = str(root / "datasets" / name)
    sound = opmark(root, "validate", path, "--json")
    assert sound.exit_code == 0
    assert json.loads(sound.stdout) == {"path": path, "valid": True, "findings": []}
    set_value(Path(path), "kernels", 1, flops=7, kernel_key="x")
    bad = opmark(root, "validate", path, "--json")
    assert bad.exit_code == 3
    report = json.loads(bad.stdout)
    assert not report["valid"]
    assert {(item["row"], item["column"]) for item in report["findings"]} >= {(1, "flops"), (1, "kernel_key")}
    assert "row 1" in opmark(root, "validate", name).stdout


def test_a_release_can_be_validated_without_a_workspace(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "datasets" / sample.DEVICE)
    assert CliRunner().invoke(cli, ["datasets", "validate", "1.0.0"]).exit_code == 0
    assert CliRunner().invoke(cli, ["datasets", "show", "./1.0.0"]).exit_code == 0


def test_a_corrupt_table_is_refused_in_one_sentence(root: Path, name: str) -> None:
    path = root / "datasets" / name / "kernels.parquet"
    path.write_bytes(path.read_bytes()[:-5])
    result = opmark(root, "show", name)
    assert result.exit_code == 3
    assert "kernels.parquet" in result.stderr
    assert "Traceback" not in result.output


def test_merge_and_diff(root: Path, name: str) -> None:
    journal = write_journal(root / "more.jsonl", sample.kernels(44)[42:])
    merged = json.loads(opmark(root, "merge", name, str(journal), "--json").stdout)
    assert merged["kernels"] == 44
    difference = json.loads(opmark(root, "diff", name, merged["name"], "--json").stdout)
    assert [(group["kind"], group["added"], group["removed"]) for group in difference["groups"]] == [
        ("conv", 2, 0),
        ("network", 0, 0),
    ]
    assert "1.000" in opmark(root, "diff", name, merged["name"]).stdout


def test_export_writes_to_stdout_or_a_file(root: Path, name: str) -> None:
    rows = list(csv.DictReader(io.StringIO(opmark(root, "export", name).stdout)))
    assert len(rows) == 42
    output = root / "out.parquet"
    assert opmark(root, "export", name, "--format", "parquet", "-o", str(output)).exit_code == 0
    assert output.read_bytes()[:4] == b"PAR1"
    assert opmark(root, "export", name, "--format", "xlsx").exit_code == 2
