"""The CUDA backend over a GPU made of numbers: kernels take a time by what they compute, cold ones twice as long."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench.fake_gpu import FakeGpu, FakeKernel

from opmark.bench.backends.torch_cuda import TorchCuda
from opmark.bench.clock.clock import Timer
from opmark.bench.worker.backend import CHAIN, Prepared
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Fact
from opmark.kinds import work_of


class FakeCuda(TorchCuda):
    name = "fakegpu"

    def __init__(self) -> None:
        self.gpu = FakeGpu()
        super().__init__(lambda: self.gpu)

    def unavailable(self) -> str | None:
        return None

    def device(self) -> str:
        return "nvidia-made-up"

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        return tuple(Target(device=self.device(), backend=self.name, threads=count) for count in threads)

    def facts(self) -> Mapping[str, Fact]:
        return {"gpu": "made up"}

    def start(self, target: Target) -> None:
        pass

    def timer(self) -> Timer:
        return Timer(now_ns=lambda: round(self.gpu.host_ns), preemptions=lambda: 0, faults=lambda: 0, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.gpu.host_ns += seconds * 1e9

    def sentinels(self) -> Mapping[str, Prepared]:
        return {name: FakeKernel(self.gpu, enqueue_ns=1e6) for name in ("gpu-compute", "gpu-memory")}

    def construction(self, kernel: Kernel) -> str:
        return CHAIN

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        return FakeKernel(self.gpu, enqueue_ns=9_000.0 + 3_000.0 * copies)

    def _prepared(self, kernel: Kernel, **_: Any) -> Any:
        hot_ns = hot_latency_ns(kernel)
        return FakeKernel(self.gpu, hot_ns=hot_ns, cold_ns=2 * hot_ns, enqueue_ns=3_000.0)


def hot_latency_ns(kernel: Kernel) -> float:
    work = work_of(kernel)
    return 1_500.0 + (work.flops + work.moved_bytes) / 1e3


BACKEND = FakeCuda()
