import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.bench.fake import FakeTime

from opmark.bench.backends import null
from opmark.bench.clock.clock import Clock
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.turns import Part
from opmark.bench.worker import host_timing as trial
from opmark.bench.worker.backend import CHAIN, PARALLEL, SINGLE, SUM, Bench
from opmark.bench.worker.host_timing import HostKernelTiming, HostNetworkTiming, stack_copies
from opmark.core.errors import MeasurementError
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import look_of
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.estimate import median
from opmark.core.measurements.records import Block
from opmark.kinds import KINDS, work_of

TARGET = Target(device="d", backend="null")
CALL_NS = 2_000.0


@dataclass
class Copies:
    """Copies on a fake clock; what was prepared is written down."""

    time: FakeTime
    copies: int
    each_ns: float
    ends_ns: float

    def call(self) -> None:
        self.time.latency_ns = CALL_NS + self.ends_ns + self.copies * self.each_ns
        self.time.work()

    def close(self) -> None:
        """Nothing to free."""


class Runtime(null.Null):
    """A null backend on a clock of the test's, whose kernels all take `each_ns`, and their calls `alone_ns` more."""

    alone_ns = 0.0

    def __init__(self, time: FakeTime, each_ns: float, way: str) -> None:
        self.time, self.each_ns, self.way = time, each_ns, way
        self.made: list[tuple[int, str, bool]] = []

    def construction(self, kernel: Kernel) -> str:
        return self.way

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Any:
        self.made.append((copies, construction, rotated))
        return Copies(self.time, copies, self.each_ns * (2 if rotated else 1), self.alone_ns)

    def prepare_empty(self, target: Target, *, copies: int) -> Any:
        return Copies(self.time, copies, 100.0, 0.0)

    def facts(self) -> Mapping[str, Any]:
        return {}


def bench(each_ns: float, way: str = CHAIN) -> tuple[Runtime, Bench]:
    time = FakeTime()
    runtime = Runtime(time, each_ns, way)
    made = Bench(
        backend=runtime,
        target=TARGET,
        clock=Clock(timer=time.timer(), protocol=FULL),
        settle=lambda _: "fifo",
        level2_bytes=1 << 20,
        last_level_bytes=32 << 20,
    )
    return runtime, replace(made, overhead_ns=made.measure_overhead())


def gemm(m: int = 16, k: int = 16, n: int = 16) -> Kernel:
    kind = KINDS.load("gemm")
    return kind.kernel(kind.parameters(m=m, k=k, n=n, dtype="float32"))


def relu(*shape: int) -> Kernel:
    kind = KINDS.load("elementwise")
    return kind.kernel(kind.parameters(op="relu", shapes=(shape,), dtype="float32"))


def latency(answer: dict[str, Any], overhead_ns: float) -> float:
    fields = {**answer, "ns": tuple(answer["ns"]), "base_ns": tuple(answer["base_ns"])}
    look = look_of(Block(trial="k", process=0, round=0, **fields), {}, None, overhead_ns)
    return median(look.ns)


def test_the_cost_of_a_call_is_the_intercept_of_empty_chains() -> None:
    _, made = bench(1000.0)
    assert made.overhead_ns == pytest.approx(CALL_NS, rel=0.01)


@pytest.mark.parametrize("each_ns", [50.0, 900.0, 12_000.0, 39_000.0])
@pytest.mark.parametrize("way", [CHAIN, PARALLEL])
def test_short_kernels_are_told_from_the_call_by_a_slope(each_ns: float, way: str) -> None:
    runtime, made = bench(each_ns, way)
    trial = HostKernelTiming(gemm(), made)
    answer = trial.hot()
    assert answer["construction"] == way
    assert answer["base_copies"] == (2 if way == CHAIN else 1)
    assert latency(answer, made.overhead_ns) == pytest.approx(each_ns, rel=0.01)
    assert all(not rotated for _, _, rotated in runtime.made)


def test_long_matrix_kernels_run_alone_and_lose_the_overhead() -> None:
    _, made = bench(300_000.0)
    answer = HostKernelTiming(gemm(), made).hot()
    assert (answer["construction"], answer["copies"], answer["base_copies"]) == (SINGLE, 1, 0)
    assert latency(answer, made.overhead_ns) == pytest.approx(300_000, rel=0.01)


def test_what_works_in_place_runs_in_chains_however_long_it_takes() -> None:
    _, made = bench(300_000.0)
    answer = HostKernelTiming(relu(1024, 1024), made).hot()
    assert answer["construction"] == CHAIN
    assert latency(answer, made.overhead_ns) == pytest.approx(300_000, rel=0.01)


@pytest.mark.parametrize("each_ns", [900.0, 300_000.0, 3_000_000.0])
def test_what_converts_layouts_alone_is_told_by_a_sum_in_and_out_of_cache(each_ns: float) -> None:
    runtime, made = bench(each_ns, SUM)
    runtime.alone_ns = 70_000.0
    trial = HostKernelTiming(gemm(512, 512, 512), replace(made, last_level_bytes=1 << 20))
    for answer in (trial.hot(), trial.rotated()):
        assert (answer["construction"], answer["base_copies"]) == (SUM, 1)
        assert answer["copies"] >= 3
        # what every call converts at its ends is in both stacks
        assert latency(answer, made.overhead_ns) == pytest.approx(each_ns, rel=0.02)


def test_samples_follow_the_tier() -> None:
    for each_ns, samples in ((1e5, 12), (2e6, 5), (2e7, 4)):
        _, made = bench(each_ns)
        assert len(HostKernelTiming(gemm(), made).hot()["ns"]) == samples


def test_sentinels_are_read_before_every_turn_and_after_the_last() -> None:
    time = FakeTime()
    runtime = Runtime(time, 100_000.0, CHAIN)
    _, made = bench(100_000.0)
    sentinel = Part(call=Copies(time, 1, 40_000.0, 0.0).call, calls=2)
    made = replace(
        made, backend=runtime, clock=Clock(timer=time.timer(), protocol=FULL), sentinels={"compute": sentinel}
    )
    answer = HostKernelTiming(gemm(), made).hot()
    assert len(answer["sentinels"]["compute"]) == len(answer["ns"]) + 1 == 13
    assert set(answer["sentinels"]["compute"]) == {42_000}


@pytest.mark.parametrize(("m", "each_ns"), [(16, 1000.0), (64, 30_000.0), (512, 150_000.0)])
def test_rotated_copies_fill_more_than_the_cache_or_there_are_sixty_four(m: int, each_ns: float) -> None:
    runtime, made = bench(each_ns)
    kernel = gemm(m, m, m)
    trial = HostKernelTiming(kernel, made)
    answer = trial.rotated()
    copies = sum(count for count, _, rotated in runtime.made if rotated)
    assert copies >= FULL.rotated_copies or copies * work_of(kernel).moved_bytes >= 1.4 * (32 << 20)
    assert answer["calls"] == 1, "a second call would find its copies in cache"
    assert latency(answer, made.overhead_ns) == pytest.approx(2 * each_ns, rel=0.02)


def test_a_long_kernel_needs_no_copies_because_other_bytes_go_through_the_cache() -> None:
    runtime, made = bench(400_000.0)
    answer = HostKernelTiming(gemm(512, 512, 512), replace(made, last_level_bytes=1 << 20)).rotated()
    assert not any(rotated for _, _, rotated in runtime.made)
    assert (answer["calls"], answer["copies"], answer["label"]) == (1, 1, "rotated")


def test_groups_of_rotated_copies_are_about_a_millisecond_long() -> None:
    _, made = bench(100_000.0)
    assert HostKernelTiming(gemm(64, 64, 64), made).rotated()["copies"] <= 12
    _, made = bench(500.0)
    assert HostKernelTiming(gemm(64, 64, 64), made).rotated()["copies"] == 64


def test_a_view_is_the_same_in_and_out_of_cache() -> None:
    kind = KINDS.load("movement")
    view = kind.kernel(kind.parameters(op="reshape", shapes=((64, 64),), arguments=(4096,), dtype="float32"))
    runtime, made = bench(200.0)
    answer = HostKernelTiming(view, made).rotated()
    assert answer["label"] == "rotated"
    assert not any(rotated for _, _, rotated in runtime.made)


def test_a_kernel_larger_than_the_limit_is_refused() -> None:
    _, made = bench(1000.0)
    with pytest.raises(MeasurementError, match=r"needs .* GiB, more than 1\.00 GiB"):
        HostKernelTiming(gemm(20_000, 20_000, 20_000), made)


def test_stacks_keep_their_weights_in_the_level_two_cache() -> None:
    def work(weight_bytes: int) -> Work:
        return Work(flops=1, read_bytes=weight_bytes, written_bytes=1, weight_bytes=weight_bytes)

    assert stack_copies(1000.0, work(0), 1 << 20, 32) == 32
    assert stack_copies(1000.0, work(64 << 10), 1 << 20, 32) == 8
    assert stack_copies(1000.0, work(1 << 20), 1 << 20, 32) == 4, "but never too few for a slope"
    assert stack_copies(39_000.0, work(0), 1 << 20, 32) == 9


class Hungry(Runtime):
    """Its networks take small pieces of the heap: 32 MiB of them, and as much again for a library with the first."""

    library: list[bytearray]

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Any:
        if not hasattr(self, "library"):
            self.library = pieces()
        return Holding(self.time, 1, self.each_ns, 0.0, held=pieces())


@dataclass
class Holding(Copies):
    """Copies that need memory until they are closed."""

    held: list[bytearray]

    def close(self) -> None:
        self.held.clear()


def pieces() -> list[bytearray]:
    return [bytearray(64 << 10) for _ in range(512)]


@pytest.fixture
def hungry(monkeypatch: pytest.MonkeyPatch) -> Bench:
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the system keeps no peak to be reset")
    monkeypatch.setattr(trial, "_LOADED", set())
    runtime, made = bench(50_000.0)
    return replace(made, backend=Hungry(runtime.time, 50_000.0, CHAIN))


def peak_bytes(bench: Bench) -> int:
    return int(HostNetworkTiming("any", {}, bench).block()["peak_memory_bytes"])


def test_a_network_in_pages_that_another_left_still_needs_them(hungry: Bench) -> None:
    left = pieces()
    # The last one stays, so that the heap does not shrink by itself.
    del left[:-1]
    assert peak_bytes(hungry) > 24 << 20
    assert len(left) == 1


def test_what_comes_with_a_first_network_is_not_its_memory(hungry: Bench) -> None:
    assert 24 << 20 < peak_bytes(hungry) < 48 << 20
    assert 24 << 20 < peak_bytes(hungry) < 48 << 20
