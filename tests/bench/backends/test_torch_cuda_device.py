"""The CUDA backend on a real GPU: marks, graphs, flushes and networks. Nothing here changes the card's settings."""

from pathlib import Path

import pytest

from opmark.bench.backends.torch_cuda import BACKEND
from opmark.bench.clock.clock import Clock, machine_timer
from opmark.bench.clock.protocol import QUICK
from opmark.bench.run.runner import run
from opmark.bench.suite.suite import KindSpec, Suite
from opmark.bench.worker.backend import Bench
from opmark.bench.worker.gpu_timing import GpuDriver
from opmark.core.errors import MeasurementError
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import read_journal
from opmark.kinds import KINDS

REASON = BACKEND.unavailable()
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no GPU to measure: {REASON}")


@pytest.fixture(scope="module")
def bench() -> Bench:
    (target,) = BACKEND.targets("")
    BACKEND.start(target)
    return Bench(
        backend=BACKEND,
        target=target,
        clock=Clock(timer=machine_timer(), protocol=BACKEND.adapt(QUICK)),
        settle=lambda _: "normal",
        level2_bytes=1 << 20,
        last_level_bytes=32 << 20,
    )


@pytest.fixture
def driver(bench: Bench) -> GpuDriver:
    return BACKEND.driver


def kernel(name: str, **parameters: object) -> Kernel:
    kind = KINDS.load(name)
    return kind.kernel(kind.parameters(**parameters))


def test_the_card_describes_itself(driver: GpuDriver):
    assert driver.level2_bytes > 1 << 20
    assert BACKEND.device().startswith("nvidia-")
    assert BACKEND.facts()["gpu"]
    assert (driver.clock_mhz() or 1.0) > 0


def test_a_graph_of_a_small_kernel_takes_a_millisecond(bench: Bench):
    trial = BACKEND.kernel_timing(kernel("gemm", m=64, n=64, k=64), bench)
    block = trial.hot()
    assert min(block["ns"]) > 0.8e6
    # A small product takes microseconds, and less than it takes to hand it over one by one.
    assert 0.3e3 < median(block["ns"]) / block["copies"] < 50e3
    assert block["enqueue_ns"] > 0
    trial.close()


def test_a_copy_is_slower_out_of_cache(bench: Bench):
    trial = BACKEND.kernel_timing(kernel("elementwise", op="relu", shapes=((1024, 1024),)), bench)
    hot, cold = trial.hot(), trial.rotated()
    assert median(cold["ns"]) / cold["copies"] > median(hot["ns"]) / hot["copies"]
    trial.close()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_runs_in_the_kernel_that_the_gpu_picks(bench: Bench, dtype: str):
    shape = {"batch": 1, "heads": 8, "kv_heads": 8, "query_length": 128, "key_length": 128}
    wanted = kernel("attention", **shape, head_size=64, value_size=64, variant="flash", dtype=dtype)
    trial = BACKEND.kernel_timing(BACKEND.as_run(wanted), bench)
    assert trial.hot()["ns"]
    trial.close()


def test_the_graph_of_a_network_is_the_one_that_the_gpu_runs(bench: Bench, tmp_path: Path):
    from opmark.models.capture.aten import capture
    from opmark.models.resolve import graph_of, torch_module

    def build():  # type: ignore[no-untyped-def]
        module, inputs = torch_module("encoder-tiny")
        return module.to("cuda"), tuple(item.to("cuda") for item in inputs)

    told = graph_of("encoder-tiny", "torch-cuda-t1", cache=tmp_path)
    real = capture(build, name="encoder-tiny")
    assert [node.kernel for node in told.costly] == [node.kernel for node in real.costly]


def test_what_waits_for_the_device_cannot_be_recorded_and_harms_nothing(driver: GpuDriver):
    import torch

    values = torch.ones(16, device="cuda")
    with pytest.raises(MeasurementError, match="CUDA graph"):
        driver.record(lambda: values.sum().item(), 1)
    graph = driver.record(lambda: values.mul(2), 10)
    assert graph.replay_ns() > 0
    graph.close()


def test_a_run_fills_a_journal(tmp_path: Path):
    suite = Suite(
        name="cards",
        targets=("torch-cuda-t1",),
        quality="quick",
        dtypes=("float32", "bfloat16"),
        kinds={"gemm": KindSpec(count=3), "conv": KindSpec(count=3), "softmax": KindSpec(count=3)},
    )
    summary = run(suite, journal=tmp_path / "gpu.jsonl")
    assert summary.complete
    found = read_journal(tmp_path / "gpu.jsonl")
    usable = [row for row in found.measurements if row.latency_hot_ns is not None]
    assert len(usable) >= 0.9 * len(found.measurements)
    assert found.environment.device == BACKEND.device()
