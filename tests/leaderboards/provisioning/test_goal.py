import pytest

from opmark.core.errors import UsageError
from opmark.leaderboards.provisioning.goal import Figures, Goal, samples_per_second


def figures(latency_ms, price, per_second=None):
    rate = samples_per_second(1, latency_ms * 1e6) if per_second is None else per_second
    return Figures(latency_ns=latency_ms * 1e6, samples_per_second=rate, price_per_hour=price)


SLOW, MEDIUM, FAST = figures(40, 1), figures(18, 3), figures(10, 8)


def best(goal):
    return min((SLOW, MEDIUM, FAST), key=goal.rank)


def test_money_for_a_million_samples_is_price_times_time():
    # 3 per hour, 10 samples a second: 36,000 samples an hour, 1e6 of them take 27.8 hours.
    assert figures(100, 3).cost_per_million == pytest.approx(3 * 1e6 / 36_000)


def test_each_goal_ranks_by_its_other_side():
    assert best(Goal()) is SLOW
    assert best(Goal(latency_at_most_ns=20e6)) is MEDIUM
    assert best(Goal(price_per_hour_at_most=5)) is MEDIUM
    assert best(Goal(price_per_hour_at_most=9)) is FAST
    assert best(Goal(samples_per_second=60)) is FAST


def test_a_demand_is_paid_by_the_hour_not_by_the_sample():
    wide, narrow = figures(10, 4, per_second=900), figures(10, 3, per_second=600)
    assert wide.cost_per_million < narrow.cost_per_million
    assert Goal(samples_per_second=500).rank(narrow) < Goal(samples_per_second=500).rank(wide)


def test_of_answers_that_miss_the_goal_the_closest_leads():
    assert best(Goal(latency_at_most_ns=5e6)) is FAST
    assert best(Goal(price_per_hour_at_most=0.5)) is SLOW
    assert Goal(latency_at_most_ns=5e6).shortfall(FAST) == pytest.approx(2)


@pytest.mark.parametrize(
    "limits", [{"latency_at_most_ns": 1.0, "samples_per_second": 1.0}, {"price_per_hour_at_most": 0.0}]
)
def test_two_limits_or_one_that_is_not_positive_are_refused(limits):
    with pytest.raises(UsageError):
        Goal(**limits)
