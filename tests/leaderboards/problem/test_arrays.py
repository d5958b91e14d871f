"""Compiled arrays: positions, ranks, orders; and the heap under the event loop."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples, reference
from tests.leaderboards.compiled_module import CompiledModule

from opmark.leaderboards.problem import packing
from opmark.leaderboards.problem.integers import rows
from opmark.leaderboards.problem.problem import Problem

sweeps, tables = (
    CompiledModule("opmark.leaderboards.problem.sweeps"),
    CompiledModule("opmark.leaderboards.problem.tables"),
)
engine_queue = CompiledModule("opmark.leaderboards.simulator.queues")


def test_every_packed_array_has_its_position() -> None:
    arrays = examples.heft_canonical().arrays
    data, starts = arrays.packed
    for number, name in enumerate(packing.FIELDS):
        assert data[starts[number] : starts[number + 1]].tolist() == list(getattr(arrays, name))
    assert tables.sizes_of.py_func(data) == arrays.sizes
    views = tables.tables_of.py_func(data, starts)
    assert {name: view.tolist() for name, view in views._asdict().items()} == {
        name: getattr(arrays, name).tolist() for name in packing.FIELDS[1:]
    }


def test_rows_compress() -> None:
    offsets, values = rows([[3, 1], [], [2]])
    assert (offsets.tolist(), values.tolist()) == ([0, 2, 2, 3], [3, 1, 2])


@settings(max_examples=80, deadline=None)
@given(examples.problems())
def test_orders_respect_precedence_and_ranks_equal_the_reference(problem: Problem) -> None:
    arrays = problem.arrays
    order = sweeps.topological_order(*arrays.packed).tolist()
    assert sorted(order) == list(range(len(problem.units)))
    position = {problem.units[unit].name: place for place, unit in enumerate(order)}
    for tensor in problem.tensors:
        assert all(not tensor.producer or position[tensor.producer] < position[name] for name in tensor.consumers)
    ranks = reference.upward_ranks(problem)
    assert arrays.default_priority.tolist() == [ranks[unit.name] for unit in problem.units]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20))
def test_the_heap_gives_the_largest_key_first_then_the_lowest_item(keys: list[int]) -> None:
    heap, key = np.zeros(len(keys) + 2, dtype=np.int64), np.array(keys)
    for item in range(len(keys)):
        engine_queue.push(heap, 2, item, item, key)
    popped = [engine_queue.pop(heap, 2, size, key) for size in range(len(keys), 0, -1)]
    assert popped == sorted(range(len(keys)), key=lambda item: (-keys[item], item))
    assert heap[:2].tolist() == [0, 0]
