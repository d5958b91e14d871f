"""The response-time bound of typed graphs: no work-conserving schedule of a given placement exceeds it.

Jaffe, "Bounds on the scheduling of typed task systems", SIAM J. Comput. 9(3), 1980; Han et al., "Response Time Bounds
for Typed DAG Parallel Tasks on Heterogeneous Multi-Cores", IEEE TPDS 30(11), 2019, equation (1): with M servers of each
type, Σ volume / M over all types, plus the longest path on which each vertex counts for 1 − 1/M of its time. Units are
vertices on their device's slots, hops of transfers are vertices on their port.
"""

from fractions import Fraction
from math import ceil

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.relaxation import is_latency
from opmark.leaderboards.problem.interference import slowest_factor
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.events import run_events


def response_time_ns(problem: Problem, placement: Placement) -> int | None:
    """An upper bound on one pass under opsim 1 without strict orders and replicas; None if a copy blocks a device.

    Raises `PlacementError` if the placement cannot run.
    """
    arrays = problem.arrays
    if arrays.device_blocking.any() or arrays.device_copying.any() or placement.replicas:
        return None
    free = Placement(device=placement.device, priority=placement.priority)
    schedule = run_events(problem, free, profile_named("contention_free"))
    slower = 1 + slowest_factor(problem)
    slots = arrays.device_slots.tolist()
    place = placement.device.tolist()
    run = [int(arrays.run_ns[unit, device]) * slower for unit, device in enumerate(place)]
    total = sum(Fraction(ns, slots[device]) for ns, device in zip(run, place, strict=True))
    hops = (schedule.hop_end_ns - schedule.hop_start_ns).tolist()
    # a hop is alone on its port, so it counts in the volume and adds nothing to a path
    by_port: dict[int, int] = {}
    for link, duration in zip(schedule.hop_link.tolist(), hops, strict=True):
        port = int(arrays.link_port[link])
        by_port[port] = by_port.get(port, 0) + duration
    return ceil(total + sum(by_port.values()) + _longest_path(problem, place, run, slots))


def guarantee_ns(problem: Problem) -> int | None:
    """A cost that list scheduling on the best single device never exceeds; None if no device holds the problem."""
    if not is_latency(problem) or problem.in_micro_batches or problem.objective != "latency" or problem.limits:
        return None
    try:
        device, _ = best_single_device(problem)
        return response_time_ns(problem, Placement(device=device))
    except PlacementError:
        return None


def known_guarantee_ns(problem: Problem) -> int | None:
    """The guarantee that the problem stores, or else `guarantee_ns`."""
    stored = problem.reference.guarantee_ns if problem.reference else None
    return guarantee_ns(problem) if stored is None else stored


def _longest_path(problem: Problem, place: list[int], run: list[int], slots: list[int]) -> Fraction:
    arrays = problem.arrays
    ends = [Fraction(0)] * arrays.units
    for unit in arrays.topological.tolist():
        before = arrays.tensor_producer[
            arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]]
        ].tolist()
        begun = max((ends[maker] for maker in before if maker >= 0), default=Fraction(0))
        ends[unit] = begun + run[unit] * (1 - Fraction(1, slots[place[unit]]))
    return max(ends)
