import pytest
from tests.bench.fake import FakeTime

from opmark.bench import noise
from opmark.bench.noise import judged, measure

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
    monkeypatch.setattr(noise, "may_use_fifo", lambda: False)
    found = measure(1.0, time.timer())
    assert found.verdict == "quiet"
    assert found.clean_fraction == 1.0
    assert found.compute_spread == pytest.approx(0.0, abs=1e-4)
