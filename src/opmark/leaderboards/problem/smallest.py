"""The smallest problem that needs all compiled code: whoever solves it has everything compiled."""

from functools import cache

from opmark.core.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.problem import Problem, Tensor, Unit


@cache
def smallest_problem() -> Problem:
    """Two units, one after the other, and two devices that could run either."""
    devices = tuple(Device(name=name, type="x", memory_bytes=1) for name in "ab")
    links = tuple(Link(source=a, destination=b, latency_ns=1, bandwidth_bytes_per_s=1e9) for a, b in ("ab", "ba"))
    units = tuple(Unit(name=name, exec_ns={"x": 1}) for name in "ab")
    tensors = (Tensor(name="t", size_bytes=0, producer="a", consumers=("b",)),)
    cluster = Cluster(name="two", devices=devices, links=links)
    return Problem(name="smallest", cluster=cluster, units=units, tensors=tensors)
