"""The work before a reading and the moment of it are told apart."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.measurements.readings_in_time import Reading, effects_of_work

SPEEDS = (0.0, 0.25, 0.1)
SHORT, LONG = 0.0, 0.5


def drifting(chance: random.Random, *, noise: float = 0.05, longs: tuple[int, int] = (0, 300)) -> list[Reading]:
    """300 short works at three speeds of the machine, and long ones beside every fifth of them within `longs`."""
    found = []
    for at in range(300):
        level = SPEEDS[at // 100]
        found.append(Reading(moment=(at, 0), work="short", trial=f"s{at}", log_ns=level + chance.gauss(SHORT, noise)))
        if at % 5 == 0 and longs[0] <= at < longs[1]:
            found.append(Reading(moment=(at, 1), work="long", trial=f"l{at}", log_ns=level + chance.gauss(LONG, noise)))
    return found


@pytest.mark.parametrize("longs", [(0, 300), (0, 100), (100, 200), (250, 300)])
def test_the_moment_of_long_work_does_not_matter(longs: tuple[int, int]) -> None:
    readings = drifting(random.Random(1), longs=longs)
    effects = effects_of_work(readings)
    assert effects["long"] - effects["short"] == pytest.approx(LONG - SHORT, abs=0.06)


def test_the_order_of_the_readings_does_not_matter() -> None:
    readings = drifting(random.Random(2))
    shuffled = readings[:]
    random.Random(3).shuffle(shuffled)
    assert effects_of_work(shuffled) == pytest.approx(effects_of_work(readings))


def test_interruptions_do_not_count() -> None:
    readings = drifting(random.Random(4))
    stalled = [
        Reading(moment=one.moment, work=one.work, trial=one.trial, log_ns=one.log_ns + 2.0 * (at % 9 == 0))
        for at, one in enumerate(readings)
    ]
    effects = effects_of_work(stalled)
    assert effects["long"] - effects["short"] == pytest.approx(LONG - SHORT, abs=0.08)


def test_work_that_one_trial_did_follows_its_neighbour() -> None:
    readings = drifting(random.Random(5))
    readings += [Reading(moment=(at, 2), work="longer", trial="x", log_ns=SPEEDS[0]) for at in range(30)]
    alone = effects_of_work(readings)
    drawn = effects_of_work(readings, [("long", "longer", 1.0)])
    assert abs(drawn["longer"] - drawn["long"]) < abs(alone["longer"] - alone["long"])
    assert drawn["longer"] - drawn["short"] > 0.2, "thirty looks at one trial are one trial"


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("abc"), st.floats(-3, 3)), min_size=1, max_size=60))
def test_any_readings_have_finite_effects(found: list[tuple[int, str, float]]) -> None:
    readings = [Reading(moment=(at, 0), work=work, trial=f"{work}{at}", log_ns=10 + value) for at, work, value in found]
    effects = effects_of_work(readings, [("a", "b", 1.0)] if {"a", "b"} <= {work for _, work, _ in found} else [])
    assert set(effects) == {work for _, work, _ in found}
    assert all(math.isfinite(value) and abs(value) <= 6.1 for value in effects.values())
