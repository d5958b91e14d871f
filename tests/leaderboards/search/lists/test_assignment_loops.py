"""The compiled steps of list scheduling on cases worked by hand."""

import numpy as np
from tests.leaderboards.compiled_module import CompiledModule

loops = CompiledModule("opmark.leaderboards.search.lists.assignment_loops")


def busy() -> "loops.SlotTimeline":
    """One slot, busy from 0 to 5 and from 10 to 20."""
    spans = (np.array([[0, 10, 0]]), np.array([[5, 20, 0]]), np.array([[0, 1, 0]]))
    return loops.SlotTimeline(np.array([0, 1]), np.array([2]), *spans)


def test_a_gap_must_be_long_enough() -> None:
    assert loops.earliest_gap(0, 0, 5, busy()) == (5, 0)
    assert loops.earliest_gap(0, 0, 6, busy()) == (20, 0)
    assert loops.earliest_gap(0, 7, 3, busy()) == (7, 0)


def test_a_slot_is_free_after_its_last_unit() -> None:
    assert loops.earliest_free(0, busy()) == (20, 0)


def test_spans_stay_sorted() -> None:
    timeline = busy()
    loops.occupy(2, 0, 5, 9, timeline)
    assert timeline.filled.tolist() == [3]
    assert timeline.unit.tolist() == [[0, 2, 1]]
    assert timeline.start.tolist() == [[0, 5, 10]]
    assert timeline.end.tolist() == [[5, 9, 20]]
