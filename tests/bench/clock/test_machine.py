from pathlib import Path

import pytest

from opmark.bench.backends.null import BACKEND
from opmark.bench.clock import machine as environment
from opmark.bench.clock import scheduling
from opmark.bench.clock.machine import Caches, caches, device_slug, parse_cache_size, probe
from opmark.bench.clock.scheduling import cpu_pressure, fifo, may_use_fifo
from opmark.bench.clock.timer import machine_timer
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.canonical import canonical_json

AMD = (
    "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 26\nmodel: 2\nstepping: 1\n"
    "flags: fpu avx2 avx512f hypervisor\n\nprocessor: 1\n"
)
ARM = "processor: 0\nCPU implementer: 0x41\nCPU variant: 0x3\nCPU part: 0xd0c\nFeatures: fp asimd\n"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that stands for sysfs and procfs."""
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(environment, "_CACHES", tmp_path / "cache")
    monkeypatch.setattr(environment, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(environment, "processors", lambda: 2)
    for cached in (environment.processor, environment.caches):
        cached.cache_clear()
        monkeypatch.setattr(environment, cached.__name__, cached.__wrapped__)
    return tmp_path


def give_caches(folder: Path, *entries: tuple[int, str, str]) -> None:
    for index, (level, kind, size) in enumerate(entries):
        place = folder / "cache" / f"index{index}"
        place.mkdir(parents=True)
        for name, text in (("level", str(level)), ("type", kind), ("size", size)):
            (place / name).write_text(f"{text}\n")


def test_the_slug_says_processor_count_and_last_level_cache(machine: Path) -> None:
    (machine / "cpuinfo").write_text(AMD)
    give_caches(
        machine, (1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "1024K"), (3, "Unified", "32768K")
    )
    assert environment.caches() == Caches(level1_bytes=48 << 10, level2_bytes=1 << 20, last_level_bytes=32 << 20)
    assert device_slug() == "amd-26-2-1-2vcpu-l3-32m"
    assert environment.block_width() == 16


def test_an_arm_machine_has_a_slug_too(machine: Path) -> None:
    (machine / "cpuinfo").write_text(ARM)
    give_caches(machine, (2, "Unified", "8M"))
    assert device_slug() == "arm-0x41-0xd0c-0x3-2vcpu-l3-8m"
    assert environment.block_width() == 8
    assert environment.caches().level2_bytes == 8 << 20


def test_a_machine_that_tells_nothing_still_has_sizes(machine: Path) -> None:
    assert environment.caches().last_level_bytes > 0
    assert device_slug().endswith("-2vcpu-l3-32m")
    assert environment.stolen_share() is None


def test_stolen_time_is_a_share(machine: Path) -> None:
    (machine / "stat").write_text("cpu  40 0 20 30 0 0 0 10 0 0\ncpu0 1 2 3\n")
    assert environment.stolen_share() == 0.1


@pytest.mark.parametrize(("text", "size"), [("48K", 48 << 10), ("2M", 2 << 20), ("512", 512), ("", 0), ("big", 0)])
def test_cache_sizes(text: str, size: int) -> None:
    assert parse_cache_size(text) == size


def test_this_machine_can_be_described() -> None:
    found = probe([BACKEND])
    assert found.device == device_slug()
    assert found.checked["null.version"] == "1.0"
    assert found.checked["last_level_bytes"] == caches().last_level_bytes
    canonical_json(found)
    assert probe([BACKEND]).id == found.id, "what changes from minute to minute is only noted"


def test_priority_is_given_back() -> None:
    import os

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


def test_the_machine_has_a_clock_and_two_sentinels() -> None:
    timer = machine_timer()
    start = timer.now_ns()
    sentinels = processor_sentinels()
    assert set(sentinels) == {"compute", "memory"}
    for item in sentinels.values():
        item.call()
        item.close()
    assert timer.now_ns() > start
    assert timer.faults() >= 0
