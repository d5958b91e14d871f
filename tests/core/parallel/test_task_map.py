"""Tasks on this machine: their results in order, their progress, and their failures."""

import threading
from contextlib import closing

import pytest
from tests.core.parallel.cluster_tasks import product, refuse

from opmark.core.errors import ContentError
from opmark.core.parallel.task_map import InThreads, InTurn, MapProgress, TaskMap

PLACES = [InTurn(), InThreads(1), InThreads(3)]


@pytest.mark.parametrize("place", PLACES, ids=["in-turn", "one-thread", "three-threads"])
def test_results_come_in_the_order_of_the_tasks(place: TaskMap) -> None:
    steps: list[MapProgress] = []
    assert place.in_order(product, range(7), shared=10, progress=steps.append) == [0, 10, 20, 30, 40, 50, 60]
    assert [(step.done, step.total) for step in steps] == [(done, 7) for done in range(8)]
    assert steps[0].left_s is None
    assert steps[-1].left_s == 0
    assert all(step.left_s is not None and step.left_s > 0 for step in steps[1:-1])
    assert place.in_order(product, (), shared=1) == []


@pytest.mark.parametrize("place", PLACES, ids=["in-turn", "one-thread", "three-threads"])
def test_the_first_failure_ends_the_run(place: TaskMap) -> None:
    with pytest.raises(ContentError, match="this one is wrong"):
        place.in_order(refuse, range(5), shared=None)


def test_closing_drops_the_tasks_that_have_not_begun() -> None:
    begun, go_on = [], threading.Event()

    def wait(_shared: None, task: int) -> int:
        begun.append(task)
        if task:
            go_on.wait(10)
        return task

    with closing(InThreads(1).run(wait, range(50), shared=None)) as results:
        assert next(results) == (0, 0)
    go_on.set()
    assert len(begun) <= 2


def test_slots_are_the_tasks_at_the_same_time() -> None:
    assert (InTurn().slots, InThreads(4).slots) == (1, 4)
