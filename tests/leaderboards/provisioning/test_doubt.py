import pytest
from tests.leaderboards.provisioning.offers import MS, diamond

from opmark.leaderboards.provisioning.doubt import doubt_in
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.goal import Goal


def explored(goal=None):
    exploration = Exploration(diamond(), goal or Goal(), devices_at_most=2)
    exploration.run(5.0)
    return exploration


def test_the_interval_holds_the_latency_and_shares_sum_to_one():
    exploration = explored()
    answers = list(exploration.answers.values())
    doubt = doubt_in(exploration.job, answers, exploration.goal, draws=40)
    for answer in answers:
        low, high = doubt.interval_ns(answer)
        assert low < answer.latency_ns < high
    assert sum(doubt.shares(exploration.goal)) == pytest.approx(1.0)


def test_a_much_faster_fleet_is_better_in_every_draw_and_a_fleet_ties_with_itself():
    goal = Goal(price_per_hour_at_most=100)
    exploration = explored(goal)
    slow = exploration.answers[next(one for one in exploration.answers if one.title == "1 slow")]
    best = exploration.best()
    doubt = doubt_in(exploration.job, [best, slow], goal, draws=40)
    assert best.latency_ns < 0.5 * slow.latency_ns
    assert doubt.probability_better(best, slow, goal) == 1.0
    assert doubt.probability_better(slow, best, goal) == 0.0
    assert doubt.probability_better(best, best, goal) == 0.5


def test_the_same_seed_gives_the_same_draws():
    exploration = explored(Goal(latency_at_most_ns=20 * MS))
    answers = list(exploration.answers.values())
    one, other = (doubt_in(exploration.job, answers, exploration.goal, draws=10) for _ in range(2))
    assert (one.latency_ns == other.latency_ns).all()
