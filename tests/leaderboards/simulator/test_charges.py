from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.pools import HOUR_NS, MS, pool

from opmark.core.errors import ContentError, PlacementError
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.placement import Placement, solution_of
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.simulate import simulate, simulate_many

# Numbers of devices: 0 and 1 are fast, 2 to 4 slow, 5 is odd.
SERIAL = [0, 0, 0, 0]
TWO = [0, 0, 2, 0]


def placed(row):
    return Placement(device=np.array(row, dtype=np.int64))


def test_money_for_one_pass_charges_the_devices_that_are_used():
    problem = pool("cost", latency_ns=100 * MS)
    found = evaluate(problem, solution_of(problem, placed(SERIAL)))
    latency = found.schedule.latency_ns
    assert 12 * MS < latency < 13 * MS
    assert found.cost == -int(-3.0 * latency * 10**12 // HOUR_NS)
    both = evaluate(problem, solution_of(problem, placed(TWO)))
    assert both.cost == pytest.approx(4.0 * both.schedule.latency_ns * 10**12 / HOUR_NS, abs=1)


def test_rent_is_the_price_per_hour_of_used_devices_and_of_replicas():
    problem = pool("rent", period_ns=100 * MS)
    assert evaluate(problem, solution_of(problem, placed(TWO))).cost == 4 * 10**12
    copied = replace(placed(SERIAL), replicas={0: [1]})
    assert evaluate(problem, solution_of(problem, copied)).cost == 6 * 10**12


@pytest.mark.parametrize(
    ("problem", "row", "reason"),
    [
        (pool("cost", latency_ns=12 * MS), SERIAL, "are allowed"),
        (pool("rent", period_ns=11 * MS), SERIAL, "a sample ends every"),
        (pool("latency", price_per_hour=3.5), TWO, r"its devices cost 4 per hour, and 3.5 are allowed"),
        (pool("throughput", price_per_hour=3.5), TWO, "per hour"),
    ],
)
def test_a_missed_limit_makes_an_answer_invalid_everywhere(problem, row, reason):
    with pytest.raises(PlacementError, match=reason):
        evaluate(problem, solution_of(problem, placed(row)))
    assert simulate_many(problem, np.array([row], dtype=np.int64)).tolist() == [INVALID_COST]
    assert Incumbent(problem, "test", 1.0).value_of(placed(row)) is None
    free = replace(problem, limits=GoalLimits())
    assert simulate_many(free, np.array([row], dtype=np.int64))[0] == simulate(free, placed(row)).cost_ns


def test_a_limit_that_is_reached_is_kept():
    free = pool("latency")
    latency = simulate(free, placed(SERIAL)).latency_ns
    for limit, valid in ((latency, True), (latency - 1, False)):
        problem = pool("cost", latency_ns=limit)
        assert (simulate_many(problem, np.array([SERIAL], dtype=np.int64))[0] < INVALID_COST) == valid
    # three times 0.1 is not quite 0.3 in binary
    cheap = replace(
        free,
        cluster=replace(
            free.cluster, devices=tuple(replace(device, price_per_hour=0.1) for device in free.cluster.devices)
        ),
        limits=GoalLimits(price_per_hour=0.3),
    )
    assert evaluate(cheap, solution_of(cheap, placed([0, 1, 2, 0]))).cost > 0


def test_limits_are_part_of_a_problem_s_identity_and_older_problems_keep_theirs():
    free, tight = pool(), pool(price_per_hour=2.0)
    assert free.id != tight.id
    assert pool(price_per_hour=0.0).id == free.id


def test_a_disguised_pool_can_still_be_solved():
    problem = pool("cost", latency_ns=13 * MS)
    hidden = disguise(problem, "hidden", np.random.default_rng(1))
    assert hidden.limits.latency_ns >= problem.limits.latency_ns
    rows = [[number] * 4 for number in range(len(hidden.cluster.devices))]
    assert simulate_many(hidden, np.array(rows, dtype=np.int64)).min() < INVALID_COST


def test_wrong_limits_are_refused():
    for limits, field in (
        (GoalLimits(latency_ns=-1), "limits.latency_ns"),
        (GoalLimits(price_per_hour=-0.5), "limits.price_per_hour"),
    ):
        with pytest.raises(ContentError, match=field):
            checked(replace(pool(), limits=limits), "pool")
    with pytest.raises(ContentError, match="simulates events"):
        checked(replace(pool(), limits=GoalLimits(price_per_hour=1.0), profile="maxload_serial"), "pool")
