"""The rules of measuring on a GPU, on one made of numbers."""

from itertools import chain, cycle, repeat

import pytest
from tests.bench.fake_gpu import FakeGpu, FakeKernel

from opmark.bench.backends.torch_cuda import BACKEND, TorchCuda
from opmark.bench.clock.clock import Clock, Timer
from opmark.bench.clock.protocol import FULL, QUICK
from opmark.bench.worker.backend import Bench
from opmark.bench.worker.gpu_timing import GpuKernelTiming, GpuNetworkTiming, calls_for, enqueue_ns, unrolled, warm_up
from opmark.core.errors import MeasurementError
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import look_of
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.records import Block
from opmark.kinds import KINDS

TARGET = Target(device="nvidia-h200", backend="torch-cuda", version="2.9")


def gemm(side: int = 64) -> Kernel:
    kind = KINDS.load("gemm")
    return kind.kernel(kind.parameters(m=side, n=side, k=side))


def bench_on(gpu: FakeGpu) -> Bench:
    timer = Timer(now_ns=lambda: round(gpu.host_ns), preemptions=lambda: 0, faults=lambda: 0, sleep=lambda _: None)
    return Bench(
        backend=TorchCuda(lambda: gpu),
        target=TARGET,
        clock=Clock(timer=timer, protocol=BACKEND.adapt(FULL)),
        settle=lambda _: "normal",
        level2_bytes=1 << 20,
        last_level_bytes=32 << 20,
        overhead_ns=7_000.0,
    )


def trial_of(gpu: FakeGpu, made: FakeKernel, kernel: Kernel | None = None) -> GpuKernelTiming:
    return GpuKernelTiming(kernel or gemm(), bench_on(gpu), gpu, lambda: made)


def block(fields: dict[str, object], process: int = 0, number: int = 0) -> Block:
    lists = {name: tuple(fields[name]) for name in ("ns", "base_ns", "clocks_mhz")}  # type: ignore[arg-type]
    return Block(trial="t", process=process, round=number, **{**fields, **lists})  # type: ignore[arg-type]


def test_rules_are_six_replays_of_a_millisecond_and_medians():
    full, quick = BACKEND.adapt(FULL), BACKEND.adapt(QUICK)
    assert (full.sample_ns, full.label_quantile) == (1_000_000, 0.5)
    assert (full.tier(5.0).hot, full.tier(1e9).hot, full.tier(5.0).rotated) == (6, 6, 8)
    assert (quick.tier(5.0).hot, quick.tier(5.0).rotated) == (4, 5)
    assert FULL.label_quantile == 0.1


def test_a_graph_holds_as_many_calls_as_take_a_millisecond():
    gpu = FakeGpu()
    trial = trial_of(gpu, FakeKernel(gpu, hot_ns=2_000.0))
    assert trial.calls == 550
    assert gpu.graphs[-1].replay_ns() >= 1e6
    assert [graph.closed for graph in gpu.graphs] == [True, False]


def test_a_long_kernel_is_recorded_once():
    gpu = FakeGpu()
    assert trial_of(gpu, FakeKernel(gpu, hot_ns=3e6)).calls == 1
    assert len(gpu.graphs) == 1


def test_calls_that_cost_less_in_a_long_graph_are_counted_again():
    gpu = FakeGpu()
    made = FakeKernel(gpu)

    class Starting:
        def __init__(self, calls: int) -> None:
            self.calls = calls

        def replay_ns(self) -> float:
            # Beginning a graph takes 6 µs, whatever is in it.
            return 6_000.0 + 1_000.0 * self.calls

        def close(self) -> None:
            pass

    gpu.record = lambda _, calls: Starting(calls)  # type: ignore[assignment, method-assign]
    calls, graph = unrolled(made.enqueue, gpu, 1e6)
    assert graph.replay_ns() >= 1e6
    assert calls < 2048


def test_the_number_of_calls_is_bounded():
    assert calls_for(1.0, 1e6) == 2048
    assert calls_for(0.0, 1e6) == 2048
    assert calls_for(5e6, 1e6) == 1


def test_a_hot_block_holds_six_replays():
    gpu = FakeGpu()
    trial = trial_of(gpu, FakeKernel(gpu))
    before = len(gpu.replays)
    taken = block(trial.hot(), number=0)
    # One more, that nobody looks at.
    assert len(gpu.replays) - before == 6 + 1
    look = look_of(taken, {}, None, overhead_ns=7_000.0)
    # Divided by the calls, and the host's overhead not taken off.
    assert look.ns == pytest.approx([2_000.0] * 6, rel=1e-3)


def test_rotated_flushes_before_each_of_eight_calls_and_holds_the_device_meanwhile():
    gpu = FakeGpu()
    made = FakeKernel(gpu, cold_ns=9_000.0, enqueue_ns=40_000.0)
    found = block(trial_of(gpu, made).rotated())
    assert len(found.ns) == 8
    assert gpu.flushes == 9
    assert min(gpu.holds) > 40_000.0
    assert set(found.ns) == {9_000.0}
    assert found.copies == 1


def test_a_view_is_the_same_in_and_out_of_cache():
    gpu = FakeGpu()
    kind = KINDS.load("movement")
    view = kind.kernel(kind.parameters(op="reshape", shapes=((4, 4),), arguments=(16,), dtype="float32"))
    found = trial_of(gpu, FakeKernel(gpu), view).rotated()
    assert found["label"] == "rotated"
    assert gpu.flushes == 0


def test_enqueueing_is_timed_by_the_host_alone():
    gpu = FakeGpu()
    made = FakeKernel(gpu, enqueue_ns=3_300.0)
    assert enqueue_ns(made.enqueue, gpu, lambda: round(gpu.host_ns)) == pytest.approx(3_300.0)
    assert block(trial_of(gpu, made).hot()).enqueue_ns == pytest.approx(3_300.0)


def test_samples_off_the_usual_clock_are_not_clean():
    gpu = FakeGpu()
    trial = trial_of(gpu, FakeKernel(gpu))
    gpu.clocks = chain([1590.0, 1590.0, 1200.0, 1590.0], repeat(1590.0))
    assert trial.hot()["clean"] == "110" + "1" * 3
    gpu.clocks = cycle([1590.0] * 7 + [1200.0])
    found = block(trial.rotated())
    assert found.clean == "1" * 7 + "0"
    assert found.clocks_mhz[7] == 1200.0


def test_cycles_do_not_depend_on_the_clock():
    gpu = FakeGpu()
    trial = trial_of(gpu, FakeKernel(gpu, hot_ns=2_000.0))
    first = block(trial.hot())
    assert first.cycles[0] == pytest.approx(2_000.0 * 1.590, rel=1e-3)


def test_without_a_clock_every_sample_counts():
    gpu = FakeGpu(clocks=repeat(None))
    found = block(trial_of(gpu, FakeKernel(gpu)).hot())
    assert found.clocks_mhz == ()
    assert set(found.clean) == {"1"}


def test_what_cannot_be_recorded_is_skipped_and_freed():
    gpu = FakeGpu(recordable=False)
    made = FakeKernel(gpu)
    with pytest.raises(MeasurementError, match="CUDA graph"):
        trial_of(gpu, made)
    assert made.closed


def test_what_does_not_fit_is_not_built():
    gpu = FakeGpu(memory_bytes=1 << 20)
    with pytest.raises(MeasurementError, match="needs"):
        trial_of(gpu, FakeKernel(gpu), gemm(2048))
    assert not gpu.graphs


def test_closing_frees_graph_tensors_and_memory():
    gpu = FakeGpu()
    made = FakeKernel(gpu)
    trial_of(gpu, made).close()
    assert made.closed
    assert all(graph.closed for graph in gpu.graphs)
    assert gpu.released == 1


def test_a_network_is_timed_until_its_result_is_there():
    gpu = FakeGpu()
    network = FakeKernel(gpu, enqueue_ns=2e6)

    def prepare() -> FakeKernel:
        gpu.peak = 3 << 30
        return network

    trial = GpuNetworkTiming(bench_on(gpu), gpu, prepare)
    found = block(trial.block())
    assert found.label == "network"
    assert set(found.ns) == {2e6}
    assert found.label_quantile == 0.5
    # The host's share of it, and the device's.
    assert found.enqueue_ns == 2e6
    assert found.device_ns == 2_000.0
    assert max(gpu.holds) > 2e6
    assert found.peak_memory_bytes == 3 << 30
    trial.close()
    assert network.closed


def test_the_warm_up_ends_once_the_sentinel_stays():
    readings = iter([200.0, 150.0, 120.0, 110.0, 101.0, 100.5, 100.2, 100.0])
    assert list(warm_up(lambda: next(readings)))[-1] == 100.2
    assert len(warm_up(chain(cycle([100.0, 150.0])).__next__, most=30)) == 30
