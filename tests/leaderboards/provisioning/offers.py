"""A small catalogue and a small job, made in memory."""

import datetime

from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.making.cluster_plan import LinkType
from opmark.leaderboards.making.device_table import DeviceTable
from opmark.leaderboards.making.rooflines import ANY, KindRoofline
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.catalogue import SAME_ZONE, Catalogue, Offer, Price
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.job import Job

MS = 1_000_000


def price(per_hour, currency="USD"):
    return Price(per_hour=per_hour, currency=currency, date=datetime.date(2026, 1, 1), source="a test")


def table(title, memory_bytes=2**30):
    roofline = KindRoofline(ns_per_flop=1.0, ns_per_byte=1.0, constant_ns=0.0, half_width=0.1)
    return DeviceTable(
        title=title,
        provenance="analytic",
        source="a test",
        runtime="torch-eager-t1",
        memory_bytes=memory_bytes,
        rooflines={ANY: roofline},
    )


def catalogue(prices, available=3, link_ns=1000, memory_bytes=2**30):
    """One device a host; every transfer takes `link_ns`."""
    link = LinkType(latency_ns=link_ns, bandwidth_bytes_per_s=1e15, source="a test")
    return Catalogue(
        name="small",
        title="A small catalogue",
        offers={name: Offer(device=name, price=price(value), available=available) for name, value in prices.items()},
        tables={name: table(name, memory_bytes) for name in prices},
        links={SAME_ZONE: link},
        same_host=dict.fromkeys(prices, link),
    )


def job(times_ns, edges, offers, *, interval=(0.9, 1.1)):
    """`times_ns`: unit -> type -> ns; `edges`: producer -> readers."""
    units = tuple(
        Unit(name=name, exec_ns=times, interval=dict.fromkeys(times, interval), kind=name)
        for name, times in times_ns.items()
    )
    tensors = tuple(
        Tensor(name=f"{name}.out", size_bytes=0, producer=name, consumers=tuple(readers)) for name, readers in edges
    )
    one_each: Cluster = offers.cluster(Fleet.of(dict.fromkeys(offers.types, 1)))
    whole = Problem(name="job", cluster=one_each, units=units, tensors=tensors)
    return Job(model="job", batch=1, whole=whole, catalogue=offers, left_out={})


def diamond(a=2, b=10, c=10, d=2):
    """Two branches that two devices can run side by side; `fast` takes half the time and costs three times as much."""
    times = {"a": a, "b": b, "c": c, "d": d}
    both = {name: {"fast": ms * MS // 2, "slow": ms * MS} for name, ms in times.items()}
    return job(both, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], catalogue({"fast": 3.0, "slow": 1.0}))


def short_branch():
    """One fast device takes 15 ms, two take 11; so does a slow one beside a fast one, which runs the short branch."""
    return diamond(a=1, b=20, c=8, d=1)
