"""A placement problem: units, the tensors between them, a cluster, and all costs."""

from dataclasses import dataclass
from functools import cache, cached_property

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.arrays import ProblemArrays, compile_problem
from opmark.leaderboards.problem.fields import ProblemFields, Tensor, Unit


@dataclass(frozen=True, kw_only=True)
class Problem(ProblemFields):
    """An instance that carries its own costs, so that it can be scored anywhere and for ever.

    Times in the file may be fractions of a ns; they are rounded half-even, once, when the problem is compiled. Costs
    are shown in `unit`: ns, us, ms or s, or $ for the objectives cost and rent.

    `profile` names the rules of a cost: opsim 1 or a published model. `contiguous` forbids a path that leaves a device
    and returns to it; `replication` lets a solution repeat a device's units on others, which `synchronisation` then
    keeps equal. A weight that an update unit names occupies 1 + `optimizer_state` times its bytes. A training step has
    `micro_batches`, each one pass of its forward and backward units in a pipeline schedule; for throughput they limit
    how many are in flight (0: as many as the pipeline is deep). `interference` slows units that share a device's slots:
    device type, kind, kind beside it -> factor of at least 1 ("*" stands for any kind; several neighbours add what
    exceeds 1). `arrivals` are the requests of the serving objective. `limits` make a problem a pool: its devices can be
    had, a solution is charged for those that it uses, and it is valid only within the limits.
    """

    @cached_property
    def arrays(self) -> ProblemArrays:
        """The problem as int64 arrays. Raises `ContentError` if its units, tensors or cluster are wrong."""
        return compile_problem(self)


@cache
def smallest_problem() -> Problem:
    """Two units in a row and two devices that can run both; solving it compiles every numba function."""
    devices = tuple(Device(name=name, type="x", memory_bytes=1) for name in "ab")
    links = tuple(Link(source=a, destination=b, latency_ns=1, bandwidth_bytes_per_s=1e9) for a, b in ("ab", "ba"))
    units = tuple(Unit(name=name, exec_ns={"x": 1}) for name in "ab")
    tensors = (Tensor(name="t", size_bytes=0, producer="a", consumers=("b",)),)
    cluster = Cluster(name="two", devices=devices, links=links)
    return Problem(name="smallest", cluster=cluster, units=units, tensors=tensors)
