"""`opmark predictors` and `opmark predict`: from a release to a network's latency, on stdout."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.datasets import sample
from tests.predictors import law

from opmark.bench.suite.suite import load_suite
from opmark.cli.main import cli
from opmark.core.units import format_ns
from opmark.core.workspace import ROOMS
from opmark.datasets.release.building import build_from

KINDS = ("gemm", "softmax", "elementwise")


def opmark(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--workspace", str(root), *arguments])


def answered(root: Path, *arguments: str) -> Any:
    result = opmark(root, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a release, a predictor trained on it, and a small classifier in an ONNX file."""
    import onnx
    from onnx import TensorProto, helper

    folder = tmp_path_factory.mktemp("workspace")
    for room in ROOMS:
        (folder / room).mkdir()
    rows = [sample.measurement(kernel) for kind in KINDS for kernel in law.kernels(kind, 40)]
    build_from([sample.contents(rows, [])], folder / "datasets")
    weight = helper.make_tensor("w", TensorProto.FLOAT, (64, 32), [0.1] * 2048)
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"]),
        helper.make_node("Erf", ["h"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "classifier.onnx")
    assert opmark(folder, "predictors", "train").exit_code == 0
    return folder


def test_training_writes_a_bundle_that_list_and_show_know(root: Path) -> None:
    (one,) = answered(root, "predictors", "list")
    assert one["name"] == f"{sample.DEVICE}/1.0.0/onnxruntime-cpu-t1"
    assert (one["kinds"], one["rows"], one["estimator"]) == (3, 120, "lightgbm")
    for name in ("onnxruntime-cpu-t1", one["name"], one["path"]):
        shown = answered(root, "predictors", "show", name)
        assert set(shown["kinds"]) == set(KINDS)
        assert shown["release"]["device"] == sample.DEVICE
    assert "softmax" in opmark(root, "predictors", "show", "onnxruntime-cpu-t1").stdout


@pytest.mark.parametrize("command", [("predict",), ("predictors", "predict")])
def test_a_network_is_predicted_with_its_parts(root: Path, command: tuple[str, ...]) -> None:
    model = str(root / "classifier.onnx")
    found = answered(root, *command, model, "--dimension", "n=8")
    assert {"total_ns", "low_ns", "high_ns", "coverage", "kernels"} <= set(found)
    assert 0 < found["low_ns"] < found["total_ns"] < found["high_ns"]
    assert sorted(row["kind"] for row in found["kernels"]) == ["elementwise", "gemm", "softmax"]
    for row in found["kernels"]:
        assert set(row) == {"kind", "params", "count", "ns", "low_ns", "high_ns", "extrapolated"}
        assert 0 < row["low_ns"] <= row["ns"] <= row["high_ns"]
    assert sum(row["count"] * row["ns"] for row in found["kernels"]) == pytest.approx(found["total_ns"])
    text = opmark(root, *command, model, "--dimension", "n=8").stdout
    assert "with 90% confidence" in text
    assert "bytes moved" in text
    larger = answered(root, *command, model, "--dimension", "n=4096")
    assert larger["total_ns"] > found["total_ns"]


def test_bad_questions_get_one_sentence(root: Path, tmp_path: Path) -> None:
    model = str(root / "classifier.onnx")
    assert opmark(root, "predict", model, "--dimension", "n").exit_code == 2
    other = opmark(root, "predict", model, "--target", "torch-eager-t1", "--dimension", "n=8")
    assert other.exit_code == 3
    assert "torch-eager-t1" in other.stderr
    bundle = answered(root, "predictors", "list")[0]["path"]
    wrong = opmark(root, "predict", model, "--target", "torch-eager-t1", "--bundle", bundle)
    assert wrong.exit_code == 3
    assert "this bundle predicts onnxruntime-cpu-t1" in wrong.stderr
    for room in ROOMS:
        (tmp_path / room).mkdir()
    assert opmark(tmp_path, "predictors", "train").exit_code == 5
    assert opmark(tmp_path, "predict", model).exit_code == 3
    assert opmark(root, "predictors", "train", "--estimator", "oracle").exit_code == 2
    assert opmark(root, "predictors", "evaluate", "--split", "odd").exit_code == 2
    nothing = opmark(root, "predictors", "evaluate", "--estimator", "roofline", "--split", "networks-unseen")
    assert (nothing.exit_code, "no rows for such a split" in nothing.stderr) == (5, True)
    device = answered(
        root,
        "predict",
        str(root / "classifier.onnx"),
        "--target",
        f"{sample.DEVICE}/onnxruntime-cpu-t1",
        "--dimension",
        "n=8",
    )
    assert device["target"] == f"{sample.DEVICE}/onnxruntime-cpu-t1"


def test_an_unknown_kind_is_listed_or_goes_by_its_bytes(root: Path, tmp_path: Path) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    rows = [sample.measurement(kernel) for kernel in law.kernels("gemm", 20)]
    build_from([sample.contents(rows, [])], tmp_path / "datasets")
    assert opmark(tmp_path, "predictors", "train").exit_code == 0
    model = (str(root / "classifier.onnx"), "--dimension", "n=8")
    refused = opmark(tmp_path, "predict", *model)
    assert refused.exit_code == 3
    assert "elementwise, softmax" in refused.stderr
    found = answered(tmp_path, "predict", *model, "--missing", "bytes-moved")
    assert 0 < found["bytes_moved_share"] < 1


def test_evaluation_is_rows_of_documented_keys(root: Path) -> None:
    rows = answered(
        root, "predictors", "evaluate", "--estimator", "roofline", "--estimator", "lightgbm", "--split", "random"
    )
    keys = {"target", "estimator", "split", "metric", "value", "n", "noise_floor"}
    assert all(set(row) == keys for row in rows)
    assert {row["estimator"] for row in rows} == {"roofline", "lightgbm"}
    assert {"acc10", "kendall-tau", "rmspe"} <= {row["metric"] for row in rows}
    text = opmark(root, "predictors", "evaluate", "--estimator", "roofline", "--split", "random").stdout
    assert "noise floor" in text


def test_evaluation_draws_a_page_and_the_curve_is_a_table(root: Path, tmp_path: Path) -> None:
    page = tmp_path / "judged.html"
    result = opmark(root, "predictors", "evaluate", "--estimator", "roofline", "--split", "random", "--page", str(page))
    assert result.exit_code == 0, result.stderr
    assert "Learning curve" in page.read_text()
    assert f"{sample.DEVICE}/1.0.0" in page.read_text()
    lost = opmark(root, "predictors", "evaluate", "--estimator", "roofline", "--split", "random", "--page", f"{page}/x")
    assert lost.exit_code == 1
    assert "cannot write" in lost.stderr
    # what was judged is printed all the same
    assert lost.stdout == result.stdout
    points = answered(root, "predictors", "curve", "--estimator", "roofline")["onnxruntime-cpu-t1"]
    keys = {"estimator", "rows", "minutes", "kernels_per_second", "n", "median", "mape", "acc10"}
    assert keys == set(points[0])
    drawn = tmp_path / "curve.html"
    options = ("--estimator", "roofline", "--kernels-per-second", "4", "--page", str(drawn))
    shown = opmark(root, "predictors", "curve", *options)
    assert "95% of kernels within ±10 %" in shown.stdout
    assert "assume 4 kernels measured a second" in shown.stderr
    assert drawn.read_text().count("<polyline") == 2
    assert " min</text>" in drawn.read_text()


def test_a_prediction_is_explained_and_says_what_to_measure_next(root: Path, tmp_path: Path) -> None:
    model, suite = str(root / "classifier.onnx"), tmp_path / "next.yaml"
    options = (model, "--dimension", "n=8", "--next", "2", "--suite", str(suite))
    found = answered(root, "predictors", "explain", *options)
    assert sum(found["interval"].values()) == pytest.approx(1)
    assert {row["bound"] for row in found["reasons"]} <= {"compute", "memory", "overhead"}
    assert len(found["next"]) == 2
    assert len(load_suite(suite).exact) == 2
    text = opmark(root, "predictors", "explain", *options).stdout
    assert "the interval is made of" in text
    least = sorted(row["doubt_share"] for row in found["reasons"])[-2:]
    assert found["settled_share"] == pytest.approx(sum(least))
    assert found["narrower"] == pytest.approx(1 - (1 - sum(least)) ** 0.5)
    assert f"can settle {sum(least):.0%} of" in text
    assert "bound by" in text


def test_a_target_learns_from_another(root: Path, tmp_path: Path) -> None:
    device = "acme-2-vcpu"
    environment = replace(sample.ENVIRONMENT, device=device)
    target = replace(sample.TARGET, device=device)
    rows = [sample.measurement(kernel, flops_per_s=2e10) for kind in KINDS for kernel in law.kernels(kind, 30, 3)]
    here = tmp_path / "workspace"
    shutil.copytree(root, here)
    build_from([sample.contents(rows, [], environment=environment, target=target)], here / "datasets")
    name, page = f"{device}/1.0.0:{target.name}", tmp_path / "transfer.html"
    points = answered(here, "predictors", "transfer", name, "--samples", "20", "--page", str(page))
    assert {point["donor"] for point in points} == {"", f"{sample.DEVICE}/1.0.0:onnxruntime-cpu-t1"}
    assert sum(point["chosen"] for point in points) == 1
    assert {"scratch", "one-scalar", "ridge", "donor-residual"} <= {point["method"] for point in points}
    assert "<polyline" in page.read_text()
    donor = f"{sample.DEVICE}/1.0.0:onnxruntime-cpu-t1"
    assert "chosen" in opmark(here, "predictors", "transfer", name, "--donor", donor, "--samples", "20").stdout
    assert opmark(here, "predictors", "transfer", "acme").exit_code == 2

    stored = answered(here, "predictors", "transfer", name, "--donor", donor, "--samples", "20", "--store")
    assert stored["transfer"]["samples"] == 20
    assert stored["transfer"]["method"] in stored["transfer"]["validation"]
    assert Path(stored["path"]) == here / "predictors" / device / "1.0.0" / target.name
    assert "by validation on 20 samples" in opmark(here, "predictors", "show", stored["path"]).stdout
    model = (str(here / "classifier.onnx"), "--dimension", "n=8", "--bundle", stored["path"])
    assert answered(here, "predict", *model)["total_ns"] > 0
    again = opmark(here, "predictors", "transfer", name, "--donor", stored["path"], "--store")
    assert again.exit_code == 0
    assert "chosen" in again.stdout
    refused = opmark(here, "predictors", "transfer", donor, "--donor", name, "--samples", "20", "--store")
    assert refused.exit_code == 3
    assert "--to FOLDER" in refused.stderr
    elsewhere = tmp_path / "few"
    kept = answered(here, "predictors", "transfer", donor, "--donor", name, "--samples", "20", "--to", str(elsewhere))
    assert kept["path"] == str(elsewhere)
    assert "Made by transfer from 20 kernels" in (elsewhere / "README.md").read_text()
    twice = ("--samples", "20", "--samples", "30", "--store")
    assert opmark(here, "predictors", "transfer", name, *twice).exit_code == 2


def test_the_table_shows_the_metrics_that_are_asked_for(root: Path) -> None:
    options = ("--estimator", "roofline", "--split", "random", "--metrics")
    text = opmark(root, "predictors", "evaluate", *options, "rmse, acc15").stdout
    rows = answered(root, "predictors", "evaluate", *options, "rmse")
    values = {row["metric"]: row["value"] for row in rows}
    assert format_ns(values["rmse"]) in text
    assert f"{values['acc15']:.1%}" in text
    assert "mape" not in text
    wrong = opmark(root, "predictors", "evaluate", *options, "acc51")
    assert wrong.exit_code == 2
    assert "no metric is called 'acc51'" in wrong.stderr


def test_time_by_kind_divides_measured_networks(root: Path, tmp_path: Path) -> None:
    nothing = opmark(root, "predictors", "time-by-kind")
    assert nothing.exit_code == 5
    assert "no network was measured on onnxruntime-cpu-t1" in nothing.stderr
    shutil.copytree(root, tmp_path / "work")
    shutil.rmtree(tmp_path / "work" / "datasets")
    rows = [sample.measurement(kernel) for kernel in law.kernels("gemm", 20)]
    build_from([sample.contents(rows, [sample.network("plain-tiny")])], tmp_path / "work" / "datasets")
    (found,) = answered(tmp_path / "work", "predictors", "time-by-kind")
    assert (found["target"], found["networks"], found["measured_ns"]) == ("onnxruntime-cpu-t1", 1, 1.5e6)
    assert (found["bytes_moved"], found["met"]) == (0.0, True)
    assert sum(found["by_kind"].values()) + found["between"] == pytest.approx(1)
    text = opmark(tmp_path / "work", "predictors", "time-by-kind").stdout
    assert "bytes-moved holds 0.00% of the 1.50 ms of 1 measured network (target: at most 1 %, met)" in text
