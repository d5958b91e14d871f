"""What the first release was promised to hold, counted in its rows."""

from pathlib import Path

import pandas
import pytest

from opmark.core.measurements.estimate import quantile
from opmark.datasets.release.finding import names
from opmark.datasets.release.release import Release, load

FOLDER = Path(__file__).resolve().parents[2] / "datasets"
NAME = "amd-26-2-1-2vcpu-l3-32m/1.0.0"
ONNX, TORCH = "onnxruntime-cpu-t1", "torch-eager-t1"


@pytest.fixture(scope="module")
def release() -> Release:
    if NAME not in names(FOLDER):
        pytest.skip("the first release is not here")
    return load(FOLDER / NAME)


def count(rows: pandas.DataFrame, target: str, *dtypes: str) -> int:
    return int(((rows["target"] == target) & rows["dtype"].isin(dtypes) & (rows["latency_hot_ns"] > 0)).sum())


def test_there_are_enough_kernels_of_every_element_type(release: Release) -> None:
    rows = release.kernels
    assert count(rows, ONNX, "float32") >= 6_000
    assert count(rows, ONNX, "uint8", "int8") >= 1_500
    assert count(rows, TORCH, "float32", "bfloat16") >= 4_000
    backward = rows[(rows["target"] == TORCH) & rows["kind"].str.endswith("-backward")]
    assert set(backward["dtype"]) == {"float32", "bfloat16"}
    usable = rows[rows["latency_hot_ns"] > 0]
    assert usable.groupby(["target", "kind"]).size().min() >= 60


def test_there_are_enough_networks_of_enough_families(release: Release) -> None:
    rows = release.networks[release.networks["latency_ns"] > 0]
    assert len(rows) >= 150
    assert rows["family"].nunique() >= 35
    assert {1, 8} <= set(rows["batch"])
    assert (rows.groupby("network")["size"].nunique() >= 2).sum() >= 35


def test_labels_repeat_and_few_are_in_doubt(release: Release) -> None:
    rows = release.kernels
    usable = rows[rows["latency_hot_ns"] > 0]
    assert (usable["status"] == "low_quality").mean() <= 0.03
    repeats = release.tables["kernel_repeats"].to_pandas()
    keys = ["target", "kernel_key"]
    both = repeats[repeats["status"] == "ok"].merge(rows[rows["status"] == "ok"], on=keys, suffixes=("_again", ""))
    assert len(both) >= 0.05 * len(usable)
    apart = list((both["latency_hot_ns_again"] / both["latency_hot_ns"] - 1).abs())
    assert quantile(apart, 0.5) <= 0.01
    assert quantile(apart, 0.95) <= 0.05
