"""Facts and figures of a problem's graph."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.problem.fields import Arrivals, CostOrigin, ReferenceCosts
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.site.graph_summary import cost_facts, depth, graph_facts, kind_shares, machines_of


def chain() -> Problem:
    problem = graph({"a": 10, "b": 20, "c": 30, "d": 40}, [("a", ["b", "d"]), ("b", ["c"])], pair())
    units = tuple(replace(unit, kind="conv" if unit.name in "ab" else "gemm") for unit in problem.units)
    return replace(problem, units=units, weights={"w": 2048})


def test_the_longest_chain_is_counted_in_units() -> None:
    assert depth(chain()) == 3


def test_kinds_are_counted_and_the_costliest_comes_first() -> None:
    assert kind_shares(chain()) == (("gemm", 2, pytest.approx(0.7)), ("conv", 2, pytest.approx(0.3)))


def test_facts_name_sizes_phases_and_bounds() -> None:
    facts = dict(graph_facts(chain()))
    assert (facts["weights"], facts["tensors"], facts["memory"]) == ("2.00 KiB", "2, 0 B", "liveness")
    assert not any(name.startswith(("bound", "phases")) for name in facts)
    units = (*chain().units[:3], replace(chain().units[3], phase="backward"))
    bounds = {"critical_path": 60, "area": 50}
    known = replace(chain(), units=units, reference=ReferenceCosts(bound_ns=60, best_known_ns=70, bounds=bounds))
    facts = dict(graph_facts(known))
    assert facts["phases"] == "3 forward, 1 backward"
    assert facts["bound: critical path"] == "60.0 ns"
    step = dict(graph_facts(replace(known, micro_batches=3)))
    assert (step["objective"], step["micro-batches"]) == ("latency", "3")
    served = replace(chain(), objective="serving", arrivals=(Arrivals(arrival_ns=(0, 5), target_ns=9),))
    assert dict(graph_facts(served))["requests"] == "2"


def test_devices_name_the_predictor_of_their_target() -> None:
    problem = chain()
    devices = (replace(problem.cluster.devices[0], target="t", provenance="imported"), problem.cluster.devices[1])
    cluster = replace(problem.cluster, devices=devices)
    found = machines_of(replace(problem, cluster=cluster, provenance=CostOrigin(bundles={"t": "m/t 12"})))
    assert [(machine.provenance, machine.bundle) for machine in found] == [("imported", "m/t 12"), ("measured", "")]


def test_costs_of_published_tables_are_called_imported_whatever_the_problem_says() -> None:
    problem = chain()
    devices = (replace(problem.cluster.devices[0], target="t", provenance="imported"), problem.cluster.devices[1])
    cluster = replace(problem.cluster, devices=devices)
    bundles = {"t": "measured: m/t 12", "unused": "measured: u 1"}
    found = cost_facts(replace(problem, cluster=cluster, provenance=CostOrigin(bundles=bundles)))
    assert found == ((f"costs of {devices[0].type}", "imported: m/t 12"),)
