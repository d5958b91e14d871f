"""Placers that search: known optima, budgets, memory, and what they are never worse than."""

import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.contracts.test_placers import branchy, training
from tests.leaderboards.examples import device, graph, heft_canonical, pair, peft_canonical, star

from opmark.core.errors import PlacementError, SubmissionError
from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.bounds.bounds import bounds, cheap_lower_bound
from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.placers.opmark import PLACER, PROGRAMS
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import UNITS
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.anytime import listening
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.evaluation import evaluate

ROOT = Path(__file__).resolve().parents[3]
EXTERNAL = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data"))
SEARCHING = ("opmark", "simulated-annealing", "flexflow-mcmc", "genetic")


def chain(count: int, cluster: Cluster) -> Problem:
    names = [f"u{number}" for number in range(count)]
    edges = [(a, [b]) for a, b in pairwise(names)]
    return graph(dict.fromkeys(names, 10), edges, cluster)


@pytest.mark.parametrize(("problem", "optimum"), [(heft_canonical(), 73), (peft_canonical(), 113)])
def test_opmark_finds_the_proven_optima(problem: Problem, optimum: int) -> None:
    # both were proved by constraint programming on infinitely wide links
    assert attempt(replace(problem, profile="contention_free"), "opmark", budget_s=30).evaluation.cost == optimum


@pytest.mark.parametrize("others", [0, 4])
def test_opmark_orders_units_that_have_no_choice_of_devices(others: int) -> None:
    # `last` leads by upward rank; `first` should, as its output takes 20 more on the way to the host: 20 + 20, not 60
    cluster = pair(duration_ns=0)
    host, other = cluster.devices
    cluster = replace(cluster, devices=(replace(other, type="y"), host), host=host.name)
    fixed = [Unit(name="last", exec_ns={"y": 20.0}), Unit(name="first", exec_ns={"y": 20.0})]
    movable = [Unit(name=f"u{number}", exec_ns={"x": 0.0, "y": 0.0}) for number in range(others)]
    output = Tensor(name="output", size_bytes=0, producer="first", output=True, boundary_ns={"x": 20.0})
    problem = Problem(name="outputs", cluster=cluster, units=(*fixed, *movable), tensors=(output,))
    assert attempt(problem, "opmark", budget_s=10).evaluation.cost == 40


@pytest.mark.parametrize("name", ["flexflow-mcmc", "opmark"])
def test_queueing_links_change_nothing_about_the_optimum_of_peft(name: str) -> None:
    assert attempt(peft_canonical(), name, budget_s=30).evaluation.cost == 113


@pytest.mark.parametrize("name", ["genetic", "simulated-annealing"])
def test_searching_beats_the_list_schedules(name: str) -> None:
    cost = {one: attempt(heft_canonical(), one, budget_s=30).evaluation.cost for one in ("heft", "cpop", name)}
    assert cost[name] < min(cost["heft"], cost["cpop"])


@pytest.mark.parametrize("name", SEARCHING)
def test_a_search_answers_even_when_there_is_no_time(name: str) -> None:
    assert attempt(branchy(blocks=20), name, budget_s=0).evaluation.cost > 0


def test_opmark_is_never_worse_than_what_it_starts_from() -> None:
    # steps end the search, not the clock: however busy the machine is, all starts are made
    for problem in (branchy(blocks=8), replace(branchy(blocks=5), objective="throughput", unit="ns")):
        ours = PLACER.place_from(problem, (), budget_s=600, seed=0, steps=5_000)
        cost = evaluate(problem, ours).cost
        for name in ("best-single-device", "heft", "cpop", "peft", "etf", "sct", "m-topo"):
            assert cost <= attempt(problem, name, budget_s=600).evaluation.cost, name


def test_opmark_finds_its_way_out_of_too_little_memory() -> None:
    # six weights of 100 on devices that hold three each: whatever fits puts three on each
    problem = chain(6, replace(pair(7), devices=(device("d0", memory_bytes=300), device("d1", memory_bytes=300))))
    units = tuple(replace(unit, weights=(f"w{n}",)) for n, unit in enumerate(problem.units))
    tight = replace(problem, units=units, weights={f"w{n}": 100 for n in range(6)})
    assert attempt(tight, "opmark", budget_s=10).evaluation.cost == 67
    impossible = replace(tight, weights={f"w{n}": 101 for n in range(6)})
    with pytest.raises(SubmissionError, match="fits"):
        attempt(impossible, "opmark", budget_s=0.2)


def test_a_search_that_meets_a_bound_stops() -> None:
    begun = time.monotonic()
    found = attempt(chain(400, pair()), "opmark", budget_s=500).evaluation.cost
    assert found == 4000 == cheap_lower_bound(chain(400, pair()))
    assert time.monotonic() - begun < 400, "it would search on without the bound"


def test_the_cheap_bound_is_one_of_all() -> None:
    for problem in (heft_canonical(), branchy()):
        assert cheap_lower_bound(problem) <= max(bounds(problem).values())


@pytest.mark.parametrize("name", [*SEARCHING, "local-search"])
def test_what_a_search_has_is_handed_over_before_it_ends(name: str) -> None:
    PLACERS.load(name).prepare()
    offered = []
    with listening(offered.append):
        found = attempt(branchy(), name, budget_s=2)
    costs = [evaluate(branchy(), solution).cost for solution in offered]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] >= found.evaluation.cost
    assert costs[0] <= best_single_device(branchy())[1]


def test_the_incumbent_keeps_and_offers_the_best() -> None:
    problem = chain(3, pair())
    offered = []
    with listening(offered.append):
        incumbent = Incumbent(problem, "mine", 0)
        with pytest.raises(PlacementError, match="nothing that was tried fits"):
            incumbent.solution()
        assert incumbent.consider(Placement(device=np.array([0, 1, 0])))
        assert not incumbent.consider(Placement(device=np.array([1, 0, 1])))
        assert incumbent.consider(Placement(device=np.array([0, 0, 0])))
    assert incumbent.value == 30
    assert [set(solution.device.values()) for solution in offered] == [{"d0", "d1"}, {"d0"}]
    assert incumbent.solution().placer == "mine"


def test_idle_devices_become_replicas_where_they_help() -> None:
    problem = replace(chain(2, star(20, devices=3)), objective="throughput", replication=True)
    incumbent = Incumbent(problem, "mine", 10)
    replicated(problem, incumbent)
    assert incumbent.value is not None
    assert float(incumbent.value) == pytest.approx(20 / 3)
    assert attempt(problem, "opmark", budget_s=5).evaluation.schedule.value == incumbent.value


def test_replicas_get_their_time_though_a_search_could_use_all() -> None:
    problem = replace(branchy(blocks=40), objective="throughput", replication=True)
    incumbent = Incumbent(problem, "mine", 10)
    replicated(problem, incumbent)
    assert incumbent.value is not None
    assert attempt(problem, "opmark", budget_s=1).evaluation.schedule.value <= incumbent.value


def test_every_searching_placer_is_registered() -> None:
    assert set(SEARCHING) <= set(PLACERS.names())


def test_throughput_is_balanced() -> None:
    # four chains of ten units on three devices with free links: a third of the work each
    units = tuple(Unit(name=f"u{n}", exec_ns={"x": 10}) for n in range(12))
    tensors = tuple(Tensor(name=f"t{n}", size_bytes=0, producer=f"u{n}", consumers=(f"u{n + 1}",)) for n in range(11))
    problem = Problem(name="p", cluster=star(0, devices=3), units=units, tensors=tensors, objective="throughput")
    assert attempt(problem, "opmark", budget_s=5).evaluation.cost == 40


@pytest.mark.skipif(
    not (EXTERNAL / "dnn-partitioning").is_dir() or not (EXTERNAL / "pipedream").is_dir(),
    reason="OPMARK_EXTERNAL_DATA has no dnn-partitioning and pipedream",
)
@pytest.mark.parametrize(
    ("form", "file", "optimum"),
    [
        ("dnn-partitioning", "throughput_layer_bert24_inference.json", 17.7899),
        ("dnn-partitioning", "throughput_layer_resnet50_inference.json", 33.7747),
        ("pipedream", "vgg16.txt", 0.175732624),
    ],
)
def test_opmark_reaches_published_optima(form: str, file: str, optimum: float, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = IMPORTERS.load(form).read(EXTERNAL / form / file, ImportOptions())
    # A published optimum is a proven bound: the search ends there instead of using its whole budget.
    steps = optimum * (1 + 1e-5) * UNITS[problem.unit]
    monkeypatch.setattr("opmark.leaderboards.placers.opmark.cheap_lower_bound", lambda _: steps)
    assert attempt(problem, "opmark", budget_s=30).evaluation.value(problem.unit) == pytest.approx(optimum, rel=1e-5)


def test_opmark_starts_a_step_of_micro_batches_from_the_programs_for_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmark.leaderboards.search.portfolio.LAST_PER_PAIR", 0)  # the starts alone
    problem = replace(training(), memory_mode="stash", micro_batches=4)
    tied = replace(problem, units=tuple(replace(unit, colocation=unit.weights[0]) for unit in problem.units))
    cost = attempt(tied, "opmark", budget_s=60).evaluation.cost
    for name in PROGRAMS:
        assert cost <= attempt(tied, name, budget_s=60).evaluation.cost
