import pytest

from opmark.bench.drift import Drift
from opmark.core.records import Sentinels


def reading(compute: float, memory: float = 60.0) -> dict[str, float]:
    return {"compute": compute, "memory": memory}


def test_drift_is_the_worse_sentinels_distance_from_its_median() -> None:
    drift = Drift(Sentinels(round=n, target="t", ns=reading(30.0 + n % 2), accepted=True) for n in range(5))
    assert drift.of("t", reading(30.0)) == 0.0
    assert drift.of("t", reading(33.0)) == pytest.approx(0.1)
    assert drift.of("t", reading(30.0, 45.0)) == pytest.approx(0.25)


def test_few_readings_of_a_target_say_nothing() -> None:
    drift = Drift(())
    for _ in range(4):
        drift.add("t", reading(30.0))
        drift.add("t", {})
    assert drift.of("t", reading(90.0)) == 0.0
    drift.add("t", reading(30.0))
    assert drift.of("t", reading(90.0)) == pytest.approx(2.0)
    assert drift.of("u", reading(90.0)) == 0.0
    assert drift.of("t", {}) == 0.0
