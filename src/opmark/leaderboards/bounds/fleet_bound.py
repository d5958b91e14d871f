"""A bound for a pool: every fleet is either ruled out by its work and its paths, or a constraint program decides it.

A fleet's program is that of its placement problem (`interval_bound`): is there any schedule that would make the fleet
better than a known answer? Where no fleet has one, the answer is optimal. Fleets of equal counts stand for each other,
so this needs types whose devices are interchangeable. Where the value of a placement is its time, a fleet within the
budget also stands for all parts of it.
"""

import math
import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from opmark.core.hardware.cluster import Link
from opmark.leaderboards.bounds.interval_bound import grid_of, interval_bound, is_impossible
from opmark.leaderboards.bounds.relaxation import EVENT_PROFILES, profile_of
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import UNITS
from opmark.leaderboards.search.renting.device_pool import NS_PER_HOUR, DevicePool, Fleet
from opmark.leaderboards.search.renting.fleet_bounds import FleetBounds
from opmark.leaderboards.simulator.several_passes import passes_of
from opmark.leaderboards.simulator.simulate import fits, simulate

# Pools with more fleets are left to the relaxations.
FLEETS_AT_MOST = 2_000


def is_pool(problem: Problem) -> bool:
    """True where a solution chooses devices, so that the bounds of this module apply instead of `interval_bound`."""
    return bool(problem.limits)


def pool_bound(problem: Problem, known: Placement, *, seconds: float, seed: int = 0) -> int | None:
    """A proven lower bound in whole cost steps, at most the cost of the valid placement `known`.

    It is that cost where every fleet is decided in time, else the least bound of the fleets that stay open. None where
    the programs do not apply or decide nothing, and without OR-tools.
    """
    schedule = simulate(problem, known)
    if not applies(problem) or seconds <= 0 or not fits(problem, schedule):
        return None
    try:
        import ortools.sat.python.cp_model  # noqa: F401
    except ImportError:
        return None
    below, deadline = schedule.cost_ns, time.monotonic() + seconds
    open_fleets = _open_fleets(problem, below)
    left = []
    for place, fleet in enumerate(open_fleets):
        share_s = (deadline - time.monotonic()) / (len(open_fleets) - place)
        if _decided(problem, fleet, below, grid_ns=1, seconds=share_s, seed=seed) is not True:
            left.append(_least_cost(problem, fleet))
    return None if left and len(left) == len(open_fleets) else min([below, *left])


def beats_nothing(problem: Problem, below: int, *, grid_ns: int, seconds: float, seed: int = 1) -> bool | None:
    """True if no solution costs less than `below`, False if some fleet's program has one, None if time was short."""
    deadline, found = time.monotonic() + seconds, True
    open_fleets = _open_fleets(problem, below)
    for place, fleet in enumerate(open_fleets):
        share_s = (deadline - time.monotonic()) / (len(open_fleets) - place)
        verdict = _decided(problem, fleet, below, grid_ns=grid_ns, seconds=share_s, seed=seed)
        if verdict is False:
            return False
        found = found and verdict is True
    return found or None


def proved_bound(problem: Problem, known: Placement, *, seconds: float, least: int = 0) -> int | None:
    """The bound by constraint programming of any problem; None where none is proved. `least` is proved already."""
    if is_pool(problem):
        return pool_bound(problem, known, seconds=seconds)
    return interval_bound(problem, known, seconds=seconds, least=least)


def decided_again(problem: Problem, below: int, *, grid_ns: int, seconds: float) -> bool | None:
    """True if it is decided once more, with another seed, that nothing costs less than `below`."""
    decide = beats_nothing if is_pool(problem) else is_impossible
    return decide(problem, below, grid_ns=grid_ns, seconds=seconds)


def grid_for(problem: Problem, cost: int) -> int:
    """The grid, in ns, on which a bound near `cost` is proved; pools are small, and need none."""
    return 1 if is_pool(problem) else grid_of(problem, cost)


def applies(problem: Problem) -> bool:
    """True where fleets are counts of interchangeable devices, and a single pass without replicas decides."""
    single = problem.objective in {"latency", "cost"} and profile_of(problem) in EVENT_PROFILES
    if not (is_pool(problem) and single) or problem.replication or passes_of(problem) is not None:
        return False
    pool = DevicePool.of(problem)
    count = math.prod(number + 1 for number in pool.available)
    return count <= FLEETS_AT_MOST and interchangeable(pool)


def interchangeable(pool: DevicePool) -> bool:
    """True where exchanging any two devices of a type leaves memory, price and links as they are."""
    cluster = pool.problem.cluster
    if cluster.routes or any(tensor.home for tensor in pool.problem.tensors):
        return False
    links = {(link.source, link.destination): link for link in cluster.links}
    for row in pool.numbers:
        for one, other in pairwise(row):
            a, b = cluster.devices[one], cluster.devices[other]
            alike = (a.memory_bytes, a.price_per_hour) == (b.memory_bytes, b.price_per_hour)
            if not alike or pool.problem.host in {a.name, b.name} or not _same_links(links, a.name, b.name):
                return False
    return True


def _same_links(links: dict[tuple[str, str], Link], a: str, b: str) -> bool:
    """True where exchanging two devices gives links of equal times that share ports as before."""
    swapped = {a: b, b: a}
    ports: dict[str, str] = {}
    for (source, destination), link in links.items():
        twin = links.get((swapped.get(source, source), swapped.get(destination, destination)))
        if twin is None or _times(twin) != _times(link) or bool(twin.port) != bool(link.port):
            return False
        if link.port and ports.setdefault(link.port, twin.port) != twin.port:
            return False
    return len(set(ports.values())) == len(ports)


def _times(link: Link) -> tuple[object, ...]:
    return link.latency_ns, link.bandwidth_bytes_per_s, link.points


def _open_fleets(problem: Problem, below: int) -> list[Fleet]:
    """The fleets that their bounds do not rule out; for times only those that are no part of another one."""
    pool = DevicePool.of(problem)
    least = FleetBounds(pool)
    found = [fleet for fleet in pool.fleets() if least.least_ns(fleet) < _time_below(problem, pool, fleet, below)]
    if problem.objective == "cost":
        return found
    return list(_maximal(found))


def _maximal(fleets: Sequence[Fleet]) -> Iterable[Fleet]:
    for fleet in fleets:
        larger = (one for one in fleets if one != fleet)
        if not any(all(a <= b for a, b in zip(fleet, one, strict=True)) for one in larger):
            yield fleet


def _time_below(problem: Problem, pool: DevicePool, fleet: Fleet, below: int) -> int:
    """The ns that a pass on this fleet must stay under, or its solution is not valid or costs `below` or more."""
    price, limits = pool.price_per_hour(fleet), problem.limits
    if limits.price_per_hour and price > limits.price_per_hour * (1 + 1e-9):
        return 0
    most = below
    if problem.objective == "cost":
        exact = sum(Fraction(problem.cluster.devices[number].price_per_hour) for number in pool.rented(fleet))
        most = math.floor(Fraction(below - 1) * NS_PER_HOUR / (exact * UNITS["$"])) + 1 if exact else limits.latency_ns
    return min(most, limits.latency_ns + 1) if limits.latency_ns else most


def _decided(problem: Problem, fleet: Fleet, below: int, *, grid_ns: int, seconds: float, seed: int) -> bool | None:
    """True where no placement on a fleet is fast enough to cost less than `below`."""
    if seconds <= 0:
        return None
    pool = DevicePool.of(problem)
    inner = pool.problem_of(fleet)
    return is_impossible(inner, _time_below(problem, pool, fleet, below), grid_ns=grid_ns, seconds=seconds, seed=seed)


def _least_cost(problem: Problem, fleet: Fleet) -> int:
    """The bound of an open fleet, in whole cost steps."""
    pool = DevicePool.of(problem)
    time_ns = FleetBounds(pool).least_ns(fleet)
    if problem.objective == "cost":
        return math.floor(pool.price_per_hour(fleet) * time_ns / NS_PER_HOUR * UNITS["$"] * (1 - 1e-9))
    return math.floor(time_ns)
