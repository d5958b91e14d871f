"""Sessions worked by hand: work, slots, and layouts at the border."""

from dataclasses import replace

import numpy as np
from tests.leaderboards.examples import device, graph, pair

from opmark.leaderboards.search.cuts.sessions import session_ns


def test_a_session_pays_for_layouts_at_its_border_only() -> None:
    problem = graph({"a": 10, "b": 5, "c": 7, "d": 1}, [("a", ["b"]), ("b", ["c"]), ("c", ["d"])], pair())
    tensors = tuple(
        replace(tensor, boundary_ns={"x": paid}) for tensor, paid in zip(problem.tensors, (100, 1000, 10), strict=True)
    )
    problem = replace(problem, tensors=tensors)
    assert session_ns(problem, np.array([1, 2]), 0) == 100 + 5 + 7 + 10
    assert session_ns(problem, np.array([0, 1, 2, 3]), 0) == 23
    out = replace(problem, tensors=(*tensors[:2], replace(tensors[2], consumers=(), output=True)))
    assert session_ns(out, np.array([0, 1, 2]), 0) == 22 + 10, "what leaves for the host leaves the session"


def test_branches_of_a_session_share_the_slots_of_a_device() -> None:
    edges = [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])]
    problem = graph({"a": 10, "b": 50, "c": 30, "d": 10}, edges, pair())
    wide = (device("d0"), device("d1", slots=2))
    problem = replace(problem, cluster=replace(problem.cluster, devices=wide))
    assert session_ns(problem, np.arange(4), 0) == 100
    assert session_ns(problem, np.arange(4), 1) == 70
