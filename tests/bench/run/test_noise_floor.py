"""The noise floor on a clock of the test's own."""

from tests.bench.fake import FakeTime

from opmark.bench.clock.clock import Clock
from opmark.bench.clock.protocol import FULL
from opmark.bench.run.noise_floor import measure_floor


class Sentinel:
    copies = 1

    def __init__(self, time: FakeTime) -> None:
        self.call = time.work

    def close(self) -> None:
        """Nothing to free."""


def floor_of(step_ns: float, seconds: float = 1.0) -> tuple[float, float]:
    """The floor where every second look at a network is `step_ns` longer than its 100 µs."""
    time = FakeTime(latency_ns=100_000.0)

    def network() -> None:
        time.work()
        time.now_ns += step_ns * (len(time.sleeps) % 2)

    sentinels = {"compute": Sentinel(time), "memory": Sentinel(time)}
    clock = Clock(timer=time.timer(), protocol=FULL)
    found = measure_floor(clock, sentinels, {"kernels": time.work, "networks": network}, seconds)
    return found.kernels, found.networks


def test_a_steady_machine_has_hardly_any_floor() -> None:
    assert max(floor_of(0.0)) <= 0.003


def test_looks_that_differ_while_the_sentinels_do_not_are_the_floor() -> None:
    kernels, networks = floor_of(20_000.0)
    assert kernels <= 0.003
    assert 0.05 < networks < 0.15
