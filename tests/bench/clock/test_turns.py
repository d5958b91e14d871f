import contextlib
import itertools
from dataclasses import replace

import pytest
from tests.bench.fake import FakeTime

from opmark.bench.clock.clock import Clock
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.turns import Part, Turns, reading_ns, sentinel_part, take_turns

TURNS = 12
AT_MOST = FULL.turns_at_most * TURNS


def turns_of(time: FakeTime, *, limit_s: float = 60.0, **changes: float) -> Turns:
    """Turns of work on a clock that the work moves; the sentinel takes the same time."""
    clock = Clock(timer=time.timer(), protocol=replace(FULL, **changes), burst=contextlib.nullcontext)
    sentinels = {"compute": sentinel_part(time.work, time.latency_ns)}
    return take_turns(clock, [Part(call=time.work, calls=1)], sentinels, turns=TURNS, limit_s=limit_s)


def uneven(period: int) -> FakeTime:
    """Work that takes twice as long in half of its periods, each `period` calls."""
    slow = itertools.cycle([True] * period + [False] * period)
    return FakeTime(latency_ns=50_000.0, stalls=slow, stall_ns=50_000.0)


def test_steady_work_takes_the_turns_asked_for() -> None:
    found = turns_of(FakeTime(latency_ns=50_000.0))
    assert len(found.samples[0].ns) == TURNS
    assert len(found.readings["compute"]) == TURNS + 1


def test_noisy_work_takes_more_turns_up_to_a_multiple() -> None:
    found = turns_of(uneven(7))
    assert len(found.samples[0].ns) == AT_MOST
    assert len(found.readings["compute"]) == AT_MOST + 1


def test_more_turns_end_with_their_time() -> None:
    found = turns_of(uneven(7), more_turns_ns=8_000_000)
    assert TURNS < len(found.samples[0].ns) < AT_MOST
    assert len(found.samples[0].ns) % TURNS == 0, "the readings must stay between whole turns"


def test_the_limit_of_a_look_counts_for_more_turns_too() -> None:
    found = turns_of(uneven(7), limit_s=0.001)
    assert 1 <= len(found.samples[0].ns) < TURNS
    assert len(found.readings["compute"]) == len(found.samples[0].ns) + 1


@pytest.mark.parametrize("burst_ns", [1, 3_000_000])
def test_rests_between_bursts_lose_no_turn(burst_ns: int) -> None:
    found = turns_of(uneven(7), burst_ns=burst_ns, more_turns_ns=10_000_000_000)
    assert len(found.samples[0].ns) == AT_MOST
    assert len(found.readings["compute"]) == AT_MOST + 1


def test_a_reading_is_one_sample_of_the_sentinel() -> None:
    time = FakeTime(latency_ns=50_000.0)
    clock = Clock(timer=time.timer(), protocol=FULL, burst=contextlib.nullcontext)
    assert reading_ns(clock, sentinel_part(time.work, time.latency_ns)) == pytest.approx(50_000.0, rel=0.01)
