from pathlib import Path

import pytest

from opmark.bench.clock import machine as machine_module
from opmark.bench.clock.machine import Caches, device_slug, parse_cache_size
from opmark.core.hardware import processor as processor_module

AMD = (
    "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 26\nmodel: 2\nstepping: 1\n"
    "flags: fpu avx2 avx512f hypervisor\n\nprocessor: 1\n"
)
ARM = "processor: 0\nCPU implementer: 0x41\nCPU variant: 0x3\nCPU part: 0xd0c\nFeatures: fp asimd\n"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that stands for sysfs and procfs."""
    monkeypatch.setattr(processor_module, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine_module, "_CACHES", tmp_path / "cache")
    monkeypatch.setattr(machine_module, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(machine_module, "processors", lambda: 2)
    for module, cached in ((processor_module, processor_module.processor), (machine_module, machine_module.caches)):
        cached.cache_clear()
        monkeypatch.setattr(module, cached.__name__, cached.__wrapped__)
    monkeypatch.setattr(machine_module, "processor", processor_module.processor)
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
    assert machine_module.caches() == Caches(level1_bytes=48 << 10, level2_bytes=1 << 20, last_level_bytes=32 << 20)
    assert device_slug() == "amd-26-2-1-2vcpu-l3-32m"
    assert processor_module.block_width() == 16


def test_an_arm_machine_has_a_slug_too(machine: Path) -> None:
    (machine / "cpuinfo").write_text(ARM)
    give_caches(machine, (2, "Unified", "8M"))
    assert device_slug() == "arm-0x41-0xd0c-0x3-2vcpu-l3-8m"
    assert processor_module.block_width() == 8
    assert machine_module.caches().level2_bytes == 8 << 20


def test_a_machine_that_tells_nothing_still_has_sizes(machine: Path) -> None:
    assert machine_module.caches().last_level_bytes > 0
    assert device_slug().endswith("-2vcpu-l3-32m")
    assert machine_module.stolen_share() is None


def test_stolen_time_is_a_share(machine: Path) -> None:
    (machine / "stat").write_text("cpu  40 0 20 30 0 0 0 10 0 0\ncpu0 1 2 3\n")
    assert machine_module.stolen_share() == 0.1


@pytest.mark.parametrize(("text", "size"), [("48K", 48 << 10), ("2M", 2 << 20), ("512", 512), ("", 0), ("big", 0)])
def test_cache_sizes(text: str, size: int) -> None:
    assert parse_cache_size(text) == size
