"""Bounds by constraint programming against every placement of small problems, and worked cases."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import graph, pair

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds import interval_bound as module
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.interval_bound import interval_bound
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import simulate, simulate_many

pytest.importorskip("ortools", reason="OR-tools is not installed (extra solvers)")


def on(problem, *devices):
    return Placement(device=np.array(devices, dtype=np.int64))


def test_two_branches_that_cross_once_are_proved_optimal():
    # c runs on the other device from 13 to 23, b here until 20; its result is there at 23, where d then ends at 33.
    chain = graph({"a": 10, "b": 10, "c": 10, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(3))
    known = on(chain, 0, 0, 1, 1)
    assert simulate(chain, known).cost_ns == 33
    assert interval_bound(chain, known, seconds=20) == 33
    assert bounds(chain, solver_s=20, known=known)["intervals"] == 33
    assert bounds(chain)["critical_path"] == 30
    # A poor answer to start from leads to the same proof.
    poor = on(chain, 0, 0, 1, 0)
    assert simulate(chain, poor).cost_ns == 36
    assert interval_bound(chain, poor, seconds=20) == 33


def test_the_busiest_server_of_a_pipeline_is_proved():
    # Halves of 20 ns each, and a link that a sample holds for 3 ns; a third unit of 10 ns cannot be cut.
    chain = graph({"a": 10, "b": 10, "c": 10}, [("a", ["b"]), ("b", ["c"])], pair(3))
    full = replace(chain, objective="throughput")
    assert interval_bound(full, on(full, 0, 0, 0), seconds=20) == 20
    slow = replace(full, cluster=pair(25))
    assert interval_bound(slow, on(slow, 0, 0, 0), seconds=20) == 25
    # Where nothing is freed, what two units make does not fit beside one another.
    long = graph({"a": 10, "b": 10, "c": 20}, [("a", ["b"]), ("b", ["c"])], pair(3))
    tensors = tuple(replace(tensor, size_bytes=600) for tensor in long.tensors)
    devices = tuple(replace(device, memory_bytes=1000) for device in long.cluster.devices)
    links = tuple(replace(link, bandwidth_bytes_per_s=1e15) for link in long.cluster.links)
    cluster = replace(long.cluster, devices=devices, links=links)
    tight = replace(long, tensors=tensors, memory_mode="sum", objective="throughput", cluster=cluster)
    assert interval_bound(tight, on(tight, 0, 1, 1), seconds=20) == 30
    assert interval_bound(tight, on(tight, 0, 0, 1), seconds=20) is None


def test_transfers_that_share_a_link_wait_for_one_another():
    # Four readers of four tensors: what crosses shares one link each way, 20 ns a tensor.
    wide = graph(
        {"a": 1, **dict.fromkeys("bcde", 50), "f": 1},
        [("a", ["b", "c", "d", "e"]), *((name, ["f"]) for name in "bcde")],
        pair(20),
    )
    table = np.array(list(product(range(2), repeat=len(wide.units))))
    best = int(simulate_many(wide, table).min())
    known = on(wide, *table[int(simulate_many(wide, table).argmin())])
    assert interval_bound(wide, known, seconds=20) <= best


@settings(max_examples=40, deadline=None)
@given(examples.rich(max_units=5), st.sampled_from(["latency", "throughput"]))
def test_no_placement_beats_the_bound_however_coarse_its_grid(problem, objective):
    problem = replace(problem, objective=objective)
    try:
        groups = groups_of(problem)
    except PlacementError:
        return
    devices = range(len(problem.cluster.devices))
    table = groups.spread(np.array(list(product(devices, repeat=groups.count))))
    costs = simulate_many(problem, table)
    best = int(costs.min())
    if best >= INVALID_COST:
        return
    worst = int(np.where(costs < INVALID_COST, costs, -1).argmax())
    for known in (int(costs.argmin()), worst):
        for steps in (60_000, 7):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "STEPS", steps)
                found = interval_bound(problem, Placement(device=np.ascontiguousarray(table[known])), seconds=5)
            assert found is None or found <= best


def test_other_objectives_replicas_and_answers_that_do_not_fit_prove_nothing():
    chain = graph({"a": 10, "b": 10}, [("a", ["b"])], pair(3))
    known = on(chain, 0, 0)
    assert interval_bound(replace(chain, objective="cost"), known, seconds=1) is None
    assert interval_bound(replace(chain, replication=True), known, seconds=1) is None
    assert interval_bound(chain, known, seconds=0) is None
    heavy = tuple(replace(unit, weights=(unit.name,)) for unit in chain.units)
    full = replace(chain, units=heavy, weights={"a": 2**30, "b": 2**30})
    assert interval_bound(full, known, seconds=1) is None
