"""Workers that die, hang or fail end the whole crew with one sentence; nothing of it stays behind."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from opmark.bench.execution import crew as crew_module
from opmark.bench.execution.crew import Crew, Seat, seats
from opmark.bench.execution.programme import DeviceWork, Programme
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.hardware.target import Target

# Answers every request; `run` does what the second argument says.
WORKER = """
import json, sys, time
for line in sys.stdin:
    if json.loads(line)["do"] == "run":
        {misdeed}
    readings = {{"compute": 40.0, "memory": 60.0}}
    print(json.dumps({{"kernels": [], "inputs": [], "outputs": [], "spans": [], "readings": readings}}), flush=True)
"""
FILES = Path("/proc/self/fd")
SEATS = tuple(Seat(name=name, target=Target(device="x", backend="null"), cores=()) for name in ("core0", "core1"))


def crew(misdeed: str = "pass", patience_s: float = 20.0) -> Crew:
    command = (sys.executable, "-c", WORKER.format(misdeed=misdeed))
    return Crew(SEATS, patience_s=patience_s, command=command)


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def open_files() -> set[str]:
    return {path.name for path in FILES.iterdir()} if FILES.is_dir() else set()


def ended_with(misdeed: str, patience_s: float = 20.0) -> str:
    """The sentence with which a run of such workers ends; nothing may stay behind."""
    before = open_files()
    with crew(misdeed, patience_s) as running:
        workers = running.process_ids
        with pytest.raises(MeasurementError) as caught:
            running.run(1e6)
    assert all(map(is_gone, workers))
    assert open_files() == before
    return str(caught.value)


def test_a_good_crew_executes_and_leaves_nothing() -> None:
    before = open_files()
    with crew() as running:
        workers = running.process_ids
        running.load("model", {}, [((), ()), ((), ())])
        running.divide(Programme(devices=(DeviceWork(steps=()), DeviceWork(steps=())), crossings=()))
        assert running.run(1e6).devices == ((), ())
        assert running.sense() == ({"compute": 40.0, "memory": 60.0},) * 2
    assert all(map(is_gone, workers))
    assert open_files() == before


def test_a_worker_killed_by_a_signal_is_named() -> None:
    assert "core" in (said := ended_with("import os; os.kill(os.getpid(), 9)"))
    assert "was killed by SIGKILL" in said


def test_a_worker_killed_from_outside_ends_the_crew() -> None:
    with crew("time.sleep(60)") as running:
        victim, other = running.process_ids
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(MeasurementError, match="'core0' was killed by SIGKILL"):
            running.run(1e6)
        assert is_gone(other)


def test_a_worker_that_sleeps_is_ended() -> None:
    assert "gave no answer in" in ended_with("time.sleep(600)", patience_s=0.2)


def test_the_last_words_of_a_worker_are_repeated() -> None:
    assert "exited with code 3: no such luck" in ended_with("sys.stderr.write('no such luck'); sys.exit(3)")


def test_a_reported_failure_is_one_sentence() -> None:
    said = ended_with("print(json.dumps({'failed': 'out of paint'}), flush=True); continue")
    assert said.startswith("device 'core")
    assert said.endswith(": out of paint")


def test_a_command_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="cannot be started"):
        Crew(SEATS, command=(str(tmp_path / "missing"),))


def test_seats_need_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(name: str) -> tuple[object, Target]:
        return _Backend(), Target(device="x", backend="null", threads=int(name))

    monkeypatch.setattr(crew_module, "available_target", here)
    taken: Sequence[Seat] = seats([("a", "2"), ("b", "1")], cores=[4, 5, 6])
    assert [seat.cores for seat in taken] == [(4, 5), (6,)]
    with pytest.raises(UnavailableError, match="need 3 processor cores, and this machine has 2"):
        seats([("a", "2"), ("b", "1")], cores=[0, 1])


def test_a_device_that_this_machine_lacks_is_named() -> None:
    with pytest.raises(UnavailableError, match="lacks device 'gpu'"):
        seats([("gpu", "torch-cuda-t1")], cores=[0])


class _Backend:
    def device(self) -> None:
        return None
