"""`opmark predictors evaluate`, `curve` and `time-by-kind`: tables, pages and documented JSON."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands.predictors.calls import answered, opmark
from tests.datasets import sample
from tests.predictors import law

from opmark.core.units import format_ns
from opmark.datasets.release.building import build_from
from opmark.predictors.judging import scores


def test_evaluation_is_rows_of_documented_keys(root: Path) -> None:
    rows = answered(
        root, "predictors", "evaluate", "--estimator", "roofline", "--estimator", "lightgbm", "--split", "random"
    )
    keys = {"target", "estimator", "split", "metric", "value", "n", "noise_floor", "low", "high", "families"}
    assert all(set(row) == keys for row in rows)
    assert {row["estimator"] for row in rows} == {"roofline", "lightgbm"}
    assert {"acc10", "kendall-tau", "rmspe"} <= {row["metric"] for row in rows}
    text = opmark(root, "predictors", "evaluate", "--estimator", "roofline", "--split", "random").stdout
    assert "floor" in text


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


def test_an_interrupted_evaluation_goes_on_and_prints_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        shutil.copytree(root, tmp_path / name, ignore=shutil.ignore_patterns(".cache"))
    options = ("predictors", "evaluate", "--estimator", "roofline", "--estimator", "nearest", "--split", "random")
    whole = opmark(tmp_path / "a", *options)
    assert whole.exit_code == 0, whole.stderr
    assert "judged before" not in whole.stderr
    calls: list[str] = []
    really = scores.judge_sides

    def stopped(sides: Any, estimator: str) -> Any:
        calls.append(estimator)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return really(sides, estimator)

    monkeypatch.setattr(scores, "judge_sides", stopped)
    first = opmark(tmp_path / "b", *options)
    assert first.exit_code == 130
    assert "run the same command again" in first.stderr
    assert first.stdout == ""
    second = opmark(tmp_path / "b", *options)
    assert second.exit_code == 0
    assert "1 of " in second.stderr
    assert "judged before" in second.stderr
    assert second.stdout == whole.stdout


def test_the_stored_predictor_is_judged_on_sealed_networks_as_it_is(root: Path, tmp_path: Path) -> None:
    nothing = opmark(root, "predictors", "evaluate", "--sealed")
    assert nothing.exit_code == 5
    assert "no sealed networks" in nothing.stderr
    mixed = opmark(root, "predictors", "evaluate", "--sealed", "--split", "random")
    assert mixed.exit_code == 2
    shutil.copytree(root, tmp_path / "work")
    shutil.rmtree(tmp_path / "work" / "datasets")
    rows = [sample.measurement(kernel) for kernel in law.kernels("gemm", 20)]
    networks = [
        sample.network("plain-tiny", role="training"),
        sample.network("encoder-tiny", role="sealed", family="sealed-one", graph_id="1" * 16),
        sample.network("gone", role="sealed", family="sealed-two", graph_id="2" * 16, latency_ns=None,
                       quantiles_ns=(), status="failed", reason="out of memory"),
    ]  # fmt: skip
    build_from([sample.contents(rows, networks)], tmp_path / "work" / "datasets")
    (found,) = answered(tmp_path / "work", "predictors", "evaluate", "--sealed")
    first, second = found["networks"]
    assert (first["network"], first["measured_ns"], second["reason"]) == ("encoder-tiny", 1.5e6, "out of memory")
    assert first["error"] == pytest.approx(first["predicted_ns"] / 1.5e6 - 1)
    assert {score["split"] for score in found["scores"]} == {"sealed"}
    shown = opmark(tmp_path / "work", "predictors", "evaluate", "--sealed")
    assert "failed: out of memory" in shown.stdout
    assert "1 sealed network, families: 1; " in shown.stdout
