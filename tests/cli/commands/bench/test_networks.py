"""`opmark bench fusion`, `links` and `models`: JSON, journals, and one sentence per mistake."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opmark.bench.links import cuda_channel as _cuda_copies
from opmark.bench.links import measuring as transfers
from opmark.cli.main import cli
from opmark.core.measurements.journal import read_journal
from opmark.core.workspace import ROOMS
from opmark.datasets.release.building import build


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    (tmp_path / "bench" / "suites").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opmark(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", *arguments])


def as_json(*arguments: str) -> Any:
    result = opmark(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


QUICK = ("--target", "null-t1", "--quality", "quick")


def test_fusion_shows_both_verdicts_and_goes_into_a_release(workspace: Path) -> None:
    found = as_json("fusion", "--pairs", "conv+relu,conv+bn", *QUICK)
    assert {item["pair"]: (item["white_box"], item["black_box"]) for item in found["verdicts"]} == {
        "conv+relu": ("fused", "fused"),
        "conv+bn": ("not-fused", "not-fused"),
    }
    assert found["complete"]
    assert len(found["rows"]) == 6
    path = workspace / "bench" / "journals" / "fusion-quick.jsonl"
    assert Path(found["journal"]) == path
    shown = opmark("fusion", "--pairs", "conv+relu", *QUICK)
    assert "conv(conv relu)" in shown.stdout
    assert "1 pair; graph and clock differ on 0" in shown.stderr
    release = build([path], workspace / "datasets")
    assert len(release.fusions("null-t1")) == 6


def test_what_a_budget_leaves_is_told(workspace: Path) -> None:
    short = opmark("fusion", "--pairs", "conv+relu", "--budget", "0.001s", *QUICK)
    assert short.exit_code == 0, short.output
    assert "Run the same command again to continue." in short.stderr
    whole = opmark("fusion", "--pairs", "conv+relu", *QUICK)
    assert "to continue" not in whole.stderr
    assert "1 pair" in whole.stderr


def test_fusion_lists_its_pairs_without_a_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {"conv+relu", "linear-bias+gelu"} <= {row["pair"] for row in as_json("fusion", "--list")}
    assert "scores-scale+softmax" in opmark("fusion", "--list").stdout


def test_links_are_measured_into_the_workspace(workspace: Path) -> None:
    if "cores" not in transfers.present():
        pytest.skip("one core only")
    found = as_json("links", "--devices", "cores", "--most", "1KiB")
    (link,) = found["links"]
    assert (link["source"], link["destination"], link["memory"], link["status"]) == ("core1", "core0", "shared", "ok")
    assert link["largest_error"] >= 0
    assert link["sizes_bytes"] == [64, 128, 256, 512, 1024]
    again = opmark("links", "--devices", "cores", "--most", "1KiB")
    assert "core1" in again.stdout
    assert len(read_journal(workspace / "bench" / "journals" / "links.jsonl").links) == 1


def test_models_measures_whole_networks_and_goes_on(workspace: Path) -> None:
    found = as_json("models", "plain-tiny", "--batch", "1,2", "--size", "1x,64", *QUICK)
    assert (found["planned"], found["done"], found["complete"]) == (4, 4, True)
    rows = found["networks"]
    assert {row["network"] for row in rows} == {"plain-tiny"}
    assert {row["status"] for row in rows} <= {"ok", "coarse"}, "one process does not tell how much others differ"
    assert sorted(row["batch"] for row in rows) == [1, 1, 2, 2]
    assert all(row["peak_memory_bytes"] is None or row["peak_memory_bytes"] >= 0 for row in rows)
    again = opmark("models", "plain-tiny", "--batch", "1,2", "--size", "1x,64", *QUICK)
    assert again.exit_code == 0, again.output
    assert "4 of 4" in again.stderr
    assert len({row["latency_ns"] for row in rows}) == 4
    (journal,) = (workspace / "bench" / "journals").glob("models-*.jsonl")
    assert len(build([journal], workspace / "datasets").networks) == 4


def test_models_says_what_it_leaves_out(workspace: Path) -> None:
    pytest.importorskip("onnx")
    shown = opmark("models", "light-squeezenet", "plain-tiny", "--batch", "2", *QUICK)
    assert shown.exit_code == 0, shown.output
    assert "Left out: light-squeezenet on null-t1, batch 2: the shapes of a file are its own" in shown.stderr
    suite = workspace / "bench" / "suites" / "nets.yaml"
    suite.write_text("schema: 1\nname: nets\ntargets: [null-t1]\nnetworks: {training: [plain-tiny]}\n")
    assert as_json("models", "--suite", "nets", *QUICK)["planned"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("fusion", "--pairs", "conv+rilu"), 2, "no pair is called 'conv+rilu'"),
        (("fusion", "--target", "null"), 2, "'null' is not a target"),
        (("fusion", "--quality", "sloppy"), 2, "no quality"),
        (("links", "--devices", "cuda:9"), 4, "no device 'cuda:9'"),
        (("links", "--most", "64"), 2, "no two sizes"),
        (("models",), 2, "no network is named"),
        (("retest", "null", "--share", "all"), 2, "is not a share"),
        (("retest", "null"), 5, "null.jsonl: nothing was measured yet"),
        (("models", "resnet-5o"), 2, "did you mean 'resnet-50'"),
        (("models", "plain-tiny", "--batch", "0"), 2, "not a list of batch sizes"),
        (("models", "plain-tiny", "--size", "big"), 2, "is not a size"),
        (("models", "plain-tiny@int8-dynamic", "--target", "torch-eager-t1"), 5, "no network to measure"),
    ],
)
def test_mistakes_are_one_sentence_with_their_exit_code(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.setattr(_cuda_copies, "devices", lambda: ())
    result = opmark(*arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert not list(workspace.rglob("*.jsonl")), "what is refused leaves no journal behind"
