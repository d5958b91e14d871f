"""`opmark predictors` and `opmark predict`: from a release to a network's latency, on stdout."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.progress import Progress
from tests.cli.commands.predictors.calls import KINDS, answered, opmark
from tests.datasets import sample
from tests.predictors import law

from opmark.bench.suite.suite import load_suite
from opmark.cli.commands.predictors import bundles
from opmark.cli.main import cli
from opmark.core.shipped import shipped_content
from opmark.core.workspace import ROOMS, Workspace
from opmark.datasets.release.building import build_from
from opmark.predictors.model.bundle_paths import find_bundle


def test_training_writes_a_bundle_that_list_and_show_know(root: Path) -> None:
    (one,) = answered(root, "predictors", "list")
    assert one["name"] == f"{sample.DEVICE}/1.0.0/onnxruntime-cpu-t1"
    assert (one["kinds"], one["rows"], one["estimator"]) == (3, 120, "lightgbm")
    for name in ("onnxruntime-cpu-t1", one["name"], one["path"]):
        shown = answered(root, "predictors", "show", name)
        assert set(shown["kinds"]) == set(KINDS)
        assert shown["release"]["device"] == sample.DEVICE
    assert "softmax" in opmark(root, "predictors", "show", "onnxruntime-cpu-t1").stdout


def test_the_time_left_of_training_falls_while_a_kind_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(bundles, "time", SimpleNamespace(monotonic=lambda: now_s))
    progress = Progress(disable=True)
    begun = bundles._telling(progress, "onnxruntime-cpu-t1", 1000)
    (task,) = progress.tasks
    begun("elementwise", 0.0, 0.2)
    assert task.fields["left_s"]() is None, "there is no pace yet"
    now_s = 20.0
    begun("conv", 0.2, 0.5)
    assert (task.completed, task.fields["left_s"]()) == (200, pytest.approx(80))
    now_s = 60.0
    assert task.fields["left_s"]() == pytest.approx(40)
    now_s = 600.0
    assert task.fields["left_s"]() == pytest.approx(30), "the other kinds are still to come"


def test_networks_measured_later_tell_constants_without_training(root: Path, tmp_path: Path) -> None:
    here = tmp_path / "later"
    shutil.copytree(root, here)
    rows = [sample.measurement(kernel) for kind in KINDS for kernel in law.kernels(kind, 40)]
    contents = sample.contents(rows, [sample.network("squeeze-small")])
    release = build_from([contents], here / "datasets").name
    train = ("predictors", "train", release, "--kernels-of", "1.0.0")
    (found,) = answered(here, *train, "--version", "1.0.1")
    assert found["note"] == "network constants fitted on squeeze-small"
    assert found["path"].endswith(f"{sample.DEVICE}/1.0.1/onnxruntime-cpu-t1")
    assert found["constants"]["kernel_scale"] != 1
    told = f"kernels take {found['constants']['kernel_scale']:.3f} times their label"
    assert told in opmark(here, "predictors", "show", found["path"]).stderr
    (before,) = (one for one in answered(here, "predictors", "list") if "/1.0.0/" in one["name"])
    assert "their label" not in opmark(here, "predictors", "show", before["path"]).stderr
    for name in sorted(path.name for path in Path(before["path"]).glob("*.gz")):
        assert (Path(found["path"]) / name).read_bytes() == (Path(before["path"]) / name).read_bytes()
    assert opmark(here, *train).exit_code == 2, "a version never changes"
    assert opmark(here, *train, "--version", "1.0.1").exit_code == 3
    assert opmark(here, *train, "--version", "1.0.2", "--most-rows", "9").exit_code == 2
    nothing = opmark(
        here, "predictors", "train", f"{sample.DEVICE}/1.0.0", "--kernels-of", "1.0.0", "--version", "1.0.2"
    )
    assert nothing.exit_code == 5
    assert "no training network" in nothing.stderr
    unknown = opmark(here, *train[:-1], "7.0.0", "--version", "1.0.2")
    assert unknown.exit_code == 3
    assert "7.0.0" in unknown.stderr


@pytest.mark.parametrize("command", [("predict",), ("predictors", "predict")])
def test_a_network_is_predicted_with_its_parts(root: Path, command: tuple[str, ...]) -> None:
    model = str(root / "classifier.onnx")
    found = answered(root, *command, model, "--dimension", "n=8")
    assert {"total_ns", "low_ns", "high_ns", "coverage", "kernels"} <= set(found)
    assert 0 < found["low_ns"] < found["total_ns"] < found["high_ns"]
    assert sorted(row["kind"] for row in found["kernels"]) == ["elementwise", "gemm", "softmax"]
    for row in found["kernels"]:
        assert {"kind", "params", "count", "extrapolated", "derived", "exact", "distance"} <= set(row)
        assert 0 < row["low_ns"] <= row["ns"] <= row["high_ns"]
    assert sum(row["count"] * row["ns"] for row in found["kernels"]) == pytest.approx(found["total_ns"])
    text = opmark(root, *command, model, "--dimension", "n=8").stdout
    assert "with 90% confidence" in text
    assert "bytes moved" not in text, "every kernel has a predictor"
    brief = opmark(root, *command, model, "--dimension", "n=8", "--brief")
    assert brief.stdout == text.splitlines(keepends=True)[0]
    assert (brief.stderr.count("\n"), found["unmodelled"], found["warnings"]) == (1, [], [])
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


def test_a_prediction_is_explained_and_says_what_to_measure_next(root: Path, tmp_path: Path) -> None:
    model, suite = str(root / "classifier.onnx"), tmp_path / "next.yaml"
    options = (model, "--dimension", "n=8", "--next", "2", "--suite", str(suite))
    found = answered(root, "predictors", "explain", *options)
    assert sum(found["interval"].values()) == pytest.approx(1)
    assert {row["bound"] for row in found["reasons"]} <= {"compute", "memory", "overhead"}
    assert len(found["next"]) == 2
    assert len(load_suite(suite).exact) == 2
    text = opmark(root, "predictors", "explain", *options).stdout
    assert "the interval comes from" in text
    least = sorted(row["doubt_share"] for row in found["reasons"])[-2:]
    assert found["settled_share"] == pytest.approx(sum(least))
    assert found["narrower"] == pytest.approx(1 - (1 - sum(least)) ** 0.5)
    assert f"can remove {sum(least):.0%} of" in text
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
    version = ("--version", "1.0.1")
    hinted = opmark(here, "predictors", "train", f"{device}/1.0.0", "--version", "0.9.0")
    assert "`--donor " in hinted.stderr
    (corrected,) = answered(here, "predictors", "train", f"{device}/1.0.0", "--donor", donor, *version)
    assert (corrected["estimator"], corrected["transfer"]["method"]) == ("transferred", "corrected")
    assert corrected["transfer"]["donor"] == donor
    assert "corrected where that tells" in (Path(corrected["path"]) / "README.md").read_text()
    judged = answered(here, "predictors", "evaluate", f"{device}/1.0.0", "--donor", donor, "--split", "random")
    assert "transferred" in {row["estimator"] for row in judged}
    alone = opmark(here, "predictors", "evaluate", f"{device}/1.0.0", "--estimator", "transferred")
    assert alone.exit_code == 2
    odd = opmark(here, "predictors", "train", f"{device}/1.0.0", "--donor", donor, "--estimator", "flops")
    assert odd.exit_code == 2
    twice = ("--samples", "20", "--samples", "30", "--store")
    assert opmark(here, "predictors", "transfer", name, *twice).exit_code == 2


def test_outside_a_workspace_the_shipped_predictors_answer(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("opmark.cli.options.cache_folder", lambda ctx: tmp_path)
    monkeypatch.setattr("opmark.studies.machine.facts.device_slug", lambda: "my-own-machine")
    result = CliRunner().invoke(cli, ["predict", "squeeze-small", "--brief"])
    assert result.exit_code == 0, result.stderr
    shipped = find_bundle(shipped_content(), "onnxruntime-cpu-t1").parents[1].name
    assert result.stdout.startswith(f"squeeze-small on {shipped}/onnxruntime-cpu-t1: ")
    assert f"this is my-own-machine, but the prediction is for {shipped}" in result.stderr
    assert "--target" not in result.stderr
    monkeypatch.setattr("opmark.studies.machine.facts.device_slug", lambda: "nvidia-t4")
    result = CliRunner().invoke(cli, ["predict", "squeeze-small", "--brief", "--target", "nvidia-v100/torch-cuda-t1"])
    assert "`--target nvidia-t4/torch-cuda-t1` is measured on a machine of this sort" in result.stderr
    listed = CliRunner().invoke(cli, ["predictors", "list", "--json"])
    assert {Path(one["path"]).parents[2] for one in json.loads(listed.stdout)} == {shipped_content().predictors}
    own = answered(root, "predictors", "list")
    assert [one["path"].startswith(str(root)) for one in own] == [True]


def test_no_note_where_this_machine_is_meant(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmark.studies.machine.facts.device_slug", lambda: sample.DEVICE)
    result = opmark(root, "predict", str(root / "classifier.onnx"), "--dimension", "n=8", "--brief")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_better_predictor_of_the_same_release_gets_a_version_of_its_own(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "work")
    work = tmp_path / "work"
    old = find_bundle(Workspace(work), "onnxruntime-cpu-t1")
    before = (old / "manifest.json").read_bytes()
    train = ("predictors", "train", "--estimator", "roofline", "--version")
    (made,) = answered(work, *train, "1.0.1")
    assert Path(made["path"]) == find_bundle(Workspace(work), "onnxruntime-cpu-t1") != old
    assert made["release"]["version"] == "1.0.0"
    assert (old / "manifest.json").read_bytes() == before
    again = opmark(work, *train, "1.0.1")
    assert again.exit_code == 3
    assert "a version never changes" in again.stderr
    assert opmark(work, *train, "next").exit_code == 3
