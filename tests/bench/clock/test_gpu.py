"""Facts, slugs and clocks of GPUs from a made-up driver."""

import ctypes
import subprocess
from typing import Any

import pytest

from opmark.bench.clock import gpu as cards
from opmark.bench.clock.gpu import (
    ClockReader,
    at_usual_clock,
    gpu_facts,
    gpu_slug,
    parse_facts,
)

H200 = "NVIDIA H200, 570.86.15, 143771, 1980, 3201, [Deprecated], 700.00, Enabled, Disabled, Enabled, Default\n"


@pytest.fixture(autouse=True)
def _ask_again():
    gpu_facts.cache_clear()
    yield
    gpu_facts.cache_clear()


def test_facts_of_a_card():
    assert parse_facts(H200.strip().split(", ")) == {
        "gpu": "NVIDIA H200",
        "driver": "570.86.15",
        "memory_mib": 143771,
        "most_sm_mhz": 1980,
        "most_memory_mhz": 3201,
        "application_sm_mhz": None,
        "power_limit_w": 700.0,
        "ecc": True,
        "mig": False,
        "persistence": True,
        "compute_mode": "Default",
    }


def test_a_card_without_ecc_and_mig():
    row = "NVIDIA GeForce RTX 4090, 550.1, 24564, 3105, 10501, [N/A], 450.00, [N/A], [N/A], Disabled, Default"
    found = parse_facts(row.split(", "))
    assert found["ecc"] is None
    assert found["mig"] is None
    assert found["persistence"] is False


@pytest.mark.parametrize("text", ["", "No devices were found", "a, b"])
def test_anything_else_gives_no_facts(text: str):
    assert parse_facts(text.split(", ")) == {}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
        ("Tesla T4", "nvidia-tesla-t4"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "nvidia-a100-sxm4-80gb-mig-1g-10gb"),
    ],
)
def test_a_slug_is_the_gpus_name(name: str, slug: str):
    assert gpu_slug(name) == slug


def test_the_tool_is_only_asked_never_told(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=H200)

    monkeypatch.setattr(cards.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(cards.subprocess, "run", run)
    assert gpu_facts()["gpu"] == "NVIDIA H200"
    assert asked[0][1].startswith("--query-gpu=")
    assert set(asked[0][2:]) == {"--format=csv,noheader,nounits", "--id=0"}


def test_without_the_tool_or_when_it_fails_there_are_no_facts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cards.shutil, "which", lambda _: None)
    assert gpu_facts() == {}
    gpu_facts.cache_clear()

    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(9, "nvidia-smi")

    monkeypatch.setattr(cards.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(cards.subprocess, "run", fail)
    assert gpu_facts() == {}


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


def test_a_fifth_may_go():
    assert at_usual_clock([1500.0] * 8 + [1200.0] * 2) == (True,) * 8 + (False,) * 2


def test_more_than_a_fifth_stays():
    clocks = [1500.0] * 7 + [1200.0] * 3
    assert at_usual_clock(clocks) == (True,) * 10


def test_one_step_of_the_clock_is_the_same_clock():
    assert at_usual_clock([1500.0, 1515.0, 1500.0, 1200.0, 1500.0]) == (True, True, True, False, True)


def test_no_clock_no_verdict():
    assert at_usual_clock([]) == ()
