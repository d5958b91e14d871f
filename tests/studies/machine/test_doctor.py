"""The diagnosis names what is missing and gives advice that fits."""

import importlib.util
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from opmark.bench.run.noise import Noise, judged
from opmark.bench.worker.backend import BACKENDS
from opmark.core.errors import MissingExtraError
from opmark.core.measurements.environment import Environment
from opmark.core.registry import Registry
from opmark.studies.machine import doctor
from opmark.studies.machine.doctor import EXTRAS, advice_on_noise, bubblewrap, diagnose, extra, runtime
from opmark.studies.machine.facts import Gpu, gpus, parse_gpus, this_machine


def noise(**changes: Any) -> Noise:
    quiet = {
        "clean_fraction": 0.99,
        "compute_spread": 0.01,
        "memory_spread": 0.01,
        "median_bias": 0.01,
        "pressure": 1.0,
        "real_time": False,
    }
    return judged(**(quiet | changes))


QUIET = noise()
HERE = Environment(device="d", checked={}, noted={"fifo": True, "stolen_share": 0.0, "governor": None})


def test_a_quiet_machine_needs_no_advice() -> None:
    assert advice_on_noise(QUIET, HERE) == ()


@pytest.mark.parametrize(
    ("seen", "noted", "word"),
    [
        (noise(clean_fraction=0.3), {}, "Busy"),
        (noise(memory_spread=0.2), {}, "Neighbours"),
        (noise(compute_spread=0.2), {}, "speed"),
        (QUIET, {"fifo": False}, "SCHED_FIFO"),
        (QUIET, {"stolen_share": 0.25}, "25 %"),
        (QUIET, {"governor": "powersave"}, "powersave"),
    ],
)
def test_advice_fits_what_was_seen(seen: Noise, noted: dict[str, Any], word: str) -> None:
    (sentence,) = advice_on_noise(seen, replace(HERE, noted={**HERE.noted, **noted}))
    assert word in sentence


def test_the_null_runtime_always_works() -> None:
    part = runtime("null")
    assert part.works
    assert "null-t1" in part.detail


def test_a_runtime_that_cannot_be_loaded_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: Registry[Any], name: str) -> Any:
        raise MissingExtraError(f"backend {name!r} needs torch, which is not installed", hint="pip install torch")

    monkeypatch.setattr(Registry, "load", load)
    part = runtime("torch-eager")
    assert not part.works
    assert part.hint == "pip install torch"


def test_a_missing_extra_says_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for name in EXTRAS:
        part = extra(name)
        assert not part.works
        assert part.hint == f"pip install 'opmark[{name}]'"
        assert part.detail == EXTRAS[name][1]


def test_the_sandbox_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "bubblewrap" in bubblewrap().hint
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert bubblewrap().works


def test_gpus_are_read_from_the_drivers_list() -> None:
    rows = [["NVIDIA H200", "143771", "570.86"], ["broken line"], ["NVIDIA X", "[N/A]", "1"]]
    assert parse_gpus(rows) == (Gpu(name="NVIDIA H200", memory_bytes=143771 << 20, driver="570.86"),)


def test_a_machine_without_the_tool_or_with_a_failing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert gpus() == ()
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")

    def fail(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    monkeypatch.setattr(subprocess, "run", fail)
    assert gpus() == ()


def test_a_gpu_that_no_runtime_uses_is_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Gpu(name="H200", memory_bytes=1, driver="1")
    monkeypatch.setattr(doctor, "gpus", lambda: (card,))
    monkeypatch.setattr(doctor, "EXTRAS", {})
    monkeypatch.setattr(BACKENDS.__class__, "names", lambda _: ("null",))
    found = diagnose(seconds=0.01)
    assert any("H200" in sentence for sentence in found.advice)
    assert [part.name for part in found.runtimes] == ["null"]
    assert 0 <= found.noise.clean_fraction <= 1


def test_this_machine_is_what_is_recorded() -> None:
    machine = this_machine()
    assert machine.device == machine.environment.device
    assert machine.environment.checked["processors"]
    assert "null.version" in machine.environment.checked


def test_a_runtime_with_a_way_of_its_own_is_not_called_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPMARK_OPENVINO", raising=False)
    part = runtime("openvino")
    assert not part.works
    assert part.hint.startswith("pip install --no-deps --target FOLDER onnxruntime-openvino")
    assert not doctor._advice_on_parts((part,), ())
