"""Bounds on throughput: exact where every placement with replicas says so, and decided again."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.bounds.stages.test_stage_loads import placed
from tests.leaderboards.bounds.test_memory_rows import with_memory
from tests.leaderboards.examples import graph, pair, pipeline

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.certificate import STAGES, certificate_of, holds
from opmark.leaderboards.bounds.stages import stages_bound as module
from opmark.leaderboards.bounds.stages.stages_bound import applies, is_unreachable, stages_bound
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import fits, simulate


def least_cost(problem: Problem) -> int | None:
    """The least cost of all placements, with all replicas if they are allowed."""
    groups, found = groups_of(problem), []
    devices = tuple(range(len(problem.cluster.devices)))
    ways = module._partitions(devices) if problem.replication else [[(one,) for one in devices]]
    for stages in ways:
        able = [[label for label, one in enumerate(stages) if row[list(one)].all()] for row in groups.allowed]
        for labels in product(*able):
            try:
                schedule = simulate(problem, placed(problem, stages, list(labels)))
            except PlacementError:
                continue
            if fits(problem, schedule):
                found.append(schedule.cost_ns)
    return min(found, default=None)


@settings(max_examples=12, deadline=None)
@given(examples.rich(max_units=3), st.booleans(), st.sampled_from([10**6, 40]))
def test_no_placement_beats_the_bound(problem: Problem, replication: bool, memory_bytes: int) -> None:
    assume(len(problem.cluster.devices) <= (2 if replication else 3))
    problem = replace(with_memory(problem, memory_bytes), objective="throughput", replication=replication)
    try:
        best = least_cost(problem)
    except PlacementError:
        return
    if best is None:
        return
    found = stages_bound(problem, best + 10, seconds=30)
    assert found is not None
    assert found <= best
    assert is_unreachable(problem, best + 1, seconds=30) is None


def test_replicas_and_cuts_by_hand() -> None:
    chain = pipeline((10, 10, 10), 2, link_ns=3)
    assert stages_bound(chain, 30, seconds=10) == 20
    both = replace(chain, replication=True)
    assert least_cost(both) == 15, "both devices run everything, each every other sample"
    assert stages_bound(both, 20, seconds=10) == 15
    certificate = certificate_of(both, 15, 15, 10.0, bound=STAGES)
    assert holds(both, certificate, seconds=10) is True
    assert holds(both, replace(certificate, bound_ns=16, answer_ns=20), seconds=10) is None


def test_other_objectives_and_no_time_prove_nothing() -> None:
    chain = graph({"a": 10, "b": 10}, [("a", ["b"])], pair(3))
    assert not applies(chain)
    assert stages_bound(chain, 20, seconds=1) is None
    full = replace(chain, objective="throughput")
    assert applies(full)
    assert stages_bound(full, 20, seconds=0) is None
    assert not applies(replace(full, profile="maxload_serial"))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_partition_stands_once(count: int) -> None:
    found = [frozenset(map(frozenset, one)) for one in module._partitions(tuple(range(count)))]
    assert len(found) == len(set(found)) == [1, 2, 5, 15][count - 1]
    assert all(np.sort(np.concatenate([list(one) for one in way])).tolist() == list(range(count)) for way in found)
