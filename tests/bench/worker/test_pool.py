from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.bench.fake import COMMAND, FAULTY_FOLDER
from tests.bench.forked_workers import fork_workers, start_workers

from opmark.bench import backends
from opmark.bench.backends.null import BACKEND
from opmark.bench.clock.machine import Caches
from opmark.bench.clock.protocol import QUICK
from opmark.bench.worker.backend import BACKENDS
from opmark.bench.worker.pool import WorkerLostError, WorkerPool, WorkerProcess
from opmark.core import registry
from opmark.core.canonical import plain
from opmark.core.errors import MeasurementError
from opmark.core.hardware.target import Target
from opmark.kinds import KINDS

CACHES = Caches(level1_bytes=1 << 15, level2_bytes=1 << 20, last_level_bytes=1 << 25)


@pytest.fixture(autouse=True)
def real_processes() -> Iterator[None]:
    """Here starts are tested."""
    start_workers()
    yield
    fork_workers()


def test_workers_start_when_needed_and_are_replaced_when_dismissed() -> None:
    started: list[tuple[str, int]] = []

    def note(target: Target, process: int, worker: WorkerProcess) -> None:
        assert worker.overhead_ns > 0
        started.append((target.name, process))

    slow, fast = BACKEND.targets("d")[:2]
    pool = WorkerPool(QUICK, CACHES, note)
    try:
        first = pool.worker(slow, 0)
        assert pool.worker(slow, 0) is first
        pool.worker(fast, 0)
        assert [process for process, _ in pool.alive(slow)] == [0]
        pool.dismiss(slow, 0)
        pool.dismiss(slow, 5)
        assert pool.alive(slow) == []
        assert pool.worker(slow, 0) is not first
    finally:
        pool.dismiss_all()
    assert started == [(slow.name, 0), (fast.name, 0), (slow.name, 0)]
    assert pool.alive(slow) == pool.alive(fast) == []


def test_workers_that_are_needed_soon_load_together_and_one_that_died_waiting_is_replaced() -> None:
    target = BACKEND.targets("d")[0]
    pool = WorkerPool(replace(QUICK, processes=3), CACHES, lambda *_: None)
    try:
        first = pool.worker(target, 0)
        assert pool.alive(target) == [(0, first)]
        waiting = dict(pool._waiting)
        assert sorted(waiting) == [(target.name, 1), (target.name, 2)]
        assert pool.worker(target, 1) is waiting[target.name, 1]
        assert waiting[target.name, 1].overhead_ns > 0
        waiting[target.name, 2]._process.kill()
        waiting[target.name, 2]._process.wait()
        assert pool.worker(target, 2).overhead_ns > 0
        # One beyond those comes alone.
        pool.worker(target, 4)
        assert pool._waiting == {}
    finally:
        pool.dismiss_all()


CACHES = Caches(level1_bytes=1 << 15, level2_bytes=1 << 20, last_level_bytes=1 << 20)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(FAULTY_FOLDER)])
    registry._module_names.cache_clear()
    yield
    registry._module_names.cache_clear()


@pytest.fixture
def worker(faulty: None) -> Iterator[WorkerProcess]:
    backend = BACKENDS.load("faulty")
    target = backend.targets("d")[0]
    process = WorkerProcess(target, backend, replace(QUICK, answer_limit_s=3.0), CACHES, command=COMMAND)
    yield process
    process.stop()


def kernel(activation: str) -> dict[str, Any]:
    kind = KINDS.load("gemm")
    made = {"m": 8, "k": 8, "n": 8, "activation": activation, "dtype": "float32"}
    parameters = plain(kind.parameters(**made))
    return {
        "do": "kernel",
        "labels": ["hot"],
        "kernel": {"kind": "gemm", "parameters": parameters},
    }


def test_a_sound_kernel_gives_samples(worker: WorkerProcess) -> None:
    (block,) = worker.ask(kernel(""))["blocks"]
    assert min(block["ns"]) >= 50_000
    assert len(block["ns"]) == len(block["clean"])
    both = worker.ask({**kernel(""), "labels": ["hot", "rotated"]})["blocks"]
    assert [item["label"] for item in both] == ["hot", "rotated"]


def test_a_kernel_that_raises_or_is_refused_leaves_the_worker_alive(worker: WorkerProcess) -> None:
    assert worker.ask(kernel("raise")) == {"failed": "ZeroDivisionError: in the kernel"}
    assert worker.ask(kernel("refuse")) == {"skipped": "no such kernel here"}
    assert "blocks" in worker.ask(kernel(""))


def test_a_kernel_that_wants_more_memory_than_there_is_fails_by_itself(worker: WorkerProcess) -> None:
    assert worker.ask(kernel("allocate")) == {"failed": "MemoryError: "}
    assert "blocks" in worker.ask(kernel(""))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "killed by SIGSEGV"),
        ("hang", "no answer for 3 s"),
        ("exit", "exited with code 7"),
        ("kill", "killed by SIGKILL, perhaps out of memory"),
    ],
)
def test_a_lost_worker_says_what_it_died_of(worker: WorkerProcess, fault: str, reason: str) -> None:
    with pytest.raises(WorkerLostError, match=reason):
        worker.ask(kernel(fault))
    with pytest.raises((WorkerLostError, ValueError)):
        worker.ask(kernel(""))


def test_a_backend_that_cannot_start_says_so(faulty: None) -> None:
    backend = BACKENDS.load("faulty")
    target = replace(backend.targets("d")[0], backend="missing")
    with pytest.raises(MeasurementError, match="cannot measure on missing-t1: no backend is called 'missing'"):
        WorkerProcess(target, backend, QUICK, CACHES, command=COMMAND)
