"""The dynamic programs against every contiguous split of small problems."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import graph, star

from opmark.core.errors import PlacementError, SubmissionError
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import every_ideal
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.simulator.simulate import simulate_many


@settings(max_examples=60, deadline=None)
@given(examples.problems(max_units=5))
def test_the_dynamic_program_finds_the_least_maximum_load(problem: Problem) -> None:
    problem = replace(
        problem, profile="maxload_serial", objective="throughput", contiguous=True, memory_mode="liveness"
    )
    try:
        groups_of(problem)
    except PlacementError:
        return
    devices = range(len(problem.cluster.devices))
    table = np.array(list(product(devices, repeat=len(problem.units))))
    costs = simulate_many(problem, table)
    best = int(costs.min())
    # shares that each are contiguous may still need one another; ideals split only into a row
    in_a_row = [
        cost for cost, row in zip(costs.tolist(), table, strict=True) if cost < INVALID_COST and is_a_row(problem, row)
    ]
    if not in_a_row:
        return
    found = attempt(problem, "dnn-partitioning-dp", budget_s=30).evaluation.cost
    assert best <= found == min(in_a_row)
    try:
        linear = attempt(problem, "dnn-partitioning-dp-linear", budget_s=30).evaluation.cost
    except SubmissionError:
        return  # neither order has a split, as below
    assert found <= linear


def test_an_order_that_parts_the_units_of_a_device_has_no_split() -> None:
    """Of three units without tensors, only the second runs on the first device, and only the others on the second."""
    first, second = star(devices=2).devices
    cluster = replace(star(devices=2), devices=(replace(first, type="x"), replace(second, type="y")))
    problem = graph(dict.fromkeys("abc", 1), [], cluster)
    units = tuple(replace(unit, exec_ns={kind: 1}) for unit, kind in zip(problem.units, ("y", "x", "y"), strict=True))
    problem = replace(problem, units=units, profile="maxload_serial", objective="throughput", contiguous=True)
    assert attempt(problem, "dnn-partitioning-dp", budget_s=30).evaluation.cost == 2
    with pytest.raises(SubmissionError, match="no contiguous split along the order"):
        attempt(problem, "dnn-partitioning-dp-linear", budget_s=30)


def is_a_row(problem: Problem, row: np.ndarray) -> bool:
    """True if the devices' shares can run one after the other."""
    arrays = problem.arrays
    needs = {device: set() for device in row.tolist()}
    for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
        for reader in arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]]:
            if maker >= 0 and row[maker] != row[reader]:
                needs[int(row[reader])].add(int(row[maker]))
    while needs:
        free = [device for device, before in needs.items() if not before & needs.keys()]
        if not free:
            return False
        for device in free:
            del needs[device]
    return True


def test_a_split_that_fits_nowhere_is_refused() -> None:
    problem = graph(dict.fromkeys("ab", 1), [("a", ["b"])], star())
    units = tuple(replace(unit, workspace_bytes=2 * examples.GIB) for unit in problem.units)
    for name in ("dnn-partitioning-dp", "dnn-partitioning-dp-linear", "pipedream"):
        with pytest.raises(PlacementError, match="fits into memory"):
            PLACERS.load(name).place(replace(problem, units=units), budget_s=5, seed=0)


def test_many_blocks_need_several_words() -> None:
    names = [f"u{number}" for number in range(130)]
    problem = graph(dict.fromkeys(names, 1), [(a, [b]) for a, b in pairwise(names)], star())
    problem = replace(problem, profile="maxload_serial", objective="throughput", contiguous=True)
    for placer in ("dnn-partitioning-dp", "dnn-partitioning-dp-linear", "pipedream"):
        assert attempt(problem, placer, budget_s=30).evaluation.cost == pytest.approx(44 + 40, abs=40)
    ideals = every_ideal(blocks_of(problem), at_most=200, deadline=math.inf)
    assert ideals is not None
    assert ideals.bits.shape == (131, 3)
    assert ideals.difference(130, 60) == list(range(60, 130))
