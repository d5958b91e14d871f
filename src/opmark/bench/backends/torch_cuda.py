"""Eager PyTorch on a CUDA GPU: one ATen call per kernel, timed by the device's own clock."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opmark.bench.backends._torch.calls import (
    CHEAPEST,
    Calls,
    PreparedNetwork,
    call_of,
    network_call,
    prepared_calls,
)
from opmark.bench.backends._torch.tensors import chain_argument
from opmark.bench.clock.gpu import gpu_facts, gpu_slug
from opmark.bench.clock.protocol import MeasuringProtocol, Tier
from opmark.bench.worker.backend import CHAIN, PARALLEL, SINGLE, Backend, Bench, KernelTiming, NetworkTiming, Prepared
from opmark.bench.worker.divided import DividedNetwork
from opmark.bench.worker.gpu_timing import GpuDriver, GpuKernelTiming, GpuNetworkTiming, warm_up
from opmark.core.errors import UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Fact
from opmark.models.cuda_graph import CUDA_RUNTIME, kernel_on_gpu

_DEVICE = "cuda"
# Replays of a graph differ by 0.1 % within a process, single calls by 3 %, and processes by 1 % (decision 0055).
_REPLAYS, _COLD_CALLS = 6, 8
_FEWER_REPLAYS, _FEWER_COLD_CALLS = 4, 5
_REPLAY_NS = 1_000_000
_MOST_BYTES = 8 << 30
# Starting and warming up a GPU takes many seconds.
_LOOKS_PER_PROCESS = 1000
_PROCESSOR_FLASH = "_scaled_dot_product_flash_attention_for_cpu"


class _OnDevice:
    """Calls that can be enqueued without waiting."""

    def __init__(self, calls: "Calls | PreparedNetwork", driver: GpuDriver) -> None:
        self.copies = calls.copies
        self._calls = calls
        self._driver = driver

    def enqueue(self) -> None:
        """Enqueue the calls."""
        self._calls.call()

    def call(self) -> None:
        """Enqueue the calls, and wait."""
        self._calls.call()
        self._driver.finish()

    def close(self) -> None:
        """Free the tensors."""
        self._calls.close()


class TorchCuda(Backend):
    """Eager torch on a CUDA GPU. `open_driver` creates the driver, once per process."""

    name = CUDA_RUNTIME
    language = "aten"
    to_install = "install a CUDA build of torch"

    def __init__(self, open_driver: Callable[[], GpuDriver] | None = None) -> None:
        self._open = open_driver or _cuda_driver
        self._opened: GpuDriver | None = None

    @property
    def driver(self) -> GpuDriver:
        """The driver of the GPU."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def unavailable(self) -> str | None:
        """The reason why it cannot be used, or None."""
        try:
            import torch
        except ImportError as error:
            return f"{error.name} is not installed"
        if torch.version.cuda is None:
            return "this torch is built without CUDA"
        return None if torch.cuda.is_available() else "torch sees no CUDA GPU"

    def device(self) -> str:
        """The GPU's name as a slug."""
        name = gpu_facts().get("gpu")
        if not isinstance(name, str):
            import torch

            name = torch.cuda.get_device_name(0)
        return gpu_slug(name)

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """One target per number of host threads; the device is the GPU."""
        del device
        from importlib.metadata import version

        release = ".".join(version("torch").split(".")[:2])
        return tuple(
            Target(device=self.device(), backend=self.name, threads=count, version=release) for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """Versions and settings of the libraries, and the facts of the GPU."""
        import torch

        return {
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "tf32_convolution": torch.backends.cudnn.allow_tf32,
            "tf32_product": torch.backends.cuda.matmul.allow_tf32,
            **gpu_facts(),
        }

    def hardware(self) -> Mapping[str, Fact]:
        """The caches and multiprocessors of the GPU; all multiprocessors share the level-2 cache."""
        import torch

        if not torch.cuda.is_available():
            return {}
        found = torch.cuda.get_device_properties(0)
        return {
            "multiprocessors": found.multi_processor_count,
            "level1_bytes": found.shared_memory_per_multiprocessor,
            "level2_bytes": found.L2_cache_size,
            "last_level_bytes": found.L2_cache_size,
        }

    def adapt(self, protocol: MeasuringProtocol) -> MeasuringProtocol:
        """Six replays of a millisecond, eight cold calls (four and five for one process), and medians."""
        several = protocol.processes > 1
        replays, cold_calls = (_REPLAYS, _COLD_CALLS) if several else (_FEWER_REPLAYS, _FEWER_COLD_CALLS)
        return replace(
            protocol,
            tiers=(Tier(below_ns=math.inf, hot=replays, rotated=cold_calls),),
            sample_ns=_REPLAY_NS,
            label_quantile=0.5,
            model_limit_bytes=_MOST_BYTES,
            looks_per_process=_LOOKS_PER_PROCESS,
        )

    def as_run(self, kernel: Kernel) -> Kernel:
        """Attention in the variant that a GPU chooses."""
        return kernel_on_gpu(kernel)

    def start(self, target: Target) -> None:
        """Warm up the GPU: its clock rises for seconds once there is work."""
        import torch

        torch.set_num_threads(target.threads)
        product = self.sentinels()["gpu-compute"]

        def read_ns() -> float:
            start = time.perf_counter_ns()
            product.call()
            return float(time.perf_counter_ns() - start)

        warm_up(read_ns)
        product.close()

    def sentinels(self) -> Mapping[str, Prepared]:
        """Matrix products and copies on the GPU. Their names differ from the processor's, which correct labels."""
        assert self.driver
        from opmark.bench.backends._torch.cuda_driver import Copy, Multiply

        return {"gpu-compute": Multiply(), "gpu-memory": Copy()}

    def construction(self, kernel: Kernel) -> str:
        """A chain if the result can replace an input."""
        return PARALLEL if chain_argument(cuda_call(call_of(kernel))) is None else CHAIN

    def kernel_timing(self, kernel: Kernel, bench: Bench) -> KernelTiming:
        """A recorded graph of calls, and single calls after a cache flush."""
        return GpuKernelTiming(kernel, bench, self.driver, lambda: self._prepared(kernel))

    def network_timing(self, model: str, dimensions: Mapping[str, int], bench: Bench) -> NetworkTiming:
        """The network on the GPU, including the wait for its result."""
        return GpuNetworkTiming(
            bench, self.driver, lambda: self.prepare_network(model, bench.target, dimensions=dimensions)
        )

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """Copies of the call, each with its own weights."""
        del target
        return self._prepared(kernel, copies=copies, construction=construction, rotated=rotated)

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of ReLUs on sixteen elements."""
        del target
        made = prepared_calls(CHEAPEST, copies=copies, chain=True, rotated=False, device=_DEVICE)
        return _OnDevice(made, self.driver)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> _OnDevice:
        """The module on the GPU: a forward pass in inference mode, or a whole training step."""
        del target
        return _OnDevice(network_call(model, dimensions, device=_DEVICE), self.driver)

    def divided(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> DividedNetwork:
        """The calls of the module, on the GPU."""
        from opmark.bench.backends._torch.divided import divided_network

        del target
        return divided_network(model, dimensions, device=_DEVICE)

    def _prepared(
        self, kernel: Kernel, *, copies: int = 1, construction: str = SINGLE, rotated: bool = False
    ) -> _OnDevice:
        chain = construction == CHAIN and not rotated
        made = prepared_calls(cuda_call(call_of(kernel)), copies=copies, chain=chain, rotated=rotated, device=_DEVICE)
        # Errors of a kernel appear only when the host waits for it.
        self.driver.finish()
        return _OnDevice(made, self.driver)


def cuda_call(call: AtenCall) -> AtenCall:
    """`call` for a GPU: it creates tensors there, and attention has the name that all devices share.

    Raises `UnavailableError` for a call that only processors have.
    """
    keywords: dict[str, Any] = {
        name: _DEVICE if name == "device" and value == "cpu" else value for name, value in call.keywords.items()
    }
    name = call.op.partition(".")[0]
    if name != _PROCESSOR_FLASH:
        if name.endswith(("_for_cpu", "_for_cpu_backward")):
            raise UnavailableError(f"aten::{call.op} is for processors only")
        return replace(call, keywords=keywords)
    q, k, v, dropout, causal = (*call.arguments, 0.0, False)[:5]
    groups = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    return replace(
        call,
        op="scaled_dot_product_attention.default",
        arguments=(q, k, v, keywords.get("attn_mask"), dropout, causal),
        keywords=groups,
        outputs=call.outputs[:1],
    )


def _cuda_driver() -> GpuDriver:
    from opmark.bench.backends._torch.cuda_driver import CudaDriver

    return CudaDriver()


BACKEND = TorchCuda()
