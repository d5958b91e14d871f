"""Readings beside work that empties the caches, and beside work that does not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.measurements.labelling import HOT_EFFECT, labels_of
from opmark.core.measurements.looks import Look
from opmark.core.measurements.own_work import beside_own_work

TURNS = 12


def look(process: int, compute: float = 0.0, memory: float = 0.0, ns: float = 100.0) -> Look:
    return Look(process=process, ns=[ns] * TURNS, state=np.tile([compute, memory], (TURNS, 1)))


def memory(looks: list[Look]) -> list[float]:
    return [float(np.asarray(one.state)[0, 1]) for one in looks]


def test_what_every_look_shows_is_the_work_and_not_the_machine() -> None:
    found, groups = beside_own_work({"large": [look(n, memory=0.6) for n in range(12)]}, {"large": "gemm"})
    assert memory(found["large"]) == pytest.approx([0.6 / 289] * 12), "144 against a half"
    assert groups == {"large": "gemm, beyond caches"}


def test_one_look_may_have_met_a_disturbed_moment() -> None:
    found, _ = beside_own_work({"once": [look(0, memory=0.6)]}, {"once": "gemm"})
    assert memory(found["once"]) == pytest.approx([0.2])


def test_a_disturbed_moment_stays_one() -> None:
    looks = {"small": [look(0), look(1), look(2), look(3, memory=0.5)], "unseen": []}
    found, groups = beside_own_work(looks, {"small": "gemm", "unseen": "gemm"})
    assert memory(found["small"]) == [0.0, 0.0, 0.0, 0.5]
    assert groups["small"] == "gemm"
    assert "unseen" not in found


@given(memory_state=st.floats(-0.3, 1.5), compute=st.floats(-0.1, 0.5))
def test_only_the_state_of_memory_changes(memory_state: float, compute: float) -> None:
    before = look(3, compute=compute, memory=memory_state, ns=250.0)
    after = beside_own_work({"a": [before]}, {"a": "pool"})[0]["a"][0]
    assert np.asarray(after.state)[:, 0] == pytest.approx([compute] * TURNS)
    assert (after.process, after.ns, after.brief) == (before.process, before.ns, before.brief)
    assert np.asarray(before.state)[0, 1] == memory_state, "looks are values"


def test_a_kernel_that_empties_the_caches_is_told_as_the_calm_clock_told_it() -> None:
    """All looks are calm; the sentinel of memory is 1.8 times slower beside every third kernel."""
    chance = np.random.default_rng(5)
    looks = {
        key: [
            Look(
                process=process,
                ns=np.exp(10.0 + chance.normal(0, 0.004, TURNS)).tolist(),
                state=np.abs(chance.normal(0, 0.01, (TURNS, 2))) + np.array([0.0, math.log(1.8) * (key % 3 == 0)]),
            )
            for process in range(6)
        ]
        for key in range(60)
    }
    groups = dict.fromkeys(looks, "gemm")
    found, beyond = beside_own_work(looks, groups)
    told = labels_of(found, beyond, lasting=HOT_EFFECT)
    as_before = labels_of(looks, groups, lasting=HOT_EFFECT)
    errors = [math.log(told[key].latency_ns) - 10.0 for key in looks if key % 3 == 0]
    assert abs(float(np.median(errors))) < 0.01
    assert abs(float(np.median([math.log(as_before[key].latency_ns) - 10.0 for key in looks if key % 3 == 0]))) > 0.03
    assert all(told[key].effective > 2 > as_before[key].effective for key in looks if key % 3 == 0)
