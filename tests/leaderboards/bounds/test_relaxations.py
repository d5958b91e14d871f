"""Every placer on random problems, under every objective and profile: valid where it answers, never below a bound."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, pair
from tests.leaderboards.simulator.test_micro_batches import in_line, pipeline
from tests.leaderboards.simulator.test_replicas import everywhere, step

from opmark.core.errors import PlacementError, SubmissionError
from opmark.leaderboards.bounds.bounds import bounds, lower_bound
from opmark.leaderboards.bounds.relaxation import RELAXATIONS, part_ns, work_ns
from opmark.leaderboards.bounds.relaxations import cheapest_device, critical_path, largest_class, work_price
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.pipeline_schedule import PIPELINE_SCHEDULES
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.simulator.evaluation import evaluate

RULES = (
    ("latency", "opsim1", "ns"),
    ("latency", "half_duplex_port", "us"),
    ("latency", "atomic_calls", "ms"),
    ("throughput", "opsim1", "ns"),
    ("throughput", "maxload_serial", "ms"),
    ("throughput", "pipedream_stage", "s"),
    ("cost", "opsim1", "$"),
)


@pytest.mark.parametrize("name", PLACERS.names())
@settings(max_examples=12, deadline=None)
@given(problem=examples.rich(max_units=6), rules=st.sampled_from(RULES), contiguous=st.booleans())
def test_no_placer_beats_a_bound(name: str, problem: Problem, rules: tuple[str, str, str], contiguous: bool) -> None:
    objective, profile, unit = rules
    priced = tuple(replace(one, price_per_hour=0.5 + index) for index, one in enumerate(problem.cluster.devices))
    cluster = replace(problem.cluster, devices=priced)
    problem = replace(problem, cluster=cluster, objective=objective, profile=profile, unit=unit, contiguous=contiguous)
    try:
        groups_of(problem)
        found = attempt(problem, name, budget_s=0.2).evaluation
    except (PlacementError, SubmissionError):
        return  # nothing fits, or the placer knows nothing of the rules
    for bound, value in bounds(problem).items():
        assert found.cost >= value, bound


def test_which_bounds_say_something() -> None:
    problem = graph({"a": 10, "b": 20}, [("a", ["b"])], pair())
    assert set(bounds(problem)) == {"area", "critical_path", "largest_class"}
    assert set(bounds(replace(problem, objective="throughput"))) == {"area", "largest_class"}
    assert set(bounds(replace(problem, profile="maxload_serial"))) == {"area", "largest_class"}
    assert bounds(replace(problem, profile="atomic_calls")) == {"critical_path": 30}
    stored = replace(problem, reference=ReferenceCosts(bound_ns=31, best_known_ns=40, bounds={"solver": 31}))
    assert lower_bound(stored) == 31
    assert all(relaxation.summary for relaxation in RELAXATIONS)


def test_each_bound_by_hand() -> None:
    problem = graph({"a": 10, "b": 20, "c": 5}, [("a", ["b"])], pair())
    tied = replace(problem, units=tuple(replace(u, colocation="k" if u.name in "ac" else "") for u in problem.units))
    groups = groups_of(tied)
    assert critical_path.RELAXATION.bound(tied, groups) == critical_path.critical_path_ns(tied) == 30
    assert largest_class.RELAXATION.bound(tied, groups) == 20
    assert work_price.RELAXATION.bound(tied, groups) is None
    assert cheapest_device.RELAXATION.bound(tied, groups) is None


def test_money_has_bounds() -> None:
    devices = (device("d0", price_per_hour=3.6), device("d1", "y", price_per_hour=36.0))
    problem = graph({"a": 10**9, "b": 10**9}, [("a", ["b"])], replace(pair(), devices=devices))
    units = tuple(replace(unit, exec_ns={"x": 10**9, "y": 10**8 // 2}) for unit in problem.units)
    problem = replace(problem, units=units, objective="cost", unit="$")
    found = bounds(problem)
    assert found["work_price"] / 1e12 == pytest.approx(2 * 0.0005), "d1 is ten times dearer and twenty times faster"
    assert found["cheapest_device"] / 1e12 == pytest.approx(0.0001), "something is paid for 0.1 s"


def test_parts_may_be_shorter_and_their_work_less() -> None:
    problem = step(4)
    assert part_ns(problem)[:, 0].tolist() == [25, 25, 7]
    assert work_ns(problem)[:, 0].tolist() == [99, 99, 7], "three parts of 33"
    assert bounds(problem)["critical_path"] == 57


@pytest.mark.parametrize("schedule", PIPELINE_SCHEDULES.names())
def test_a_step_works_on_every_micro_batch(schedule: str) -> None:
    problem = pipeline(4, 6, forward=20, backward=30, update=10)
    assert work_ns(problem)[:, 0].tolist() == [120, 180, 10] * 4
    bound = bounds(problem)["area"]
    assert bound == pytest.approx(310, abs=1), "all work over four devices"
    assert bound <= in_line(problem, schedule).cost
    once = replace(problem, objective="throughput")
    assert work_ns(once)[:, 0].tolist() == [20, 30, 10] * 4


def test_shares_of_micro_batches_count_like_whole_ones() -> None:
    problem = step(2, micro_batches=4)
    assert work_ns(problem)[:, 0].tolist() == [4 * 100, 4 * 100, 7]
    for count in (1, 2):
        assert bounds(problem)["area"] <= evaluate(problem, everywhere(count)).cost
