"""The devices of a problem as a pool: how many of each type can be had, their prices, and the problem of any fleet.

A fleet is a row of counts, one per type. Devices of one type are taken in the order of the cluster, so that they fill a
host before the next one.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opmark.core.hardware.cluster import Cluster, Device
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem

Fleet = tuple[int, ...]
# A device of this type runs nothing: it only holds inputs and outputs.
NOT_RENTED = "not-rented"
# The objective whose value decides between placements on the same devices.
_INNER = {"cost": "latency", "rent": "throughput"}
NS_PER_HOUR = 3_600_000_000_000


@dataclass(frozen=True, kw_only=True)
class DevicePool:
    """A problem read as a pool; `numbers` has the devices of each type that can run any unit."""

    problem: Problem
    types: tuple[str, ...]
    numbers: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, problem: Problem) -> "DevicePool":
        """The pool of a problem's devices."""
        useful = {kind for unit in problem.units for kind in unit.exec_ns}
        numbers: dict[str, list[int]] = {}
        for number, device in enumerate(problem.cluster.devices):
            if device.type in useful:
                numbers.setdefault(device.type, []).append(number)
        return cls(problem=problem, types=tuple(numbers), numbers=tuple(map(tuple, numbers.values())))

    @property
    def available(self) -> Fleet:
        """The number of devices of each type that can be had."""
        return tuple(map(len, self.numbers))

    @property
    def inner_objective(self) -> str:
        """The objective of the placement on a given fleet: the shortest pass or the shortest period."""
        if self.problem.fronted:
            return "throughput" if self.problem.limits.period_ns else "latency"
        return _INNER.get(self.problem.objective, self.problem.objective)

    @cached_property
    def prices(self) -> npt.NDArray[np.float64]:
        """The price per hour of one device of each type."""
        devices = self.problem.cluster.devices
        return np.array([devices[row[0]].price_per_hour for row in self.numbers])

    @property
    def priced(self) -> bool:
        """True where any device costs money."""
        return bool(self.prices.any())

    @cached_property
    def unit_ns(self) -> npt.NDArray[np.float64]:
        """Units × types: the time of each unit, infinite where a type cannot run it."""
        rows = [[unit.exec_ns.get(kind, np.inf) for kind in self.types] for unit in self.problem.units]
        return np.array(rows, dtype=np.float64)

    def price_per_hour(self, fleet: Sequence[int]) -> float:
        """The price of a fleet per hour."""
        return float(np.dot(self.prices, fleet))

    def work(self, fleet: Sequence[int]) -> float:
        """The summed time of all units, in ns, each on the fastest type of the fleet."""
        return float(self.unit_ns[:, [index for index, count in enumerate(fleet) if count]].min(axis=1).sum())

    def equal(self, fleet: Sequence[int]) -> bool:
        """True where all devices of a fleet are of one type."""
        return sum(count > 0 for count in fleet) == 1

    def fleets(self) -> Iterator[Fleet]:
        """Every fleet whose types can together run all units and hold all weights, smaller ones first."""
        rows = itertools.product(*(range(count + 1) for count in self.available))
        yield from sorted((row for row in rows if self.can_run(row)), key=lambda row: (sum(row), row))

    def can_run(self, fleet: Sequence[int]) -> bool:
        """True where every unit has a type that runs it, and the weights fit into all memory together."""
        types = [index for index, count in enumerate(fleet) if count]
        if not types or not np.isfinite(self.unit_ns[:, types].min(axis=1)).all():
            return False
        devices = self.problem.cluster.devices
        return sum(devices[number].memory_bytes for number in self.rented(fleet)) >= self._weight_bytes

    def singles(self) -> list[Fleet]:
        """The fleets of one device that can run everything."""
        rows = [tuple(int(index == one) for index in range(len(self.types))) for one in range(len(self.types))]
        return [row for row in rows if self.can_run(row)]

    def problem_of(self, fleet: Sequence[int]) -> Problem:
        """The placement problem on a fleet's devices alone, without limits.

        Devices keep their names. One that is not rented stays only where tensors live on it or must pass it.
        """
        rented = set(self.rented(fleet))
        cluster = self.problem.cluster
        kept = [
            device if number in rented else replace(device, type=NOT_RENTED)
            for number, device in enumerate(cluster.devices)
            if number in rented or device.name in self._needed
        ]
        names = {device.name for device in kept}
        links = tuple(link for link in cluster.links if link.source in names and link.destination in names)
        return replace(
            self.problem,
            cluster=Cluster(
                name=cluster.name, devices=tuple(kept), links=links, host=self._host(kept), routes=cluster.routes
            ),
            objective=self.inner_objective,
            unit="ns",
            limits=GoalLimits(),
            reference=None,
        )

    def rented(self, fleet: Sequence[int]) -> list[int]:
        """The numbers of a fleet's devices."""
        return [number for row, count in zip(self.numbers, fleet, strict=True) for number in row[:count]]

    def placement_of(self, inner: Problem, placement: Placement) -> Placement:
        """A placement on a fleet's devices as one on the whole pool."""
        number = {device.name: index for index, device in enumerate(self.problem.cluster.devices)}
        whole = np.array([number[device.name] for device in inner.cluster.devices], dtype=np.int64)
        order = placement.order and {int(whole[key]): row for key, row in placement.order.items()}
        replicas = {int(whole[key]): [int(whole[one]) for one in row] for key, row in placement.replicas.items()}
        return replace(placement, device=whole[placement.device], order=order or None, replicas=replicas)

    def placement_on(self, inner: Problem, placement: Placement) -> Placement:
        """A placement on the whole pool as one on a fleet that has all of its devices."""
        number = {device.name: index for index, device in enumerate(inner.cluster.devices)}
        there = [number.get(device.name, -1) for device in self.problem.cluster.devices]
        order = placement.order and {there[key]: row for key, row in placement.order.items()}
        replicas = {there[key]: [there[one] for one in row] for key, row in placement.replicas.items()}
        device = np.array(there, dtype=np.int64)[placement.device]
        return replace(placement, device=device, order=order or None, replicas=replicas)

    def fleet_of(self, used: set[int]) -> Fleet:
        """The counts of the devices that a placement uses."""
        return tuple(sum(number in used for number in row) for row in self.numbers)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """Devices that stay though nobody rents them."""
        cluster, problem = self.problem.cluster, self.problem
        joined = {(link.source, link.destination) for link in cluster.links}
        meshed = all((a.name, b.name) in joined for a in cluster.devices for b in cluster.devices if a is not b)
        if cluster.routes or not meshed:
            return frozenset(device.name for device in cluster.devices)
        homes = {tensor.home for tensor in problem.tensors if tensor.home}
        if any(tensor.output or not (tensor.producer or tensor.home) for tensor in problem.tensors):
            homes.add(problem.host)
        return frozenset(homes)

    def _host(self, kept: Sequence[Device]) -> str:
        names = [device.name for device in kept]
        return self.problem.host if self.problem.host in names else names[0]

    @cached_property
    def _weight_bytes(self) -> int:
        return sum(self.problem.held_bytes.values())
