"""Options that commands share: the workspace, durations, and the sizes of a network."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.datasets import sample
from tests.predictors import law

from opmark.cli.main import cli
from opmark.cli.options import DURATION, PERCENT, chosen_sizes, workspace
from opmark.core.errors import ContentError, UsageError
from opmark.core.workspace import ROOMS
from opmark.datasets.release.building import build_from


def test_options_and_dimensions_are_one_mapping() -> None:
    assert chosen_sizes(("n=8",), None, None) == {"n": 8}
    assert chosen_sizes(("batch=2",), 2, 160) == {"batch": 2, "size": 160}
    with pytest.raises(UsageError, match="--batch 4 and --dimension batch=2 differ"):
        chosen_sizes(("batch=2",), 4, None)
    with pytest.raises(UsageError, match="'n=0' is not a dimension"):
        chosen_sizes(("n=0",), None, None)


def test_predict_explain_and_make_problem_take_batch_and_size(tmp_path: Path) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    build_from(
        [sample.contents([sample.measurement(one) for one in law.kernels("gemm", 20)], [])], tmp_path / "datasets"
    )
    cluster = tmp_path / "one.yaml"
    device = "{name: a, type: x, memory_bytes: 1000000000, target: onnxruntime-cpu-t1}"
    cluster.write_text(f"schema: 1\nname: one\ndevices:\n- {device}\n")

    def run(*arguments: str) -> dict:
        result = CliRunner().invoke(cli, ["--workspace", str(tmp_path), *arguments, "--json"])
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    CliRunner().invoke(cli, ["--workspace", str(tmp_path), "predictors", "train"])
    asked = ("encoder-tiny", "--missing", "bytes-moved")
    plain = run("predict", *asked)["total_ns"]
    batched = run("predict", *asked, "--batch", "4")["total_ns"]
    assert batched > plain
    assert run("predictors", "explain", *asked, "--batch", "4")["total_ns"] == batched
    longer = run("predict", *asked, "--batch", "4", "--size", "64")["total_ns"]
    assert longer > batched
    costs = []
    for options in ((), ("--batch", "4", "--size", "64")):
        file = tmp_path / "problem.json"
        run("leaderboards", "make-problem", *asked, "--cluster", str(cluster), "-o", str(file), *options)
        units = json.loads(file.read_text())["units"]
        costs.append(sum(sum(unit["exec_ns"].values()) for unit in units))
    assert costs[1] > 1.5 * costs[0]


def test_durations_convert_and_refuse() -> None:
    assert DURATION.convert("10m", None, None) == 600
    assert DURATION.convert(7, None, None) == 7.0
    with pytest.raises(click.BadParameter, match="not a duration"):
        DURATION.convert("-5", None, None)


def test_shares_convert_and_refuse() -> None:
    assert PERCENT.convert("5 %", None, None) == PERCENT.convert("0.05", None, None) == 0.05
    with pytest.raises(click.BadParameter, match="is not a share"):
        PERCENT.convert("500", None, None)


def test_workspace_is_the_given_one_or_the_one_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ROOMS:
        (tmp_path / "found" / room).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "found" / "bench")
    with pytest.raises(ContentError, match="no such folder"):
        workspace(click.Context(cli, obj=tmp_path / "given"))
    (tmp_path / "given").mkdir()
    assert workspace(click.Context(cli, obj=tmp_path / "given")).root == tmp_path / "given"
    assert workspace(click.Context(cli)).root == tmp_path / "found"


@pytest.mark.parametrize(
    "words",
    [
        ("quickstart", "--minutes"),
        ("provision", "bert-base", "--catalogue", "edge", "--samples-per-second"),
        ("predictors", "curve", "--kernels-per-second"),
    ],
)
@pytest.mark.parametrize("value", ["nan", "inf", "1e999"])
def test_numbers_are_finite(words: tuple[str, ...], value: str) -> None:
    refused = CliRunner().invoke(cli, [*words, value])
    assert refused.exit_code == 2
    assert f"{value!r} is not a finite number" in refused.stderr


@pytest.mark.parametrize("batch", [10**12, 10**11 - 1])
def test_sizes_beyond_the_memory_are_a_usage_error(batch: int, tmp_path: Path) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    words = ["--workspace", str(tmp_path), "models", "show", "plain-tiny", "--batch", str(batch)]
    refused = CliRunner().invoke(cli, [*words, "--target", "torch-eager-t1"])
    assert refused.exit_code == 2, refused.exception
    assert f"plain-tiny with batch {batch:,} needs more memory than there is here" in refused.stderr
