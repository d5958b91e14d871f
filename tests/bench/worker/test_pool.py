from dataclasses import replace

from opmark.bench.backends.null import BACKEND
from opmark.bench.clock.machine import Caches
from opmark.bench.clock.protocol import QUICK
from opmark.bench.worker.pool import Crew
from opmark.bench.worker.process import WorkerProcess
from opmark.core.target import Target

CACHES = Caches(level1_bytes=1 << 15, level2_bytes=1 << 20, last_level_bytes=1 << 25)


def test_workers_start_when_needed_and_are_replaced_when_dismissed() -> None:
    started: list[tuple[str, int]] = []

    def note(target: Target, process: int, worker: WorkerProcess) -> None:
        assert worker.overhead_ns > 0
        started.append((target.name, process))

    slow, fast = BACKEND.targets("d")[:2]
    crew = Crew(QUICK, CACHES, note)
    try:
        first = crew.worker(slow, 0)
        assert crew.worker(slow, 0) is first
        crew.worker(fast, 0)
        assert [process for process, _ in crew.alive(slow)] == [0]
        crew.dismiss(slow, 0)
        crew.dismiss(slow, 5)
        assert crew.alive(slow) == []
        assert crew.worker(slow, 0) is not first
    finally:
        crew.dismiss_all()
    assert started == [(slow.name, 0), (fast.name, 0), (slow.name, 0)]
    assert crew.alive(slow) == crew.alive(fast) == []


def test_workers_that_are_needed_soon_load_together_and_one_that_died_waiting_is_replaced() -> None:
    target = BACKEND.targets("d")[0]
    crew = Crew(replace(QUICK, processes=3), CACHES, lambda *_: None)
    try:
        first = crew.worker(target, 0)
        assert crew.alive(target) == [(0, first)]
        waiting = dict(crew._waiting)
        assert sorted(waiting) == [(target.name, 1), (target.name, 2)]
        assert crew.worker(target, 1) is waiting[target.name, 1]
        assert waiting[target.name, 1].overhead_ns > 0
        waiting[target.name, 2]._process.kill()
        waiting[target.name, 2]._process.wait()
        assert crew.worker(target, 2).overhead_ns > 0
        # One beyond those comes alone.
        crew.worker(target, 4)
        assert crew._waiting == {}
    finally:
        crew.dismiss_all()
