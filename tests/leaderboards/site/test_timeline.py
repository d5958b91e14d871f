"""A simulated schedule as a timeline: the example worked by hand in the rules."""

import pytest

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.site.timeline import operator, timeline_of
from opmark.pages.gantt import TRANSFER


def problem() -> Problem:
    """op0 (10 ns) feeds op1 and op2 (1 ns each) over a link that takes 20 ns: the tensor travels once, 32 ns in all."""
    cpus = tuple(Device(name=name, type="cpu", memory_bytes=10**9) for name in "ab")
    links = tuple(
        Link(source=a, destination=b, latency_ns=20, bandwidth_bytes_per_s=1e9) for a, b in (("a", "b"), ("b", "a"))
    )
    return Problem(
        name="dedup",
        cluster=Cluster(name="pair", devices=cpus, links=links),
        units=tuple(Unit(name=f"/net/op_{i}", exec_ns={"cpu": 10 if i == 0 else 1}) for i in range(3)),
        tensors=(Tensor(name="x", size_bytes=0, producer="/net/op_0", consumers=("/net/op_1", "/net/op_2")),),
    )


def test_bars_are_the_schedule() -> None:
    solution = Solution(device={"/net/op_0": "a", "/net/op_1": "b", "/net/op_2": "b"})
    timeline = timeline_of(problem(), evaluate(problem(), solution))
    assert timeline.lanes == ("a", "b", "a → b")
    shown = {(bar.lane, bar.label, bar.start_ns, bar.end_ns, bar.kind) for bar in timeline.bars}
    assert shown == {
        ("a", "/net/op_0", 0, 10, "op"),
        ("a → b", "x", 10, 30, TRANSFER),
        ("b", "/net/op_1", 30, 31, "op"),
        ("b", "/net/op_2", 31, 32, "op"),
    }


def test_one_device_has_no_links() -> None:
    solution = Solution(device=dict.fromkeys(("/net/op_0", "/net/op_1", "/net/op_2"), "a"))
    timeline = timeline_of(problem(), evaluate(problem(), solution))
    assert timeline.lanes == ("a", "b")
    assert max(bar.end_ns for bar in timeline.bars) == 12


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("/mixed/branch1/Conv_12", "Conv"),
        ("layers.3.attention.softmax", "softmax"),
        ("layers.3", "layers"),
        ("node_7", "node"),
        ("17", "17"),
        ("", ""),
    ],
)
def test_operators_are_told_from_names(name: str, what: str) -> None:
    assert operator(name) == what
