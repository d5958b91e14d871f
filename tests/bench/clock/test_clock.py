import contextlib
import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.bench.fake import FakeTime

from opmark.bench.clock.clock import Clock
from opmark.bench.clock.protocol import FULL
from opmark.core.measurements.estimate import label, median


def clock(time: FakeTime, *, filtered: bool = True) -> Clock:
    return Clock(timer=time.timer(filtered=filtered), protocol=FULL)


@pytest.mark.parametrize("latency_ns", [200.0, 3_000.0, 40_000.0, 349_000.0, 5e6])
def test_a_sample_lasts_a_third_of_a_millisecond_or_one_call(latency_ns: float) -> None:
    time = FakeTime(latency_ns=latency_ns)
    samples = clock(time).take(time.work, latency_ns=latency_ns, samples=10)
    lasted = samples.calls * latency_ns
    assert samples.calls == 1 or 200_000 <= lasted <= 500_000
    assert samples.ns == pytest.approx([latency_ns] * 10, rel=1e-3)
    assert samples.clean == (True,) * 10


def test_interrupted_samples_are_marked_and_the_rest_is_the_truth() -> None:
    chance = random.Random(1)
    time = FakeTime(latency_ns=10_000.0, stalls=iter(lambda: chance.random() < 0.01, None))
    samples = clock(time).take(time.work, latency_ns=10_000.0, samples=200)
    clean = [ns for ns, is_clean in zip(samples.ns, samples.clean, strict=True) if is_clean]
    assert 50 < len(clean) < 190
    assert label(clean) == pytest.approx(10_000.0, rel=1e-3)
    assert max(clean) == pytest.approx(10_000.0, rel=1e-3)
    mean = sum(samples.ns) / len(samples.ns)
    assert mean > 2 * label(clean), "what a plain mean would have said"


def test_a_system_that_does_not_tell_about_interruptions_is_said_to_be_unfiltered() -> None:
    time = FakeTime(stalls=itertools.cycle([True] + [False] * 99))
    samples = clock(time, filtered=False).take(time.work, latency_ns=1000.0, samples=5)
    assert not samples.filtered
    assert all(samples.clean)


def test_the_first_millisecond_after_a_sleep_is_thrown_away() -> None:
    time = FakeTime(latency_ns=50_000.0, slow_after_sleep=1.5, awake_ns=0.0)
    samples = clock(time).take(time.work, latency_ns=50_000.0, samples=20)
    assert max(samples.ns) == pytest.approx(50_000.0, rel=1e-3)


def test_bursts_are_short_and_others_get_their_turn() -> None:
    time = FakeTime(latency_ns=30e6)
    bursts: list[float] = []

    @contextlib.contextmanager
    def burst() -> Iterator[None]:
        start = time.now_ns
        yield
        bursts.append(time.now_ns - start)

    samples = replace(clock(time), burst=burst).take(time.work, latency_ns=30e6, samples=20)
    assert len(samples.ns) == 20
    assert len(bursts) > 2
    assert max(bursts) <= FULL.burst_ns + 30e6
    assert len(time.sleeps) == len(bursts) - 1


def test_a_time_limit_still_leaves_one_sample() -> None:
    time = FakeTime(latency_ns=3e9)
    samples = clock(time).take(time.work, latency_ns=3e9, samples=9, limit_s=2.0)
    assert len(samples.ns) == 1


def test_page_faults_are_counted_per_call() -> None:
    time = FakeTime(latency_ns=100_000.0, faults_per_call=7)
    assert clock(time).take(time.work, latency_ns=100_000.0, samples=6).faults_per_call == 7


def test_warm_up_goes_on_until_three_samples_agree() -> None:
    time = FakeTime(latency_ns=400_000.0)
    slowness = itertools.chain([8.0, 4.0, 3.0, 2.0, 1.5], itertools.repeat(1.0))

    def cooling() -> None:
        time.latency_ns = 400_000.0 * next(slowness)
        time.work()

    assert clock(time).warm_up(cooling) == pytest.approx(400_000.0)
    assert time.calls >= 8


def test_warm_up_ends_where_samples_never_agree() -> None:
    time = FakeTime()
    slowness = itertools.cycle([1.0, 2.0, 4.0])

    def restless() -> None:
        time.latency_ns = 400_000.0 * next(slowness)
        time.work()

    clock(time).warm_up(restless)
    assert time.calls <= 2 + FULL.warm_up_samples


def test_warm_up_of_long_work_ends_after_two_calls_that_took_long_enough() -> None:
    time = FakeTime(latency_ns=15e6)
    assert clock(time).warm_up(time.work, enough_ns=20e6) == pytest.approx(15e6)
    assert time.calls == 2


def test_drift_moves_the_median_and_not_the_label() -> None:
    time = FakeTime(latency_ns=20_000.0)
    drift = itertools.count()

    def drifting() -> None:
        time.latency_ns = 20_000.0 * (1 + min(next(drift), 4000) / 4000 * 0.2)
        time.work()

    samples = clock(time).take(drifting, latency_ns=20_000.0, samples=200)
    assert median(samples.ns) > 1.08 * 20_000
    assert label(samples.ns) < 1.06 * 20_000


@pytest.mark.parametrize("jump_ns", [-3_600e9, 3_600e9])
def test_a_clock_that_jumps_spoils_one_sample_and_no_label(jump_ns: float) -> None:
    time = FakeTime(latency_ns=100_000.0)

    def call() -> None:
        time.work()
        if time.calls == 40:
            time.now_ns += jump_ns

    samples = clock(time).take(call, latency_ns=100_000.0, samples=30)
    clean = [ns for ns, is_clean in zip(samples.ns, samples.clean, strict=True) if is_clean]
    assert min(samples.ns) > 0
    assert label(clean) == pytest.approx(100_000.0, rel=1e-3)
    assert sum(1 for ns in clean if ns > 200_000) <= 1
