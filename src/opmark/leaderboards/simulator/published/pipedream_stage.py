"""The stage model of PipeDream: on m replicas a stage costs (compute + 4(m − 1)/m · weights / bandwidth) / m.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.1, as its
released optimiser computes it: activations between stages are hidden behind compute.
"""

from fractions import Fraction

import numpy as np

from opmark.core.errors import PlacementError
from opmark.core.units import NS_PER_S
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST, Schedule
from opmark.leaderboards.simulator.direct_models import check_supported, serial_schedule, summed_bytes, unsupported


class PipeDreamStages:
    """ns per sample of the slowest stage; a stage's slowest replica counts."""

    def schedule(self, problem: Problem, placement: Placement) -> Schedule:
        """Every stage's units in turn. Raises `PlacementError` where replicas have no route to one another."""
        check_supported(problem, placement.device)
        arrays = problem.arrays
        cost = Fraction(0)
        for primary in sorted(set(placement.device.tolist())):
            units = np.flatnonzero(placement.device == primary)
            members = [primary, *placement.replicas.get(primary, ())]
            compute = max(int(arrays.run_ns[units, member].sum()) for member in members)
            held = {name for unit in units.tolist() for name in problem.units[unit].weights}
            size = sum(problem.weights[name] for name in held)
            cost = max(cost, stage_ns(compute, size, len(members), slowest_bandwidth(problem, members)))
        schedule = serial_schedule(problem, placement.device, [0] * arrays.devices, cost)
        for primary, row in placement.replicas.items():
            schedule.peak_bytes[list(row)] += schedule.peak_bytes[primary]
        return schedule

    def costs(self, problem: Problem, devices: Integers) -> tuple[Integers, Integers]:
        """Without replicas: the largest sum of times per row."""
        arrays = problem.arrays
        units = np.arange(arrays.units)
        costs = np.empty(len(devices), dtype=np.int64)
        for index, row in enumerate(devices):
            costs[index] = np.bincount(row, weights=arrays.run_ns[units, row], minlength=arrays.devices).max()
        costs[unsupported(problem, devices)] = INVALID_COST
        return costs, summed_bytes(problem, devices)


def stage_ns(compute_ns: int, weight_bytes: int, replicas: int, bytes_per_s: Fraction) -> Fraction:
    """ns per sample of one stage, exactly."""
    if replicas == 1:
        return Fraction(compute_ns)
    synchronise = Fraction(4 * (replicas - 1) * weight_bytes * NS_PER_S, replicas) / bytes_per_s
    return (compute_ns + synchronise) / replicas


def slowest_bandwidth(problem: Problem, members: list[int]) -> Fraction:
    """The least bandwidth on any route between two members. Raises `PlacementError` without a route."""
    arrays = problem.arrays
    least: Fraction | None = None
    for a in members:
        for b in members:
            number = a * arrays.devices + b
            route = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]].tolist()
            if a != b and not route:
                names = problem.cluster.devices[a].name, problem.cluster.devices[b].name
                raise PlacementError(f"replicas {names[0]!r} and {names[1]!r} have no route between them")
            for link in route:
                rate = Fraction(problem.cluster.links[link].bandwidth_bytes_per_s)
                least = rate if least is None else min(least, rate)
    return Fraction(1) if least is None else least


PROFILE = PublishedModel(
    name="pipedream_stage", summary="PipeDream's stage time with replicas and weight exchange", model=PipeDreamStages()
)
