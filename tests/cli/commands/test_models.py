"""`opmark models`: names and kernels as tables and as JSON."""

import json

import pytest
from click.testing import CliRunner

from opmark.cli.main import cli
from opmark.core.workspace import ROOMS
from opmark.models.source import INT8, TORCH


@pytest.fixture
def opmark(tmp_path):
    for room in ROOMS:
        (tmp_path / room).mkdir()
    return lambda *arguments: CliRunner().invoke(cli, ["--workspace", str(tmp_path), "models", *arguments])


def test_list_names_every_network(opmark):
    rows = json.loads(opmark("list", "--json").stdout)
    named = {row["name"]: row for row in rows}
    assert named["light-resnet50"] == {
        "name": "light-resnet50",
        "family": "resnet",
        "batch": 1,
        "size": 224,
        "torch": False,
        "variants": ["int8-dynamic", "int8-static"],
        "held_out": True,
        "sealed": False,
    }
    assert not named["light-vgg19"]["held_out"]
    assert {"bert-base", "gpt2", "vit-base", "llama-block", "mobilenet-v2", "efficientnet-b0"} <= set(named)
    assert named["bert-base"]["variants"] == [*INT8, *TORCH]
    text = opmark("list").stdout
    assert "inception-small" in text
    assert "int8 bf16 training" in text


def test_show_gives_the_documented_json(opmark):
    result = opmark("show", "plain-tiny", "--target", "torch-eager-t1", "--json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert {"kernels", "coverage", "bytes_moved_share", "mapping"} <= set(shown)
    assert {"kind", "params", "count"} <= set(shown["kernels"][0])
    assert (shown["coverage"], shown["bytes_moved_share"], shown["mapping"]) == (1.0, 0.0, "native")
    assert sum(kernel["count"] for kernel in shown["kernels"]) == 12
    assert sum(kernel["count"] * kernel["flops"] for kernel in shown["kernels"]) == shown["flops"]


def test_show_takes_the_host_by_default_and_sizes_of_the_zoo(opmark):
    small, large = (
        json.loads(opmark("show", "encoder-tiny", "--json", *options).stdout) for options in ([], ["--batch", "2"])
    )
    assert small["target"] == "onnxruntime-cpu-t1"
    assert 1.9 < large["flops"] / small["flops"] < 2.1


def test_show_prints_kinds_kernels_and_what_is_left_over(opmark):
    text = opmark("show", "plain-tiny", "--target", "torch-eager-t1", "--top", "2").stdout
    assert "12 kernels" in text
    assert "conv" in text
    assert "more; --top 0 shows all" in text
    assert "bytes-moved" not in text, "nothing is left over"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("light-vgg19", "--target", "torch-eager-t1"), 2, "torch has no kernels"),
        (("incepton",), 2, "no network is called 'incepton'"),
        (("plain-tiny", "--batch", "0"), 2, "batch"),
        (("plain-tiny", "--dimension", "batch"), 2, "not a dimension"),
        (("nowhere.onnx",), 3, "no such file"),
    ],
)
def test_bad_input_is_one_sentence_and_a_code(opmark, arguments, code, sentence):
    result = opmark("show", *arguments)
    assert result.exit_code == code
    assert sentence in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(("name", "sentence"), [("x.onnx", "not an .onnx file"), ("x.pt2", "not a .pt2 file")])
def test_a_folder_that_is_called_like_a_file_is_called_a_folder(opmark, tmp_path, name, sentence):
    (tmp_path / name).mkdir()
    result = opmark("show", str(tmp_path / name), "--target", "torch-eager-t1")
    assert result.exit_code == 3
    assert f"{name}: is a folder, {sentence}" in result.stderr


def test_store_writes_graphs_and_goes_on(opmark, tmp_path):
    first = opmark("store", "plain-tiny", "--target", "torch-eager-t1", "--json")
    assert first.exit_code == 0, first.stderr
    [row] = json.loads(first.stdout)
    assert (row["model"], row["status"], row["error"]) == ("plain-tiny", "stored", "")
    assert (tmp_path / "bench" / "graphs" / "aten" / "plain-tiny.json.gz").stat().st_size == row["size_bytes"]
    again = opmark("store", "plain-tiny", "--target", "torch-eager-t1")
    assert again.exit_code == 0
    assert "kept" in again.stdout
    other = opmark("store", "plain-tiny", "--target", "torch-eager-t1", "--batch", "3", "--json")
    assert json.loads(other.stdout)[0]["status"] == "stored"
    assert (tmp_path / "bench" / "graphs" / "aten" / "plain-tiny-batch3.json.gz").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "but not both"),
        (("plain-tiny", "--all"), 2, "but not both"),
        (("--all", "--batch", "2"), 2, "--all takes no sizes"),
        (("plain-tni",), 2, "no network is called"),
        (("light-vgg19", "--target", "torch-eager-t1"), 1, "torch has no kernels"),
    ],
)
def test_store_says_what_it_cannot(opmark, arguments, code, sentence):
    result = opmark("store", *arguments)
    assert result.exit_code == code
    assert sentence in result.stderr
