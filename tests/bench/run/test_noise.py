import itertools
from dataclasses import replace

import pytest
from tests.bench.fake import FakeTime

from opmark.bench.run import noise
from opmark.bench.run.noise import judged, measure, wait_until, with_reference
from opmark.bench.run.reference import Reference, measure_reference
from opmark.core.errors import UsageError

CALM = {"clean_fraction": 0.95, "compute_spread": 0.01, "memory_spread": 0.02, "median_bias": 0.01, "pressure": 2.0}


@pytest.mark.parametrize(
    ("change", "real_time", "verdict"),
    [
        ({}, False, "quiet"),
        ({"clean_fraction": 0.2}, True, "quiet"),
        ({"memory_spread": 0.2}, False, "neighbours use the shared cache and memory"),
        ({"compute_spread": 0.2}, False, "the processor's speed itself varies"),
        ({"clean_fraction": 0.2}, False, "busy, and samples are interrupted"),
    ],
)
def test_numbers_become_words(change: dict[str, float], real_time: bool, verdict: str) -> None:
    assert judged(**{**CALM, **change}, real_time=real_time).verdict == verdict


def test_a_busy_machine_is_told_how_many_more_samples_it_needs() -> None:
    assert "5.0 times the samples" in judged(**{**CALM, "clean_fraction": 0.2}, real_time=False).advice


def test_a_clock_on_which_nothing_happens_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime(latency_ns=40_000.0)

    class Steady:
        copies = 1
        call = staticmethod(time.work)

        def close(self) -> None:
            """Nothing to free."""

    monkeypatch.setattr(noise, "processor_sentinels", lambda: {"compute": Steady(), "memory": Steady()})
    monkeypatch.setattr(noise, "pieces_of_work", lambda: {"kernels": time.work, "networks": time.work})
    monkeypatch.setattr(noise, "may_use_fifo", lambda: False)
    found = measure(1.0, time.timer())
    assert found.verdict == "quiet"
    assert found.clean_fraction == 1.0
    assert found.compute_spread == pytest.approx(0.0, abs=1e-4)
    assert found.floor is not None
    assert max(found.floor.kernels, found.floor.networks) < 0.003


def test_waiting_is_told_from_the_rounds_that_were_seen() -> None:
    assert wait_until([True, True], 0.5) == 0.0
    assert wait_until([False, False], 0.5) is None
    # From the four moments: now, 2 rounds, 1 round, now.
    assert wait_until([True, False, False, True], 2.0) == pytest.approx(2.0 * 3 / 4)
    # Past the end the sequence starts over.
    assert wait_until([True, False], 1.0) == pytest.approx(0.5)


def test_a_reference_says_how_far_plain_figures_are_off() -> None:
    clean = [100.0 + 0.1 * (step % 10) for step in range(100)]
    reference = Reference.of("kernel", [*clean, *[400.0] * 25], clean)
    assert reference.label_ns == pytest.approx(100.1, abs=0.1)
    assert reference.clean_fraction == 0.8
    assert reference.mean_bias > 0.5 > 0.02 > reference.median_bias > 0
    with pytest.raises(ValueError, match="no samples"):
        Reference.of("nothing", [], [])


def test_the_advice_counts_samples_and_tells_how_long_quiet_takes_to_come() -> None:
    busy = judged(**{**CALM, "clean_fraction": 0.2}, real_time=False)
    wide = Reference(
        name="k", label_ns=1.0, mean_bias=0.1, median_bias=0.1, half_width=0.02, samples=100, clean_fraction=0.2
    )
    found = with_reference(replace(busy, wait_s=3.0), wide)
    assert found.samples_needed == 400
    assert found.seconds_needed == pytest.approx(400 * 350e-6)
    assert "about 400 samples" in found.advice
    assert "after 3 s" in found.advice
    assert "no quiet moment" in with_reference(busy, wide).advice
    calm = with_reference(judged(**CALM, real_time=False), replace(wide, half_width=0.001))
    assert calm.samples_needed == 5
    assert "quiet moment" not in calm.advice


def test_drift_and_interruptions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime(latency_ns=40_000.0, stalls=(turn % 500 == 0 for turn in itertools.count()))

    class Slowing:
        copies = 1

        def call(self) -> None:
            """Each call takes a little longer than the last."""
            time.latency_ns *= 1.00002
            time.work()

        def close(self) -> None:
            """Nothing to free."""

    ticks = iter([(10, 1000), (30, 1100)])
    monkeypatch.setattr(noise, "pieces_of_work", lambda: {"kernels": time.work, "networks": time.work})
    monkeypatch.setattr(noise, "processor_sentinels", lambda: {"compute": Slowing(), "memory": Slowing()})
    monkeypatch.setattr(noise, "may_use_fifo", lambda: False)
    monkeypatch.setattr(noise, "processor_times", lambda: next(ticks))
    found = measure(1.0, time.timer())
    assert found.drift > 0.02
    assert found.preemptions_per_s is not None
    assert found.preemptions_per_s > 1
    assert found.stolen == pytest.approx(0.2)
    assert found.reference is not None
    assert found.reference.name == "compute sentinel"


def test_a_target_of_its_own_is_the_reference() -> None:
    reference = measure_reference("null-t1", 0.5)
    assert reference.name.endswith("on null-t1")
    assert reference.samples >= 12
    assert reference.half_width < 0.05
    with pytest.raises(UsageError):
        measure_reference("null-z-t1", 0.05)
