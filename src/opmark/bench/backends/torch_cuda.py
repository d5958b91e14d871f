"""PyTorch without a compiler on a CUDA GPU: one ATen call per kernel, timed by the device's own marks."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opmark.bench.backends._torch.calls import Calls, Network, call_of, prepared_calls
from opmark.bench.backends._torch.tensors import chain_argument
from opmark.bench.clock.gpu import card_facts, card_slug
from opmark.bench.clock.protocol import Protocol, Tier
from opmark.bench.worker.backend import CHAIN, PARALLEL, SINGLE, Backend, NetworkBlocks, Prepared, Trial
from opmark.bench.worker.gpu_driver import GpuDriver
from opmark.bench.worker.gpu_timing import GpuKernelTrial, GpuNetworkTrial, warm_up
from opmark.core.call import AtenCall
from opmark.core.environment import Fact
from opmark.core.errors import UnavailableError
from opmark.core.kernel import Kernel
from opmark.core.target import Target
from opmark.core.tensor import TensorSpec
from opmark.models.cuda_graph import CUDA_RUNTIME, kernel_on_gpu
from opmark.models.variant import is_training, split_variant

if TYPE_CHECKING:
    from opmark.bench.worker.host_timing import Bench

_DEVICE = "cuda"
_SAMPLES = 20
_FEWER_SAMPLES = 10
_REPLAY_NS = 1_000_000
# Trials that are open at once: a GPU has room for them, and rounds cost less the more they hold.
_CHUNK_BYTES = 16 << 30
_MOST_BYTES = 8 << 30
_RESTART_CHUNKS = 32
_PROCESSOR_FLASH = "_scaled_dot_product_flash_attention_for_cpu"


class _OnDevice:
    """Calls that can be handed over without waiting."""

    def __init__(self, calls: "Calls | Network", driver: GpuDriver) -> None:
        self.copies = calls.copies
        self._calls = calls
        self._driver = driver

    def enqueue(self) -> None:
        """Hand them over."""
        self._calls.call()

    def call(self) -> None:
        """Hand them over, and wait."""
        self._calls.call()
        self._driver.finish()

    def close(self) -> None:
        """Free the tensors."""
        self._calls.close()


class TorchCuda(Backend):
    """Eager torch on a CUDA GPU. `open_driver` makes what talks to it, once per process."""

    name = CUDA_RUNTIME
    language = "aten"

    def __init__(self, open_driver: Callable[[], GpuDriver] | None = None) -> None:
        self._open = open_driver or _cuda_driver
        self._opened: GpuDriver | None = None

    @property
    def driver(self) -> GpuDriver:
        """What talks to the GPU."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def unavailable(self) -> str | None:
        """Why it cannot be used, or None."""
        try:
            import torch
        except ImportError as error:
            return f"{error.name} is not installed"
        if torch.version.cuda is None:
            return "this torch is built without CUDA"
        return None if torch.cuda.is_available() else "torch sees no CUDA GPU"

    def device(self) -> str:
        """The GPU's name as a slug."""
        name = card_facts().get("gpu")
        if not isinstance(name, str):
            import torch

            name = torch.cuda.get_device_name(0)
        return card_slug(name)

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """One per number of threads on the host; whatever the processor, the device is the GPU."""
        del device
        from importlib.metadata import version

        release = ".".join(version("torch").split(".")[:2])
        return tuple(
            Target(device=self.device(), backend=self.name, threads=count, version=release) for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """Versions and settings of the libraries, and the card as its driver describes it."""
        import torch

        return {
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "tf32_convolution": torch.backends.cudnn.allow_tf32,
            "tf32_product": torch.backends.cuda.matmul.allow_tf32,
            **card_facts(),
        }

    def rules(self, protocol: Protocol) -> Protocol:
        """Replays of a millisecond, twenty of them and twenty cold calls (half for a quick answer), and medians."""
        samples = _SAMPLES if protocol.processes > 1 else _FEWER_SAMPLES
        return replace(
            protocol,
            tiers=(Tier(below_ns=math.inf, hot=samples, rotated=samples),),
            sample_ns=_REPLAY_NS,
            label_quantile=0.5,
            chunk_bytes=_CHUNK_BYTES,
            model_limit_bytes=_MOST_BYTES,
            restart_chunks=_RESTART_CHUNKS,
        )

    def as_run(self, kernel: Kernel) -> Kernel:
        """Attention in the variant that a GPU picks."""
        return kernel_on_gpu(kernel)

    def start(self, target: Target) -> None:
        """Wake the GPU up: its clock rises for seconds once there is work."""
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
        """Products of matrices and copies, on the GPU: not the processor's clock, which corrects labels."""
        assert self.driver
        from opmark.bench.backends._torch.cuda_driver import Copy, Multiply

        return {"gpu-compute": Multiply(), "gpu-memory": Copy()}

    def construction(self, kernel: Kernel) -> str:
        """A chain where the result can stand in for an input."""
        return PARALLEL if chain_argument(cuda_call(call_of(kernel))) is None else CHAIN

    def kernel_trial(self, kernel: Kernel, bench: "Bench") -> Trial:
        """A recorded graph of its calls, and single calls out of a flushed cache."""
        return GpuKernelTrial(kernel, bench, self.driver, lambda: self._prepared(kernel))

    def network_trial(self, model: str, dimensions: Mapping[str, int], bench: "Bench") -> NetworkBlocks:
        """The network on the GPU, its result waited for."""
        return GpuNetworkTrial(
            bench, self.driver, lambda: self.prepare_network(model, bench.target, dimensions=dimensions)
        )

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """Copies of the call, each with its own weights."""
        del target
        return self._prepared(kernel, copies=copies, construction=construction, rotated=rotated)

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of sixteen-element rectifiers."""
        del target
        spec = TensorSpec((16,))
        call = AtenCall(op="relu.default", arguments=(spec,), outputs=(spec,))
        made = prepared_calls(call, copies=copies, chain=True, rotated=False, device=_DEVICE)
        return _OnDevice(made, self.driver)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The module on the GPU as users run it: forward in inference mode, or a whole training step."""
        del target
        from opmark.models.resolve import torch_module

        module, given = torch_module(model, dimensions=dimensions)
        module.to(_DEVICE)
        inputs = tuple(item.to(_DEVICE) for item in given)
        if is_training(split_variant(model)[1]):
            from opmark.models.capture.training import TrainingStep

            return _OnDevice(Network(TrainingStep(module, inputs), trains=True), self.driver)
        return _OnDevice(Network(lambda: module(*inputs), trains=False), self.driver)

    def _prepared(
        self, kernel: Kernel, *, copies: int = 1, construction: str = SINGLE, rotated: bool = False
    ) -> _OnDevice:
        chain = construction == CHAIN and not rotated
        made = prepared_calls(cuda_call(call_of(kernel)), copies=copies, chain=chain, rotated=rotated, device=_DEVICE)
        # What a kernel does wrong shows when it is waited for.
        self.driver.finish()
        return _OnDevice(made, self.driver)


def cuda_call(call: AtenCall) -> AtenCall:
    """`call` as a GPU takes it: tensors are made there, and attention is asked for by the name all devices share.

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
