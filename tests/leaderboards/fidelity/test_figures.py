"""Errors, rankings and regret from executed placements, on numbers worked out by hand."""

import pytest

from opmark.leaderboards.fidelity.figures import (
    fidelity_figures,
    noise_floor,
    pair_signs,
    regret_of,
    repeat_regret,
    repeat_tau,
)
from opmark.leaderboards.fidelity.records import ExecutedPlacement, FidelityRecord
from opmark.leaderboards.fidelity.told import MeasuredPlacement, raw_placements
from opmark.leaderboards.problem.placement import Solution


def placement(predicted: int, *visits: int, equal: bool = True, reason: str = "") -> ExecutedPlacement:
    return ExecutedPlacement(
        placers=("heft",),
        solution=Solution(device={}),
        predicted_ns=predicted,
        visits_ns=tuple((visit, visit, 10 * visit) for visit in visits),
        outputs_equal=equal,
        reason=reason,
    )


def record(*placements: ExecutedPlacement, device: str = "x", problem: str = "p") -> FidelityRecord:
    return FidelityRecord(
        device=device, track="t", problem=problem, problem_id="0", model="m", placements=tuple(placements)
    )


def measured(*placements: ExecutedPlacement) -> list[MeasuredPlacement]:
    (found,) = raw_placements([record(*placements)])
    return found


def test_the_time_of_the_clock_is_a_median_of_medians() -> None:
    assert measured(placement(100, 110, 90, 120))[0].measured_ns == 110


def test_figures_of_one_problem() -> None:
    (found,) = fidelity_figures([record(placement(100, 110), placement(200, 190), placement(300, 330))])
    assert (found.device, found.track, found.n, found.problems) == ("x", "t", 3, 1)
    assert found.median_error == pytest.approx(1 - 100 / 110)
    assert found.tau == 1
    assert found.pairs == 3
    assert found.regret == 0
    assert found.noise_floor is None
    assert found.standard_error is None
    assert found.raw_median_error == found.median_error


def test_a_wrong_ranking_costs_tau_and_regret() -> None:
    (found,) = fidelity_figures([record(placement(100, 240), placement(200, 200))])
    assert found.tau == -1
    assert found.regret == pytest.approx(0.2)


def test_pairs_within_the_noise_say_nothing() -> None:
    pair = measured(placement(100, 120), placement(104, 110))
    assert pair_signs(pair, 0.0) == [-1]
    assert pair_signs(pair, 0.05) == []
    assert pair_signs(measured(placement(100, 50), placement(200, 50)), 0.0) == [0]


def test_the_noise_floor_is_the_change_between_two_visits() -> None:
    assert noise_floor(measured(placement(1, 100, 110, 110))) == pytest.approx(0.05)
    assert noise_floor(measured(placement(1, 100))) is None


def test_placements_that_were_not_executed_do_not_count() -> None:
    refused, wrong = placement(1, reason="cannot be cut"), placement(1, 50, equal=False)
    assert fidelity_figures([record(refused, wrong)]) == []
    (found,) = fidelity_figures([record(refused, wrong, placement(100, 100))])
    assert found.n == 1


def test_devices_stand_apart() -> None:
    one = record(placement(100, 100), device="b")
    assert [found.device for found in fidelity_figures([one, record(placement(100, 100), device="a")])] == ["a", "b"]


def test_regret_is_that_of_the_best_prediction() -> None:
    assert regret_of(measured(placement(100, 150), placement(110, 120), placement(500, 600))) == pytest.approx(0.25)


def test_one_visit_is_judged_by_another_as_a_prediction_is() -> None:
    # The first visit finds a, then b best; the second b, then a. c is last in both.
    own = measured(placement(100, 100, 120), placement(120, 110, 100), placement(300, 300, 310))
    assert repeat_tau([own], 0.05) == pytest.approx((2 - 1) / 3)
    assert repeat_tau([own], 0.5) == 1
    assert repeat_regret([own]) == pytest.approx((0.2 + 0.1) / 2)
    (found,) = fidelity_figures([record(placement(100, 100, 120), placement(120, 110, 100))])
    assert (found.repeat_tau, found.repeat_regret) == (-1, pytest.approx(0.15))


def test_single_visits_are_judged_by_nothing() -> None:
    own = measured(placement(100, 100), placement(200, 210))
    assert repeat_tau([own], 0.0) is None
    assert repeat_regret([own]) is None
