"""Noise is told apart from speed, with a clock that the test turns."""

import random

import pytest

from opmark.bench.timer import Timer
from opmark.studies.noise import SAMPLE_NS, WARM_UP_NS, measure_noise


class Machine:
    """A clock that only work and sleep move; every `every`-th call is interrupted for 1 ms."""

    def __init__(self, *, call_ns: int = 10_000, every: int = 0, jitter: float = 0.0) -> None:
        self.time_ns = 0
        self.calls = 0
        self.switches = 0
        self.call_ns, self.every, self.jitter = call_ns, every, jitter
        self.random = random.Random(0)
        self.copies = 1

    def call(self) -> None:
        self.calls += 1
        self.time_ns += round(self.call_ns * (1 + self.jitter * self.random.random()))
        if self.every and self.calls % self.every == 0:
            self.switches += 1
            self.time_ns += 1_000_000

    def close(self) -> None:
        pass

    def timer(self, *, counts: bool = True) -> Timer:
        def sleep(seconds: float) -> None:
            self.time_ns += round(seconds * 1e9)

        return Timer(
            now_ns=lambda: self.time_ns,
            preemptions=(lambda: self.switches) if counts else None,
            faults=lambda: 0,
            sleep=sleep,
        )


def test_a_quiet_machine() -> None:
    machine = Machine()
    noise = measure_noise(machine, machine.timer(), seconds=1)
    assert noise.clean_fraction == 1
    assert noise.median_excess == noise.p90_excess == 0
    assert noise.samples > 100


def test_interruptions_lower_the_clean_fraction_and_raise_the_excess() -> None:
    machine = Machine(every=40)  # a sample holds 30 calls, so about three in four are hit
    noise = measure_noise(machine, machine.timer(), seconds=1)
    assert noise.clean_fraction == pytest.approx(0.25, abs=0.1)
    assert noise.median_excess > 2


def test_jitter_is_not_an_interruption() -> None:
    machine = Machine(jitter=0.5)
    noise = measure_noise(machine, machine.timer(), seconds=1)
    assert noise.clean_fraction == 1
    assert 0 < noise.median_excess < noise.p90_excess < 0.5


def test_a_system_that_does_not_count() -> None:
    machine = Machine()
    assert measure_noise(machine, machine.timer(counts=False), seconds=0.1).clean_fraction is None


def test_slow_work_still_gives_ten_samples() -> None:
    machine = Machine(call_ns=2 * WARM_UP_NS)
    noise = measure_noise(machine, machine.timer(), seconds=0)
    assert noise.samples == 10
    assert machine.call_ns > SAMPLE_NS
