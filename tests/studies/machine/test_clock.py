"""Whether it is a slow hour is told from what was measured on the same machine before."""

from dataclasses import replace
from pathlib import Path

import pytest

from opmark.bench.run.noise import Noise, judged
from opmark.core.canonical import plain
from opmark.core.files import json_text
from opmark.core.hardware.target import Target
from opmark.datasets.format.manifest import ReleaseManifest, RowSource
from opmark.studies.machine import clock as usual_clock
from opmark.studies.machine.clock import clock_now, usual_sentinels_ns

RUNTIME = Target(device="cpu", backend="onnxruntime", provider="cpu")
MADE_UP = Target(device="cpu", backend="null")
CALM = judged(clean_fraction=1.0, compute_spread=0.0, memory_spread=0.0, median_bias=0.0, pressure=0.0, real_time=True)


def source(name: str, compute: float, memory: float, seconds: float, target: str = RUNTIME.name) -> RowSource:
    return RowSource(
        name=name,
        sha256="0",
        kernels=1,
        networks=0,
        sentinels_ns={f"{target}/compute": compute, f"{target}/memory": memory},
        sampled_s={target: seconds},
    )


def release(*sources: RowSource, version: str = "1.0.0") -> ReleaseManifest:
    return ReleaseManifest(
        name=f"cpu-{version}",
        device="cpu",
        version=version,
        id="1",
        files=(),
        targets=(RUNTIME, MADE_UP),
        environments=(),
        sources=sources,
    )


def seen(compute: float, memory: float) -> Noise:
    return replace(CALM, sentinels_ns={"compute": compute, "memory": memory})


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(usual_clock, "device_slug", lambda: "cpu")
    told = release(source("a", 100.0, 200.0, 50.0), source("b", 108.0, 216.0, 20.0))
    for found in (told, replace(told, version="1.1.0", sources=())):
        folder = tmp_path / "cpu" / found.version
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json_text({"schema": 1, **plain(found)}))
    return tmp_path


def test_the_usual_reading_is_the_median_of_the_time_it_was_seen_for() -> None:
    made_up = source("null", 1.0, 2.0, 1e6, MADE_UP.name)
    readings = (source("a", 100.0, 200.0, 50.0), source("b", 108.0, 216.0, 20.0), source("c", 90.0, 180.0, 20.0))
    assert usual_sentinels_ns(release(*readings, made_up)) == {"compute": 100.0, "memory": 200.0}
    assert usual_sentinels_ns(release(replace(readings[1], sampled_s={}))) == {"compute": 108.0, "memory": 216.0}
    assert usual_sentinels_ns(release()) == {}


def test_a_slow_hour_is_told_with_what_to_do(datasets: Path) -> None:
    slow = clock_now(seen(108.0, 216.0), datasets)
    assert slow is not None
    assert slow.release == "cpu/1.0.0", "the newest that says anything about sentinels"
    assert slow.ratio == pytest.approx(1.08)
    assert slow.off == pytest.approx(0.0)
    assert slow.advice.startswith("The clock is 8% slower than at the state of cpu/1.0.0: kernels may be measured")


@pytest.mark.parametrize(("compute", "memory"), [(101.0, 202.0), (92.0, 184.0), (108.0, 300.0), (130.0, 260.0)])
def test_any_other_hour_needs_no_words(datasets: Path, compute: float, memory: float) -> None:
    found = clock_now(seen(compute, memory), datasets)
    assert found is not None
    assert found.advice == ""


def test_a_machine_that_nothing_was_released_of_has_no_usual_clock(
    datasets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (datasets / "cpu" / "1.0.0" / "manifest.json").write_text("{")
    assert clock_now(seen(100.0, 200.0), datasets) is None, "a damaged one is for `datasets validate`"
    monkeypatch.setattr(usual_clock, "device_slug", lambda: "another")
    assert clock_now(seen(100.0, 200.0), datasets) is None
