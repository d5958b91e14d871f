"""`opmark bench` as scripts use it: JSON, exit codes, one sentence per mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.sealing import edit_journal

from opmark.cli.main import cli
from opmark.core.measurements.journal import read_journal
from opmark.core.workspace import ROOMS

SUITE = """
schema: 1
name: tiny
targets: [null-t1]
quality: quick
kinds:
  gemm: {count: 6}
  softmax: {count: 3}
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    (tmp_path / "bench" / "suites").mkdir()
    (tmp_path / "bench" / "suites" / "tiny.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opmark(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", *arguments])


def as_json(*arguments: str) -> Any:
    result = opmark(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_knows_the_workspace_and_what_is_shipped(workspace: Path) -> None:
    names = {row["name"] for row in as_json("list")}
    assert {"tiny", "null", "quick", "small"} <= names
    assert "tiny" in opmark("list").stdout


def test_plan_says_what_would_be_measured(workspace: Path) -> None:
    planned = as_json("plan", "tiny")
    assert len(planned["kernels"]) == 9
    assert {kernel["kind"] for kernel in planned["kernels"]} == {"gemm", "softmax"}
    shown = opmark("plan", "tiny")
    assert "gemm" in shown.stdout
    assert planned["duration"]["low_s"] == pytest.approx(9 / 6.3)
    assert planned["duration"]["high_s"] == pytest.approx(9 / 5.7)
    assert "About 1 s to 2 s: 5.7 to 6.3 trials a second" in shown.stderr
    (workspace / "short.yaml").write_text(SUITE + "budget: 1s\n")
    assert as_json("plan", "short.yaml")["duration"]["budgeted"]
    assert "up to 1 s, its budget" in opmark("plan", "short.yaml").stderr
    (workspace / "whole.yaml").write_text(
        "schema: 1\nname: whole\ntargets: [null-t1]\nnetworks: {training: [light-alexnet]}\n"
    )
    whole = opmark("plan", "whole.yaml")
    assert whole.stderr.splitlines()[0] == "1 network."
    assert "About 1 s to 7 s: 0.15 to 1.6 networks a second" in whole.stderr
    assert "kernels" not in whole.stdout
    parts = [as_json("plan", "tiny", "--shard", f"{i}/3")["kernels"] for i in (1, 2, 3)]
    assert sorted(k["trial"] for part in parts for k in part) == sorted(k["trial"] for k in planned["kernels"])


def test_run_measures_into_the_workspace_and_goes_on(workspace: Path) -> None:
    first = as_json("run", "tiny")
    assert (first["planned"], first["done"], first["complete"]) == (9, 9, True)
    assert first["statuses"] == {"ok": 9}
    path = workspace / "bench" / "journals" / "tiny.jsonl"
    assert Path(first["journal"]) == path
    assert len(read_journal(path).measurements) == 9
    again = opmark("run", "tiny")
    assert again.exit_code == 0
    assert "9 of 9 trials" in again.stdout
    shard = as_json("run", str(workspace / "bench" / "suites" / "tiny.yaml"), "--shard", "1/2", "--budget", "1m")
    assert shard["journal"].endswith("tiny-1-of-2.jsonl")


def test_run_measures_what_is_poor_once_more(workspace: Path) -> None:
    path = Path(as_json("run", "tiny")["journal"])
    assert "nothing of this suite is low_quality" in opmark("run", "tiny", "--again", "low_quality").stderr
    blocks = read_journal(path).blocks
    # Of a kernel that two processes measured, one process is three times as slow.
    poor = next(key for key, found in blocks.items() if sum(block.label == "hot" for block in found) > 1)
    left = iter((3.0,))

    def slower(line: str) -> str:
        record = json.loads(line)
        if record.get("trial") == poor and record.get("label") == "hot":
            factor = next(left, 1.0)
            record["ns"] = [factor * ns for ns in record["ns"]]
        return json.dumps(record)

    edit_journal(path, slower)
    again = as_json("run", "tiny", "--again", "low_quality")
    # Kernels of the same kind help each other, and are doubted together.
    assert 1 <= again["planned"] == again["done"] < 9
    assert again["journal"] == str(path)
    assert len(read_journal(path).blocks[poor]) > len(blocks[poor])
    assert len(read_journal(path).measurements) == 9


def test_run_measures_in_rounds_until_the_error_is_small(workspace: Path) -> None:
    found = as_json("run", "tiny", "--target-error", "99%")
    assert found["stopped"] == "the target error is reached"
    assert found["target_error"] == 0.99
    assert found["targets"]["null-t1"]["n"] >= 2
    assert json.loads(Path(found["curve"]).read_text())["points"]
    assert Path(found["curve"]) == workspace / "bench" / "journals" / "tiny" / "curve.json"
    again = opmark("run", "tiny", "--target-error", "0.99")
    assert "Stopped: the target error is reached." in again.stdout
    assert "to continue" not in again.stderr


def test_what_needs_a_gpu_is_planned_and_refused_where_there_is_none(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opmark.bench.backends.torch_cuda.TorchCuda.unavailable", lambda _: "torch sees no CUDA GPU")
    planned = as_json("plan", "linears-bf16")
    assert planned["absent"] == {"torch-cuda-t1": "torch sees no CUDA GPU"}
    assert len(planned["kernels"]) == 200
    assert "torch-cuda-t1 cannot be measured here: torch sees no CUDA GPU." in opmark("plan", "linears-bf16").stderr
    for suite in ("linears-bf16", "full-gpu"):
        refused = opmark("run", suite)
        assert refused.exit_code == 4
        error, hint = refused.stderr.splitlines()
        assert error == "Error: cannot measure on torch-cuda-t1: torch sees no CUDA GPU"
        assert hint == "Hint: install a CUDA build of torch"
    assert not (workspace / "bench" / "journals").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "tinny"), 2, "no suite is called 'tinny'"),
        (("run", "none.yaml"), 3, "no such file"),
        (("run", "tiny", "--budget", "-10m"), 2, "not a duration"),
        (("run", "tiny", "--budget", "soon"), 2, "not a duration"),
        (("run", "tiny", "--budget", "0"), 2, "no time"),
        (("run", "tiny", "--shard", "3/2"), 2, "not a shard"),
        (("run", "tiny", "--again", "ok"), 2, "'--again'"),
        (("run", "tiny", "--again", "failed"), 5, "tiny.jsonl: nothing was measured yet"),
        (("run", "tiny", "--again", "failed", "--target-error", "5%"), 2, "exclude each other"),
        (("run", "tiny", "--target-error", "little"), 2, "'little' is not a share"),
        (("run", "tiny", "--target-error", "0%"), 2, "'0%' is not a share"),
        (("plan", "tiny", "--shard", "x"), 2, "not a shard"),
        (("noise", "--seconds", "-1"), 2, "--seconds"),
        (("run", "negative.yaml"), 3, "negative.yaml: kinds.gemm.count: must not be negative, not -6"),
        (("run", "typo.yaml"), 3, "typo.yaml: targest: unknown key"),
        (("run", "nothing.yaml"), 5, "selects nothing"),
        (("run", "elsewhere.yaml"), 2, "elsewhere.yaml: targets.0: onnxruntime has no target 'onnxruntime-cuda-t1'"),
        (("plan", "nowhere.yaml"), 3, "nowhere.yaml: targets.0: no backend is called 'nul' (did you mean 'null'?)"),
    ],
)
def test_mistakes_are_one_sentence_with_their_exit_code(
    workspace: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (workspace / "nowhere.yaml").write_text(SUITE.replace("null-t1", "nul-t1"))
    (workspace / "negative.yaml").write_text(SUITE.replace("count: 6", "count: -6"))
    (workspace / "typo.yaml").write_text(SUITE + "targest: [null-t1]\n")
    (workspace / "nothing.yaml").write_text(SUITE.replace("count: 6", "count: 0").replace("count: 3", "count: 0"))
    (workspace / "elsewhere.yaml").write_text(SUITE.replace("null-t1", "onnxruntime-cuda-t1"))
    result = opmark(*arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert not (workspace / "bench" / "journals").exists()


def test_backends_say_what_they_offer() -> None:
    rows = {row["name"]: row for row in as_json("backends")}
    assert rows["null"]["available"]
    assert "null-t1" in rows["null"]["targets"]
    assert "null-t1" in opmark("backends").stdout


def test_noise_ends_in_words() -> None:
    found = as_json("noise", "--seconds", "0.5")
    assert 0 <= found["clean_fraction"] <= 1
    assert found["verdict"]
    assert found["advice"]


def test_ctrl_c_keeps_what_was_finished_and_returns_130(workspace: Path) -> None:
    (workspace / "long.yaml").write_text(SUITE.replace("count: 6", "count: 400"))
    journal = workspace / "long.jsonl"
    command = [sys.executable, "-m", "opmark", "bench", "run", "long.yaml", "--journal", str(journal)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < 60):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    told, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Run the same command again to continue." in errors
    assert "trials" in told
    assert read_journal(journal).blocks
