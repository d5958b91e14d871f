"""The clock reader on a made-up driver library."""

import ctypes
from typing import Any

from opmark.bench.clock.nvml import ClockReader


class Library:
    def __init__(self, *, init: int = 0, clock: int = 1755, status: int = 0) -> None:
        self.init, self.clock, self.status = init, clock, status
        self.kinds: list[int] = []

    def nvmlInit_v2(self) -> int:
        return self.init

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, _: Any) -> int:
        return 0 if index.value == 0 else 2

    def nvmlDeviceGetClockInfo(self, _: Any, kind: ctypes.c_int, clock: Any) -> int:
        self.kinds.append(kind.value)
        clock._obj.value = self.clock
        return self.status


def test_it_reads_the_clock_of_the_processors():
    library = Library()
    assert ClockReader(library=library).mhz() == 1755.0
    assert library.kinds == [1]


def test_no_answer_is_no_clock():
    assert ClockReader(library=Library(init=9)).mhz() is None
    assert ClockReader(library=Library(status=3)).mhz() is None
    assert ClockReader(index=1, library=Library()).mhz() is None


def test_without_the_library_there_is_no_clock(monkeypatch):
    def missing(_: str) -> None:
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert ClockReader().mhz() is None
