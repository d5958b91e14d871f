"""Serving: requests worked by hand, and against the plain reference."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.test_placers import branchy
from tests.leaderboards import examples
from tests.leaderboards.compiled_module import CompiledModule
from tests.leaderboards.examples import graph, pair
from tests.leaderboards.reference_requests import RequestsReference

from opmark.core.errors import ContentError, UsageError
from opmark.core.files import json_text
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.response_time import guarantee_ns
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.workload import Workload, serving_requests, with_workload
from opmark.leaderboards.problem.checks import arrival_findings, checked, findings
from opmark.leaderboards.problem.fields import Arrivals
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.integers import taken_rows
from opmark.leaderboards.problem.placement import Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.arrival_process import ARRIVAL_PROCESSES, drawn_arrivals
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.robustness import robustness
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.memory import memory_steps
from opmark.leaderboards.simulator.passes._requests.copies import request_copies
from opmark.leaderboards.simulator.passes.requests import ServedRequests, nearest_rank, percentile
from opmark.leaderboards.simulator.several_passes import Passes, passes_of
from opmark.leaderboards.simulator.simulate import simulate, simulate_many
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace
from opmark.leaderboards.site.timeline import timeline_of


def serving(problem: Problem, *times: int, target_ns: int = 20, **facts) -> Problem:
    stream = Arrivals(arrival_ns=times, target_ns=target_ns)
    return checked(replace(problem, objective="serving", arrivals=(stream,), **facts), "serving")


def chain() -> Problem:
    return graph({"a": 10, "b": 5}, [("a", ["b"])], pair(3))


def test_requests_wait_for_one_another() -> None:
    """On one device the second request waits 11 ns; in a pipeline only 6, but everybody pays the link."""
    problem = serving(chain(), 0, 4, 100)
    alone = evaluate(problem, Solution(device={"a": "d0", "b": "d0"}))
    assert alone.schedule.requests_ns.tolist() == [15, 26, 15]
    piped = evaluate(problem, Solution(device={"a": "d0", "b": "d1"}))
    assert piped.schedule.requests_ns.tolist() == [18, 24, 18]
    assert piped.cost == 24
    facts = {"requests": 3, "p50_ns": 18, "p99_ns": 24, "missed": 1, "missed_fraction": 1 / 3}
    assert piped.facts(problem) == facts
    assert piped.busy_ns(2) == [30, 15]
    assert simulate_many(problem, np.array([[0, 1], [0, 0]])).tolist() == [24, 26]


def test_earlier_requests_go_first_whatever_their_priority() -> None:
    problem = serving(graph({"a": 10, "b": 10, "c": 1}, [], pair()), 0, 5)
    places = dict.fromkeys("abc", "d0")
    first = evaluate(problem, Solution(device=places, priority={"a": 0, "b": 1, "c": 2}))
    assert first.schedule.requests_ns.tolist() == [21, 37], "c b a of the first, then c b a of the second"
    _, wide, inner = first.shown(problem)
    assert inner.unit_start_ns.tolist() == [11, 1, 0, 32, 22, 21]
    assert wide.device.tolist() == [0] * 6
    strict = evaluate(problem, Solution(device=places, order={"d0": ("a", "c", "b")}))
    assert strict.schedule.expanded[2].unit_start_ns.tolist() == [0, 11, 10, 21, 32, 31]


def test_replicas_take_requests_in_turn() -> None:
    problem = serving(graph({"a": 10}, [], pair()), 0, 1, 2, 3, replication=True)
    alone = evaluate(problem, Solution(device={"a": "d0"}))
    assert alone.schedule.requests_ns.tolist() == [10, 19, 28, 37]
    both = evaluate(problem, Solution(device={"a": "d0"}, replicas={"d0": ("d1",)}))
    assert both.schedule.requests_ns.tolist() == [10, 10, 18, 18]


def test_memory_is_that_of_the_requests_in_flight() -> None:
    base = chain()
    sized = tuple(replace(tensor, size_bytes=7) for tensor in base.tensors)
    units = tuple(replace(unit, weights=("w",)) for unit in base.units)
    problem = serving(replace(base, tensors=sized, units=units, weights={"w": 100}), 0, 0, 1000)
    together = evaluate(problem, Solution(device={"a": "d0", "b": "d0"}, priority={"a": 1, "b": 0}))
    assert together.schedule.peak_bytes.tolist() == [107, 0], "one after the other, weights once"
    assert memory_steps(*together.shown(problem))[0][:2] == [(0, 107), (30, 100)]


def test_two_networks_have_targets_of_their_own() -> None:
    problem = checked(
        replace(
            graph({"a": 10, "b": 30}, [], pair()),
            objective="serving",
            arrivals=(
                Arrivals(arrival_ns=(0, 5), target_ns=12, units=("a",)),
                Arrivals(arrival_ns=(0,), target_ns=100, units=("b",)),
            ),
        ),
        "two",
    )
    found = evaluate(problem, Solution(device={"a": "d0", "b": "d0"}))
    # a at 0, then b (the earlier request), then the second a
    assert found.schedule.requests_ns.tolist() == [10, 40, 45]
    networks = found.facts(problem)["networks"]
    assert [row["missed"] for row in networks] == [1, 0]
    assert [row["p99_ns"] for row in networks] == [45, 40]
    assert guarantee_ns(problem) is None
    apart = evaluate(problem, Solution(device={"a": "d0", "b": "d1"}))
    assert apart.schedule.requests_ns.tolist() == [10, 30, 15]
    # of three requests the tail is the slowest, one of b
    assert bounds(problem)["critical_path"] == 30 == apart.cost
    often = replace(problem.arrivals[0], arrival_ns=tuple(range(0, 9900, 10)))
    rare = replace(problem, arrivals=(often, problem.arrivals[1]))
    assert bounds(rare)["critical_path"] == 10, "one request of b in a thousand is beyond the tail"


@st.composite
def cases(draw):
    """A random problem served to random requests, maybe as two networks, and where everything is placed."""
    problem, places = draw(examples.placed(examples.rich, max_units=6))
    times = st.lists(st.integers(0, 60), min_size=1, max_size=5).map(lambda row: tuple(sorted(row)))
    streams = [Arrivals(arrival_ns=draw(times), target_ns=draw(st.integers(1, 50)))]
    if draw(st.booleans()):
        again = [replace(unit, name=f"x{unit.name}") for unit in problem.units]
        other = [
            replace(
                tensor,
                name=f"x{tensor.name}",
                producer=f"x{tensor.producer}" if tensor.producer else "",
                consumers=tuple(f"x{name}" for name in tensor.consumers),
            )
            for tensor in problem.tensors
        ]
        streams[0] = replace(streams[0], units=tuple(unit.name for unit in problem.units))
        second = tuple(unit.name for unit in again)
        streams.append(Arrivals(arrival_ns=draw(times), target_ns=5, units=second))
        problem = replace(problem, units=(*problem.units, *again), tensors=(*problem.tensors, *other))
        places |= {f"x{name}": where for name, where in places.items()}
    return checked(
        replace(problem, objective="serving", memory_mode="liveness", arrivals=tuple(streams)), "case"
    ), places


@settings(max_examples=150, deadline=None)
@given(cases(), st.data())
def test_serving_agrees_with_the_reference(case: tuple[Problem, dict[str, str]], data: st.DataObject) -> None:
    problem, places = case
    profile = data.draw(
        st.sampled_from(["opsim1", "opsim1", "contention_free", "half_duplex_port", "source_bus_multicast"])
    )
    priority = order = None
    if data.draw(st.booleans()):
        priority = {unit.name: data.draw(st.integers(-3, 3)) for unit in problem.units}
    if data.draw(st.booleans()):
        kept = data.draw(st.lists(st.sampled_from(sorted(set(places.values()))), unique=True, min_size=1))
        order = {where: tuple(u.name for u in problem.units if places[u.name] == where) for where in kept}
    slow = RequestsReference(problem, places, priority, order, profile=profile)
    placement = placement_of(problem, Solution(device=places, priority=priority, order=order))
    rules = profile_named(profile)
    found = simulate(problem, placement, rules)
    assert found.requests_ns.tolist() == slow.latencies
    assert found.cost_ns == slow.p99
    assert found.peak_bytes.tolist() == [slow.peak[d.name] for d in problem.cluster.devices]
    steps = memory_steps(*found.expanded)
    assert [max(held for _, held in row) for row in steps] == found.peak_bytes.tolist()
    if order is None:
        rows = placement.priority
        many = simulate_many(problem, placement.device[None, :], rows, profile=rules, enforce_memory=False)
        assert many.tolist() == [slow.p99]
    assert all(slow.p99 >= value for value in bounds(replace(problem, profile=profile)).values())
    evaluation = evaluate(problem, Solution(device=places, priority=priority, order=order), rules)
    trace = json.loads(json_text(chrome_trace(problem, evaluation, rules)))
    assert check_trace(problem, trace) == slow.p99


@settings(max_examples=30, deadline=None)
@given(examples.placed(examples.rich))
def test_one_request_at_the_beginning_is_one_pass(case: tuple[Problem, dict[str, str]]) -> None:
    problem, places = case
    problem = replace(problem, memory_mode="liveness")
    alone = evaluate(problem, Solution(device=places))
    assert evaluate(serving(problem, 0), Solution(device=places)).cost == alone.cost
    later = evaluate(serving(problem, 17, 10**6), Solution(device=places))
    assert later.schedule.requests_ns.tolist() == [alone.cost, alone.cost], "they never meet"


def test_percentiles_are_latencies_that_were_seen() -> None:
    values = np.arange(1, 201)
    assert [percentile(values, percent) for percent in (50, 99, 100)] == [100, 198, 200]
    assert [nearest_rank(count, 99) for count in (1, 99, 100, 101)] == [1, 99, 99, 100]
    assert nearest_rank(3, 0) == 1


def test_traces_are_drawn_from_a_seed() -> None:
    for name in ARRIVAL_PROCESSES.names():
        first = drawn_arrivals(name, rate_per_s=1000, requests=2000, target_ns=5, seed=3)
        assert first == drawn_arrivals(name, rate_per_s=1000, requests=2000, target_ns=5, seed=3)
        assert first.arrival_ns != drawn_arrivals(name, rate_per_s=1000, requests=2000, target_ns=5).arrival_ns
        gaps = np.diff(np.array((0, *first.arrival_ns)))
        assert gaps.mean() == pytest.approx(10**6, rel=0.3), name
        variation = gaps.std() / gaps.mean()
        assert variation == pytest.approx(1.0 if name == "poisson" else 4.0, rel=0.3), name
        assert name in first.source
    assert ARRIVAL_PROCESSES.names() == ("bursty", "poisson")
    assert all(process.summary for process in ARRIVAL_PROCESSES)
    with pytest.raises(UsageError, match="must be positive"):
        drawn_arrivals("poisson", rate_per_s=0, requests=1, target_ns=1)


def test_a_trace_is_made_for_a_problem() -> None:
    made = serving_requests(chain(), process="bursty", requests=50, seed=2)
    assert made.objective == "serving"
    assert len(made.arrivals[0].arrival_ns) == 50
    assert made.arrivals[0].target_ns == 3 * 15
    assert findings(made) == []
    two = serving_requests(
        graph({"0/a": 10, "1/a": 5}, [], pair()), process="poisson", networks=("0/", "1/"), target_ns=9
    )
    assert [stream.units for stream in two.arrivals] == [("0/a",), ("1/a",)]
    assert {stream.target_ns for stream in two.arrivals} == {9}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"arrivals": ()}, "arrivals: the objective serving needs requests"),
        ({"memory_mode": "sum"}, "memory_mode: liveness where requests are served"),
        ({"contiguous": True}, "contiguous"),
        ({"profile": "maxload_serial"}, "profile: one that simulates events"),
        ({"arrivals": (Arrivals(arrival_ns=(), target_ns=1),)}, "arrivals.0.arrival_ns: at least one"),
        ({"arrivals": (Arrivals(arrival_ns=(-1,), target_ns=1),)}, "arrivals.0.arrival_ns: must be ns"),
        ({"arrivals": (Arrivals(arrival_ns=(2, 1), target_ns=1),)}, "arrivals.0.arrival_ns: must be in order"),
        ({"arrivals": (Arrivals(arrival_ns=(2,), target_ns=0),)}, "arrivals.0.target_ns"),
        ({"arrivals": (Arrivals(arrival_ns=(2,), target_ns=1, units=("z",)),)}, "no unit is called 'z'"),
        ({"arrivals": (Arrivals(arrival_ns=(2,), target_ns=1, units=("a",)),)}, "no network has the unit 'b'"),
        (
            {"arrivals": (Arrivals(arrival_ns=(2,), target_ns=1, units=("a", "a", "b")),)},
            "belongs to a network already",
        ),
        (
            {"arrivals": tuple(Arrivals(arrival_ns=(2,), target_ns=1, units=(name,)) for name in "ab")},
            "tensors.a.out: joins networks",
        ),
        ({"arrivals": (Arrivals(arrival_ns=(0,) * 2**22, target_ns=1),)}, "units in all"),
        ({"objective": "latency"}, "arrivals: only the objective serving"),
    ],
)
def test_wrong_requests_are_named(change: dict, sentence: str) -> None:
    problem = replace(serving(chain(), 0), **change)
    assert any(sentence in found for found in arrival_findings(problem))
    with pytest.raises(ContentError):
        checked(problem, "x")


def test_a_serving_problem_is_a_file_like_any_other(tmp_path) -> None:
    problem = serving(chain(), 0, 4, 100)
    save_problem(problem, tmp_path / "serving.json")
    assert load_problem(tmp_path / "serving.json") == problem
    assert problem.id != replace(problem, arrivals=(Arrivals(arrival_ns=(0, 4, 99), target_ns=20),)).id
    save_problem(chain(), tmp_path / "plain.json")
    assert "arrivals" not in (tmp_path / "plain.json").read_text()
    places = {"a": "d0", "b": "d1"}
    shuffled = disguise(problem, "other", np.random.default_rng(1), rescale=0)
    assert shuffled.arrivals[0].arrival_ns == (0, 4, 100)
    cost = evaluate(problem, Solution(device=places))
    assert len(timeline_of(problem, cost).bars) == 9
    drawn = robustness(problem, cost.placement, draws=3)
    assert drawn.costs == (24, 24, 24), "there are no intervals to draw from"
    units = tuple(replace(unit, interval=dict.fromkeys(unit.exec_ns, (0.5, 2.0))) for unit in problem.units)
    assert len(set(robustness(replace(problem, units=units), cost.placement, draws=20).costs)) > 5


def test_what_several_passes_are_made_of() -> None:
    offsets, values, place = taken_rows(np.array([0, 2, 2, 3]), np.array([5, 6, 7]), np.array([2, 0, 1]))
    assert (offsets.tolist(), values.tolist(), place.tolist()) == ([0, 1, 3, 3], [7, 5, 6], [0, 1, 1])
    problem = serving(chain(), 0, 4)
    copies = request_copies(problem)
    assert copies.arrays(problem.arrays).tensor_producer.tolist() == [0, 2]
    assert copies is request_copies(problem)
    passes = passes_of(problem)
    assert isinstance(passes, ServedRequests)
    assert isinstance(passes, Passes)
    assert passes.release_ns(problem, "a@1") == 4
    assert CompiledModule("opmark.leaderboards.simulator.passes._requests.engine").engine.FINISHED == 0


def test_a_question_makes_a_problem_of_its_objective() -> None:
    made = with_workload(chain(), Workload(objective="serving", arrivals="poisson", requests=7, target_ns=30, seed=5))
    assert (len(made.arrivals[0].arrival_ns), made.arrivals[0].target_ns) == (7, 30)
    steps = with_workload(chain(), Workload(micro_batches=4))
    assert (steps.objective, steps.micro_batches) == ("latency", 4)
    assert with_workload(chain(), Workload(objective="cost")).unit == "$"
    for wrong in (Workload(objective="serving"), Workload(arrivals="poisson")):
        with pytest.raises(UsageError, match="serving needs arrivals, and only that one"):
            with_workload(chain(), wrong)


@pytest.mark.parametrize("placer", ["best-single-device", "heft", "local-search", "opmark"])
def test_placers_answer_serving_problems(placer: str) -> None:
    problem = serving_requests(branchy(), process="poisson", requests=20, load=1.5)
    found = attempt(problem, placer, budget_s=2)
    for name, value in bounds(problem).items():
        assert found.evaluation.cost >= value, name
    assert found.evaluation.facts(problem)["requests"] == 20
