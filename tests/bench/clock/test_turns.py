import contextlib
import itertools
from dataclasses import replace

import pytest
from tests.bench.fake import FakeTime

from opmark.bench.clock.clock import Clock
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.turns import Part, Turns, reading_ns, sentinel_part, take_turns

TURNS = 12


def turns_of(time: FakeTime, *, limit_s: float = 60.0, **changes: float) -> Turns:
    """Turns of work on a clock that the work moves; the sentinel takes the same time."""
    clock = Clock(timer=time.timer(), protocol=replace(FULL, **changes), burst=contextlib.nullcontext)
    sentinels = {"compute": sentinel_part(time.work, time.latency_ns)}
    return take_turns(clock, [Part(call=time.work, calls=1)], sentinels, turns=TURNS, limit_s=limit_s)


def test_steady_work_takes_the_turns_asked_for() -> None:
    found = turns_of(FakeTime(latency_ns=50_000.0))
    assert len(found.samples[0].ns) == TURNS
    assert len(found.readings["compute"]) == TURNS + 1


def test_noisy_work_takes_no_more_turns() -> None:
    slow = itertools.cycle([True] * 7 + [False] * 7)
    found = turns_of(FakeTime(latency_ns=50_000.0, stalls=slow, stall_ns=50_000.0))
    assert len(found.samples[0].ns) == TURNS


def test_a_look_ends_with_its_time() -> None:
    found = turns_of(FakeTime(latency_ns=50_000.0), limit_s=0.001)
    assert 1 <= len(found.samples[0].ns) < TURNS
    assert len(found.readings["compute"]) == len(found.samples[0].ns) + 1


@pytest.mark.parametrize("burst_ns", [1, 3_000_000])
def test_rests_between_bursts_lose_no_turn(burst_ns: int) -> None:
    found = turns_of(FakeTime(latency_ns=50_000.0), burst_ns=burst_ns)
    assert len(found.samples[0].ns) == TURNS
    assert len(found.readings["compute"]) == TURNS + 1


def test_a_reading_is_one_sample_of_the_sentinel() -> None:
    time = FakeTime(latency_ns=50_000.0)
    clock = Clock(timer=time.timer(), protocol=FULL, burst=contextlib.nullcontext)
    assert reading_ns(clock, sentinel_part(time.work, time.latency_ns)) == pytest.approx(50_000.0, rel=0.01)
