"""What every backend keeps to that can be used here: it prepares, runs and frees whatever it says it can."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

from opmark.bench.suite.sampling import Sampler
from opmark.bench.worker.backend import (
    BACKENDS,
    CHAIN,
    CONSTRUCTIONS,
    SINGLE,
    Backend,
    Prepared,
    backend_of,
    target_named,
)
from opmark.core.canonical import canonical_json
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.hardware.processor import block_width
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Setting
from opmark.kinds import KINDS, work_of

SMALL_BYTES = 4 << 20
SMALL_FLOPS = 200_000_000


@cache
def usable() -> dict[str, Backend]:
    return {backend.name: backend for backend in BACKENDS if backend.unavailable() is None}


@cache
def small_kernels(language: str) -> tuple[Kernel, ...]:
    """One small kernel of every kind of the language."""
    found = []
    for name in KINDS.names():
        sampler = Sampler(
            kind=KINDS.load(name), setting=Setting(language=language, block=block_width()), seed="contract"
        )
        drawn = sorted(sampler.draw(12, 0.0), key=lambda kernel: work_of(kernel).moved_bytes)
        found += [
            kernel
            for kernel in drawn
            if work_of(kernel).moved_bytes <= SMALL_BYTES and work_of(kernel).flops <= SMALL_FLOPS
        ][:1]
    return tuple(found)


def target_of(backend: Backend) -> Target:
    return backend.targets("d")[0]


@pytest.fixture(params=BACKENDS.names())
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    found = BACKENDS.load(request.param)
    reason = found.unavailable()
    if reason is not None:
        pytest.skip(reason)
    found.start(target_of(found))
    yield found
    # `start` sets up a whole process, which is a worker's own; this one is the tests'.
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


def run(prepare: Callable[[], Prepared], copies: int) -> None:
    prepared = prepare()
    assert prepared.copies == copies
    prepared.call()
    prepared.call()
    prepared.close()


def test_it_is_named_after_its_file_and_its_targets_after_it(backend: Backend) -> None:
    assert backend.name in BACKENDS.names()
    assert backend.language in {"onnx", "aten"}
    targets = backend.targets("d", (1, 2))
    assert len({target.name for target in targets}) == len(targets)
    for target in targets:
        assert target.backend == backend.name
        assert backend_of(target.name) is backend
        assert target_named(target.name, "d") == (backend, target)


def test_its_facts_and_variables_are_plain(backend: Backend) -> None:
    assert "version" in backend.facts()
    canonical_json(backend.facts())
    for target in backend.targets("d"):
        assert all(isinstance(value, str) for value in backend.environment_variables(target).values())


def test_an_empty_chain_runs(backend: Backend) -> None:
    for copies in (1, 2, 34):
        run(lambda copies=copies: backend.prepare_empty(target_of(backend), copies=copies), copies)  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS.names())
def test_a_kernel_runs_alone_stacked_and_rotated(backend: Backend, kind: str) -> None:
    target = target_of(backend)
    kernels = [kernel for kernel in small_kernels(backend.language) if kernel.kind == kind]
    if not kernels:
        pytest.skip(f"{kind} has no small kernel in {backend.language}")
    kernel = kernels[0]
    try:
        construction = backend.construction(kernel)
        assert construction in CONSTRUCTIONS
        for copies, way, rotated in ((1, SINGLE, False), (5, construction, False), (3, "parallel", True)):
            run(
                lambda copies=copies, way=way, rotated=rotated: backend.prepare(  # type: ignore[misc]
                    kernel, target, copies=copies, construction=way, rotated=rotated
                ),
                copies,
            )
    except (MeasurementError, UnavailableError):
        # Not a kernel of this runtime: a skipped row. These every runtime has.
        if kind in {"gemm", "conv", "elementwise", "softmax", "pool"}:
            raise


def test_matrix_products_can_be_chained_where_shapes_allow(backend: Backend) -> None:
    kind = KINDS.load("gemm")
    base = next(kernel for kernel in small_kernels(backend.language) if kernel.kind == "gemm")
    square = kind.parse(base)
    kernel = kind.kernel(replace(square, m=16, k=16, n=16))
    assert backend.construction(kernel) == CHAIN
