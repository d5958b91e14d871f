"""A small pool: a diamond of units, three types of devices at unlike prices, and a storage that runs nothing."""

from dataclasses import replace

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import GoalLimits, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

MS = 1_000_000
HOUR_NS = 3_600_000_000_000
PRICES = {"fast": 3.0, "slow": 1.0, "odd": 1.5}
COUNTS = {"fast": 2, "slow": 3, "odd": 1}


def pool(
    objective: str = "latency",
    *,
    latency_ns: int = 0,
    period_ns: int = 0,
    price_per_hour: float = 0.0,
    memory_bytes: int = 2**30,
    transfer_ns: int = 1000,
) -> Problem:
    """`fast` takes half the time of `slow`; `odd` is as fast as `fast`, but cannot run unit b."""
    names = [(f"{kind}-{number}", kind) for kind, count in COUNTS.items() for number in range(count)]
    devices = [
        Device(name=name, type=kind, memory_bytes=memory_bytes, price_per_hour=PRICES[kind]) for name, kind in names
    ]
    devices.append(Device(name="storage", type="storage", memory_bytes=2**40))
    links = tuple(
        Link(source=a.name, destination=b.name, latency_ns=transfer_ns, bandwidth_bytes_per_s=1e12)
        for a in devices
        for b in devices
        if a is not b
    )
    times = {"a": 2, "b": 10, "c": 10, "d": 2}
    units = tuple(
        Unit(
            name=name,
            exec_ns={"slow": ms * MS, "fast": ms * MS // 2} | ({} if name == "b" else {"odd": ms * MS // 2}),
            weights=(f"w{name}",),
            kind=name,
        )
        for name, ms in times.items()
    )
    tensors = (
        Tensor(name="in", size_bytes=100, consumers=("a",)),
        Tensor(name="a.out", size_bytes=100, producer="a", consumers=("b", "c")),
        Tensor(name="b.out", size_bytes=100, producer="b", consumers=("d",)),
        Tensor(name="c.out", size_bytes=100, producer="c", consumers=("d",)),
        Tensor(name="out", size_bytes=100, producer="d", output=True),
    )
    return Problem(
        name="pool",
        cluster=Cluster(name="pool", devices=tuple(devices), links=links, host="storage"),
        units=units,
        tensors=tensors,
        weights={f"w{name}": 1000 for name in times},
        objective=objective,
        unit="$" if objective in {"cost", "rent"} else "ns",
        replication=objective in {"rent", "throughput"},
        limits=GoalLimits(latency_ns=latency_ns, period_ns=period_ns, price_per_hour=price_per_hour),
    )


def without_limits(problem: Problem) -> Problem:
    """The same pool with no goal."""
    return replace(problem, limits=GoalLimits())
