"""Makespans told at the state of the labels: a slow hour changes the clock's times and not these."""

import math

import numpy as np
import pytest

from opmark.leaderboards.fidelity.figures import fidelity_figures
from opmark.leaderboards.fidelity.records import ExecutedPlacement, FidelityRecord
from opmark.leaderboards.fidelity.told import told_placements
from opmark.leaderboards.problem.placement import Solution

TRUTH = (1000, 1300, 1700, 2400)


def record(*, states: bool) -> FidelityRecord:
    """Two visits to each placement, in every second of which the machine is 1.5 times as slow for a while."""
    random = np.random.default_rng(0)
    placements = []
    for number, truth in enumerate(TRUTH):
        visits, beside = [], []
        for visit in range(2):
            slow = math.log(1.5) if (visit + number) % 2 else 0.0
            state = slow + 0.01 * random.standard_normal(20)
            ns = truth * np.exp(state + 0.005 * random.standard_normal(20))
            visits.append(tuple(round(value) for value in ns.tolist()))
            beside.append(tuple((value, value) for value in state.tolist()))
        placements.append(
            ExecutedPlacement(
                placers=("heft",),
                solution=Solution(device={}),
                predicted_ns=truth,
                visits_ns=tuple(visits),
                states=tuple(beside) if states else (),
                kernels_ns=truth // 10,
            )
        )
    return FidelityRecord(device="x", track="t", problem="p", problem_id="0", model="m", placements=tuple(placements))


def test_two_visits_agree_at_the_label_state() -> None:
    (placements,) = told_placements([record(states=True)])
    for one, truth in zip(placements, TRUTH, strict=True):
        assert one.measured_ns == pytest.approx(truth, rel=0.03)
        assert one.visits_ns[0] == pytest.approx(one.visits_ns[1], rel=0.05)
        assert one.standard_error is not None
        assert 0 < one.standard_error < 0.1


def test_figures_stand_beside_those_of_the_clock() -> None:
    (found,) = fidelity_figures([record(states=True)])
    assert found.noise_floor is not None
    assert found.raw_noise_floor is not None
    assert found.noise_floor < 0.05 < 0.3 < found.raw_noise_floor
    assert found.median_error < 0.03 < found.raw_median_error  # type: ignore[operator]
    assert found.parts["kernels"] == pytest.approx(0.1, abs=0.01)
    assert found.standard_error is not None


def test_records_without_states_keep_the_clocks_times() -> None:
    (found,) = fidelity_figures([record(states=False)])
    assert found.median_error == found.raw_median_error
    assert found.standard_error is None
