import os
from pathlib import Path

import pytest

from opmark.bench.clock import scheduling
from opmark.bench.clock.scheduling import cpu_pressure, fifo, may_use_fifo


def test_priority_is_given_back() -> None:
    if not may_use_fifo():
        pytest.skip("SCHED_FIFO is not permitted here")
    with fifo():
        assert os.sched_getscheduler(0) == os.SCHED_FIFO
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_pressure_is_read_or_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scheduling, "_PRESSURE", tmp_path / "cpu")
    assert cpu_pressure() is None
    (tmp_path / "cpu").write_text("some avg10=37.50 avg60=0.88 avg300=0.26 total=3290009\nfull avg10=0.00\n")
    assert cpu_pressure() == 37.5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not pin processes")
def test_threads_are_pinned_to_different_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for processor, siblings in {0: "0,1", 1: "0,1", 2: "2,3", 3: "2,3"}.items():
        (tmp_path / f"cpu{processor}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{processor}" / "topology" / "thread_siblings_list").write_text(siblings)
    monkeypatch.setattr(scheduling, "_PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 8})
    pinned: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, processors: pinned.append(processors))
    for threads in (1, 2, 3, 4, 9):
        scheduling.pin(threads)
    assert pinned == [{0, 2}, {0, 2, 8}, {0, 1, 2, 8}, {0, 1, 2, 3, 8}]
