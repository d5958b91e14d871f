"""Blocks, ideals and the dynamic programs over them, against every contiguous split of small problems."""

import math
import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import graph, star
from tests.leaderboards.reference_loads import best_pipeline

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.cuts import ideal_programs
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import every_ideal, prefixes
from opmark.leaderboards.search.cuts.max_load_split import UNBOUNDED_NS, Splitter
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.simulator.simulate import simulate_many


def test_cycles_between_classes_become_one_block() -> None:
    problem = graph(dict.fromkeys("abcd", 1), [("a", ["b"]), ("b", ["c"]), ("c", ["d"])], star())
    tied = replace(problem, units=tuple(replace(u, colocation="k" if u.name in "ac" else "") for u in problem.units))
    blocks = blocks_of(tied)
    assert blocks.of_unit.tolist() == [0, 0, 0, 1]
    assert (blocks.before, blocks.after) == ((frozenset(), frozenset({0})), (frozenset({1}), frozenset()))
    assert blocks.run_ns.tolist() == [[3, 3, 3], [1, 1, 1]]


def test_a_backward_unit_goes_with_what_it_reads() -> None:
    problem = graph(dict.fromkeys("abxy", 1), [("a", ["b", "x"]), ("b", ["y"]), ("y", ["x"])], star())
    units = tuple(replace(unit, phase="backward" if unit.name in "xy" else "forward") for unit in problem.units)
    blocks = blocks_of(replace(problem, units=units))
    assert blocks.count == 2
    assert blocks.of_unit[3] == blocks.of_unit[1], "y reads from b"


def test_the_ideals_of_two_chains() -> None:
    problem = graph(dict.fromkeys("abxy", 1), [("a", ["b"]), ("x", ["y"])], star())
    blocks = blocks_of(problem)
    ideals = every_ideal(blocks, at_most=100, deadline=math.inf)
    assert ideals is not None
    assert ideals.number == 9
    assert ideals.bits[0].tolist() == [0]
    assert ideals.bits[-1].tolist() == [15]
    assert ideals.difference(8, 0) == [0, 1, 2, 3]
    assert every_ideal(blocks, at_most=8, deadline=math.inf) is None
    assert every_ideal(blocks, at_most=100, deadline=time.monotonic() - 1) is None
    for order in blocks.depth_first_orders:
        assert sorted(order) == [0, 1, 2, 3]
        assert prefixes(blocks, order).number == 5


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


def random_split(problem: Problem, memory_mode: str) -> Problem:
    return replace(problem, profile="maxload_serial", objective="throughput", contiguous=True, memory_mode=memory_mode)


@settings(max_examples=60, deadline=None)
@given(examples.problems(max_units=5))
def test_the_dynamic_program_finds_the_least_maximum_load(problem: Problem) -> None:
    problem = random_split(problem, "liveness")
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
    linear = attempt(problem, "dnn-partitioning-dp-linear", budget_s=30).evaluation.cost
    assert best <= found <= linear
    assert found == min(in_a_row)


def is_a_row(problem: Problem, row: np.ndarray) -> bool:
    """Whether the devices' shares can run one after the other."""
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


def test_time_and_bound_end_a_search() -> None:
    problem = random_split(graph(dict.fromkeys("abc", 10), [("a", ["b"]), ("b", ["c"])], star()), "sum")
    blocks = blocks_of(problem)
    splitter = Splitter(problem, blocks, weights_only=False)
    chain = prefixes(blocks, blocks.depth_first_orders[0])
    best = splitter.solve(chain, UNBOUNDED_NS)
    assert best is not None
    assert best.load_ns == 30, "a transfer of 20 costs more than it saves"
    assert splitter.solve(chain, 29) is None
    assert splitter.solve(chain, UNBOUNDED_NS, deadline=time.monotonic() - 1) is None
    assert splitter.states == 2 * 3, "the host pays nothing to reach itself, the others are alike"
    assert ideal_programs.NEVER == INVALID_COST


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 40)), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([1e9, 4e9, 2.5e8]),
)
def test_pipedream_finds_the_best_pipeline(layers: list[tuple[int, int]], machines: int, rate: float) -> None:
    names = [f"u{number}" for number in range(len(layers))]
    cluster = star(0, machines)
    cluster = replace(cluster, links=tuple(replace(link, bandwidth_bytes_per_s=rate) for link in cluster.links))
    times = dict(zip(names, (ns for ns, _ in layers), strict=True))
    problem = graph(times, [(a, [b]) for a, b in pairwise(names)], cluster)
    units = tuple(replace(unit, weights=(f"w{unit.name}",)) for unit in problem.units)
    weights = {f"w{name}": size for name, (_, size) in zip(names, layers, strict=True)}
    problem = replace(problem, units=units, weights=weights, replication=True, profile="pipedream_stage")
    found = attempt(problem, "pipedream", budget_s=30).evaluation.schedule.value
    expected = best_pipeline([ns for ns, _ in layers], [size for _, size in layers], machines, Fraction(rate))
    assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_a_split_that_fits_nowhere_is_refused() -> None:
    problem = graph(dict.fromkeys("ab", 1), [("a", ["b"])], star())
    units = tuple(replace(unit, workspace_bytes=2 * examples.GIB) for unit in problem.units)
    for name in ("dnn-partitioning-dp", "dnn-partitioning-dp-linear", "pipedream"):
        with pytest.raises(PlacementError, match="fits into memory"):
            PLACERS.load(name).place(replace(problem, units=units), budget_s=5, seed=0)
