"""Formulas of scores on worked values: quality, gain, means, intervals and ranks."""

import pytest

from opmark.leaderboards.scoring.score_formulas import (
    gain,
    geometric_mean,
    has_headroom,
    interval,
    quality,
    shared_ranks,
    solved_alike,
)


def test_quality_and_gain() -> None:
    assert quality(200, 100) == 0.5
    assert quality(90, 100) == 1.05
    assert quality(None, 100) == 0
    assert gain(150, 100, 200) == 0.5
    assert gain(300, 100, 200) == -1
    assert gain(None, 100, 200) is None
    assert gain(100, 100, 100) is None
    assert has_headroom(100, 102)
    assert not has_headroom(100, 101)
    assert has_headroom(100, None)


def test_the_mean_is_geometric_and_survives_a_zero() -> None:
    assert geometric_mean([0.25, 1.0]) == pytest.approx(0.5)
    assert geometric_mean([0.0, 1.0]) == pytest.approx(0.1)
    assert geometric_mean([]) == 0
    low, high = interval([0.5, 0.7, 0.9, 1.0])
    assert 0.5 <= low < geometric_mean([0.5, 0.7, 0.9, 1.0]) < high <= 1.0
    assert interval([0.5]) == (0.5, 0.5)
    assert interval([0.5, 0.7, 0.9]) == interval([0.5, 0.7, 0.9])


def test_entries_inside_each_others_interval_share_a_rank() -> None:
    assert shared_ranks([(0.9, 0.8, 1.0), (0.85, 0.7, 0.95), (0.5, 0.4, 0.6)]) == [1, 1, 3]
    assert shared_ranks([(0.9, 0.8, 1.0), (0.85, 0.84, 0.86)]) == [1, 2], "the leader is not inside the second's"
    assert shared_ranks([(0.9, 0.9, 0.9), (0.9, 0.9, 0.9)]) == [1, 1]


def test_costs_within_a_hundredth_are_alike_if_everybody_has_one() -> None:
    assert solved_alike([1000, 1010, 1003])
    assert not solved_alike([1000, 1011])
    assert not solved_alike([1000, "does not fit"])
    assert not solved_alike([1000, None])
    assert not solved_alike([1000])
    assert not solved_alike([])
