"""No hardware: latencies by formula on a fake clock, so that a whole run takes seconds."""

import hashlib
import math
import random
from collections.abc import Mapping, Sequence

from opmark.bench.clock.clock import Timer
from opmark.bench.worker.backend import CHAIN, Backend, Piece, Prepared
from opmark.bench.worker.neighbour import Neighbour, NeighbourWork
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.environment import Fact
from opmark.kinds import kind_of, work_of

# Provider → (operations per ns, bytes per ns, fixed ns of a kernel). Placement needs machines that differ.
_MACHINES = {"": (40.0, 20.0, 400.0), "a": (60.0, 12.0, 900.0), "b": (15.0, 30.0, 250.0)}
_CALL_NS = 2_000.0
_NOISE = 0.004
_COLD_SLOWDOWN = 2.5
_CACHE_BYTES = 32 << 20
_FUSING = frozenset({"conv", "gemm", "matmul"})


class _FakeClock:
    """A clock that advances only when work runs on it; it is the same on every machine."""

    def __init__(self) -> None:
        self._now_ns = 0.0
        self._random = random.Random(0)
        # The traffic of what runs beside all work, as a share of what the memory can carry.
        self.pressure = 0.0

    def run(self, latency_ns: float, sensitivity: float = 0.0) -> None:
        """Advance by about `latency_ns` and never by less, as on a real machine."""
        slowed_ns = latency_ns * (1 + sensitivity * self.pressure)
        self._now_ns += slowed_ns * (1 + abs(self._random.gauss(0, _NOISE)))

    def sleep(self, seconds: float) -> None:
        """Advance by `seconds`."""
        self._now_ns += seconds * 1e9

    def timer(self) -> Timer:
        """This clock as a timer without interruptions."""
        return Timer(now_ns=lambda: round(self._now_ns), preemptions=lambda: 0, faults=lambda: 0, sleep=self.sleep)


_CLOCK = _FakeClock()


class _Formula:
    """Work that takes `latency_ns` of the fake clock per call."""

    def __init__(self, latency_ns: float, copies: int = 1, sensitivity: float = 0.0) -> None:
        self._latency_ns = latency_ns
        self._sensitivity = sensitivity
        self.copies = copies

    def call(self) -> None:
        """Advance the fake clock."""
        _CLOCK.run(self._latency_ns, self._sensitivity)

    def close(self) -> None:
        """Nothing to free."""


class _Beside:
    """A neighbour that exists as a number: the share of the memory's traffic that it takes."""

    def __init__(self) -> None:
        self._pressure = 0.0

    def load(self, work: NeighbourWork) -> None:
        """A stressor takes what its level says, if it is one of the memory; a kernel what its traffic is."""
        kind, _, level = work.stressor.partition("-")
        if work.kernel is not None:
            self._pressure = 0.5 * _traffic_share(work_of(work.kernel))
        else:
            self._pressure = 0.4 * float(level) / 100 if kind == "memory" else 0.02

    def go(self) -> None:
        """Let it run."""
        _CLOCK.pressure = self._pressure

    def rest(self) -> None:
        """Let it rest."""
        _CLOCK.pressure = 0.0

    def close(self) -> None:
        """Let it rest for ever."""
        _CLOCK.pressure = 0.0


class Null(Backend):
    """A roofline with a utilisation per kind, as three targets: null-t1, null-a-t1, null-b-t1."""

    name = "null"
    language = "onnx"

    def unavailable(self) -> str | None:
        """None: always usable."""
        return None

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """One target per imaginary machine and number of threads."""
        return tuple(
            Target(device=device, backend=self.name, provider=provider, threads=count, version="1.0")
            for provider in _MACHINES
            for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """The version of the formula."""
        return {"version": "1.0"}

    def timer(self) -> Timer | None:
        """The fake clock."""
        return _CLOCK.timer()

    def sentinels(self) -> Mapping[str, Prepared]:
        """Two constants."""
        return {"compute": _Formula(40_000.0), "memory": _Formula(200_000.0)}

    def neighbour(self) -> Neighbour | None:
        """A number in place of a process."""
        return _Beside()

    def construction(self, kernel: Kernel) -> str:
        """Every kernel can be chained."""
        kind_of(kernel)
        return CHAIN

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """The formula once per copy, plus the cost of a call."""
        del construction
        work = work_of(kernel)
        each = kernel_ns(kernel, work, target, rotated=rotated)
        return _Formula(_CALL_NS + copies * each, copies, _traffic_share(work))

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """The cost of a call and the fixed cost of each copy."""
        return _Formula(_CALL_NS + copies * _MACHINES[target.provider][2], copies)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The kernels of the model's graph in order, partly out of cache."""
        from opmark.models.resolve import graph_of

        graph = graph_of(model, target.name, cache=None, dimensions=dimensions)
        cold = min(1.0, (graph.weight_bytes + graph.peak_activation_bytes) / _CACHE_BYTES)
        total = _CALL_NS
        for node in graph.costly:
            hot, rotated = (kernel_ns(node.kernel, node.work, target, rotated=flag) for flag in (False, True))
            total += hot + cold * (rotated - hot) + 100.0
        return _Formula(total)

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """The formulas of all pieces; fused operators cost nothing."""
        total = _CALL_NS
        for piece in self.pieces(kernels, target):
            first = kernels[piece.covers[0]]
            total += kernel_ns(first, work_of(first), target, rotated=False)
        return _Formula(total)

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """Elementwise functions fuse with a convolution or product before them."""
        del target
        groups: list[list[int]] = []
        for place, kernel in enumerate(kernels):
            joins = kernel.kind == "elementwise" and groups and kernels[groups[-1][0]].kind in _FUSING
            if joins:
                groups[-1].append(place)
            else:
                groups.append([place])
        return tuple(Piece(name=kernels[group[0]].kind, covers=tuple(group)) for group in groups)


def _traffic_share(work: Work) -> float:
    """The share of traffic in the work of a kernel, between 0 and 1."""
    return 16 * work.moved_bytes / (16 * work.moved_bytes + work.flops + 1)


def kernel_ns(kernel: Kernel, work: Work, target: Target, *, rotated: bool) -> float:
    """The latency by formula in ns: fixed cost, arithmetic at a utilisation that grows with size, and traffic."""
    operations_per_ns, bytes_per_ns, fixed_ns = _MACHINES[target.provider]
    digest = hashlib.sha256(f"{kernel.kind}/{target.provider}".encode()).digest()
    utilisation = 0.3 + 0.6 * digest[0] / 255
    filled = work.flops / (work.flops + 1e5 * (1 + digest[1] / 64))
    arithmetic = work.flops / (operations_per_ns * utilisation * max(filled, 0.05))
    traffic = work.moved_bytes / bytes_per_ns * (_COLD_SLOWDOWN if rotated else 1.0)
    return (fixed_ns + math.hypot(arithmetic, traffic)) / math.sqrt(target.threads)


BACKEND = Null()
