"""The cost of a placement over random draws of the predictors' errors."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import PublishedModel, profile_named
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.fronts import MoneyAndTime, mean_time_ns
from opmark.leaderboards.simulator.several_passes import passes_of
from opmark.leaderboards.simulator.simulate import simulate, simulate_many
from opmark.leaderboards.simulator.steady_state import TransferLoads, loads_beside, transfer_loads

DRAWS = 100
Factors = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """Costs in whole steps, one per draw. The median is scored; the 95th percentile is shown."""

    costs: tuple[int, ...]

    @property
    def median(self) -> int:
        """The lower median, which is one of the drawn costs."""
        return sorted(self.costs)[(len(self.costs) - 1) // 2]

    @property
    def p95(self) -> int:
        """The 95th percentile."""
        return sorted(self.costs)[-(-len(self.costs) * 95 // 100) - 1]


def has_intervals(problem: Problem) -> bool:
    """True where any unit's time has an error interval."""
    return any(unit.interval for unit in problem.units)


def robustness_of_all(
    problem: Problem, placements: Sequence[Placement], *, factors: Factors, profile: PublishedModel | None = None
) -> tuple[Robustness, ...]:
    """`robustness` of several placements over the same draws: each draw is compiled once, equal placements run once."""
    rules = profile_named(problem.profile) if profile is None else profile
    fixed = [
        replace(placement, priority=problem.arrays.default_priority) if placement.priority is None else placement
        for placement in placements
    ]
    # Samples that follow one another cost the load of the busiest server: the order of units does not matter.
    steady = problem.objective == "throughput" and rules.model is None and not problem.limits
    number: dict[Any, int] = {}
    number_of = [number.setdefault(_identity(one, steady=steady), len(number)) for one in fixed]
    distinct = [fixed[number_of.index(one)] for one in range(len(number))]
    run = _steady_costs if steady else _simulated_costs
    costs = [tuple(own) for own in run(problem, distinct, factors, rules).T.tolist()]
    return tuple(Robustness(costs=costs[one]) for one in number_of)


def _identity(placement: Placement, *, steady: bool) -> Any:
    """Equal for placements that cost the same; `steady` is True where only loads count."""
    replicas = tuple(sorted((device, tuple(others)) for device, others in placement.replicas.items()))
    if steady:
        return placement.device.tobytes(), replicas
    order = tuple(sorted((device, tuple(units)) for device, units in (placement.order or {}).items()))
    priority = np.asarray(placement.priority, dtype=np.int64)
    return placement.device.tobytes(), replicas, order, priority.tobytes(), placement.schedule


def _simulated_costs(
    problem: Problem, placements: Sequence[Placement], factors: Factors, rules: PublishedModel
) -> Integers:
    """The cost per draw and placement. Raises `PlacementError` as `simulate` does."""
    timed = _timed(problem, placements, rules)
    objective = OBJECTIVES.load(problem.objective)
    plain = [
        place
        for place, one in enumerate(placements)
        if place not in timed and not (one.order or one.replicas or one.schedule)
    ]
    devices = np.array([placements[place].device for place in plain], dtype=np.int64)
    priorities = np.array([placements[place].priority for place in plain], dtype=np.int64)
    costs = np.zeros((len(factors), len(placements)), dtype=np.int64)
    others = sorted(set(range(len(placements))).difference(plain, timed))
    # Replicas that share a pass run parts, whose times are not compiled.
    replicated = not problem.pipelined and any(placements[place].replicas for place in others)
    for draw, row in enumerate(factors):
        whole = _drawn(problem, row)
        if plain:
            costs[draw, plain] = simulate_many(whole, devices, priorities, profile=rules, enforce_memory=False)
        for place, latency_ns in timed.items():
            costs[draw, place] = math.ceil(objective.cost(whole, placements[place], latency_ns(whole), rules))
        anew = drawn_problem(problem, row) if replicated else whole
        for place in others:
            drawn = anew if placements[place].replicas else whole
            costs[draw, place] = simulate(drawn, placements[place], rules).cost_ns
    return costs


def _timed(
    problem: Problem, placements: Sequence[Placement], rules: PublishedModel
) -> dict[int, Callable[[Problem], int]]:
    """By number, the latencies of those placements whose simulation can be prepared once for all draws."""
    passes = None if rules.model is not None or problem.limits else passes_of(problem)
    if passes is None:
        return {}
    found = {place: passes.timed(problem, one, rules) for place, one in enumerate(placements)}
    return {place: latency_ns for place, latency_ns in found.items() if latency_ns is not None}


def _steady_costs(
    problem: Problem, placements: Sequence[Placement], factors: Factors, rules: PublishedModel
) -> Integers:
    """The load of the busiest server per draw and placement; transfers load a server alike in all draws.

    The simulation of one pass tells once which placements cannot run. Raises `PlacementError` as `simulate` does.
    """
    single = [place for place, one in enumerate(placements) if not one.replicas]
    shared = [place for place in range(len(placements)) if placements[place].replicas]
    transfers = [transfer_loads(problem, one, rules) for one in placements]
    devices = np.array([placements[place].device for place in single], dtype=np.int64).reshape(-1, problem.arrays.units)
    own = _SingleLoads.of(problem, devices, [transfers[place] for place in single], ports=rules.contention)
    costs = np.zeros((len(factors), len(placements)), dtype=np.int64)
    first = simulate_many(problem, devices, profile=rules, enforce_memory=False) if single else devices
    for draw, row in enumerate(factors):
        whole = _drawn(problem, row)
        if single:
            costs[draw, single] = np.where(first == INVALID_COST, INVALID_COST, own.busiest_ns(whole))
        for place in shared:
            loads = loads_beside(whole, placements[place], rules, transfers[place])
            costs[draw, place] = math.ceil(loads.bottleneck_ns)
    return costs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SingleLoads:
    """Loads of placements without replicas: what transfers take, and where in U×D each server finds its units."""

    transfers_ns: Integers
    ports_ns: Integers
    slots: Integers
    places: Integers
    starts: Integers
    servers: Integers

    @classmethod
    def of(
        cls, problem: Problem, devices: Integers, transfers: Sequence[TransferLoads], *, ports: bool
    ) -> "_SingleLoads":
        """From one row of devices and the transfers of each placement."""
        arrays = problem.arrays
        order = np.argsort(devices, axis=1, kind="stable")
        sorted_devices = np.take_along_axis(devices, order, axis=1)
        server = (np.arange(len(devices))[:, None] * arrays.devices + sorted_devices).ravel()
        servers, starts = np.unique(server, return_index=True)
        return cls(
            transfers_ns=np.array([one.device_ns for one in transfers], dtype=np.int64),
            ports_ns=np.array([max(one.port_ns, default=0) if ports else 0 for one in transfers], dtype=np.int64),
            slots=arrays.device_slots,
            places=(order * arrays.devices + sorted_devices).ravel(),
            starts=starts,
            servers=servers,
        )

    def busiest_ns(self, problem: Problem) -> Integers:
        """The busiest server's ns per sample and placement, rounded up, with the times that `problem` has."""
        loads = self.transfers_ns.copy()
        loads.reshape(-1)[self.servers] += np.add.reduceat(problem.arrays.run_ns.ravel()[self.places], self.starts)
        each: Integers = -(-loads // self.slots)
        busiest: Integers = np.maximum(each.max(axis=1), self.ports_ns)
        return busiest


def robustness(
    problem: Problem,
    placement: Placement,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    profile: PublishedModel | None = None,
) -> Robustness:
    """Simulate a placement over `draws` draws of all unit times, with the priorities of the undisturbed problem.

    The same seed gives the same draws. Raises `PlacementError` as `simulate` does.
    """
    factors = drawn_factors(problem, draws=draws, seed=seed)
    return robustness_of_all(problem, [placement], factors=factors, profile=profile)[0]


def front_robustness(
    problem: Problem, evaluation: Evaluation, *, factors: Factors, profile: PublishedModel | None = None
) -> Robustness:
    """The cost of a front over draws: see `robustness_of_fronts`."""
    return robustness_of_fronts(problem, [evaluation], factors=factors, profile=profile)[0]


def robustness_of_fronts(
    problem: Problem, evaluations: Sequence[Evaluation], *, factors: Factors, profile: PublishedModel | None = None
) -> tuple[Robustness, ...]:
    """The costs of fronts over the same draws.

    A placement that a draw takes beyond the reference time adds nothing there.
    """
    objective = "throughput" if problem.limits.period_ns else "latency"
    free = replace(problem, objective=objective, unit="ns", limits=GoalLimits())
    placements = [one.placement for evaluation in evaluations for one in evaluation.front]
    rows = iter(robustness_of_all(free, placements, factors=factors, profile=profile))
    found = []
    for evaluation in evaluations:
        prices = [one.point(problem).price_per_hour for one in evaluation.front]
        own = [next(rows).costs for _ in evaluation.front]
        costs = []
        for times_ns in zip(*own, strict=True):
            points = [
                MoneyAndTime(price_per_hour=price, time_ns=Fraction(time_ns))
                for price, time_ns in zip(prices, times_ns, strict=True)
            ]
            costs.append(math.ceil(mean_time_ns(problem.limits, points)))
        found.append(Robustness(costs=tuple(costs)))
    return tuple(found)


def shares_won(costs: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Per name, the share of draws in which its cost is valid and none is lower; equal costs win together."""
    draws = list(zip(*costs.values(), strict=True))
    least = [min(row) for row in draws]
    return {
        name: sum(cost == best < INVALID_COST for cost, best in zip(own, least, strict=True)) / len(draws)
        for name, own in costs.items()
    }


def drawn_factors(problem: Problem, *, draws: int = DRAWS, seed: int = 0) -> Factors:
    """Factors of `exec_ns`, shape (draws, units, device types); device types in sorted order.

    On each device type, half of the error variance is shared by all units of a kind and half by all units of a shape
    group; independent errors would average out. The predictor's interval covers its stated share of the draws.
    """
    from opmark.predictors.composition.constants import COVERAGE

    types = problem.cluster.types
    quantile = NormalDist().inv_cdf((1 + COVERAGE) / 2)
    kinds = sorted({unit.kind for unit in problem.units})
    groups = sorted({(unit.kind, unit.shape_group) for unit in problem.units})
    source = np.random.default_rng(seed)
    by_kind = source.standard_normal((draws, len(kinds), len(types)))
    by_group = source.standard_normal((draws, len(groups), len(types)))
    of_kind = [kinds.index(unit.kind) for unit in problem.units]
    number = {group: index for index, group in enumerate(groups)}
    of_group = [number[unit.kind, unit.shape_group] for unit in problem.units]
    error = (by_kind[:, of_kind] + by_group[:, of_group]) / np.sqrt(2) / quantile
    bounds = np.array([[unit.interval.get(name, (1.0, 1.0)) for name in types] for unit in problem.units])
    low, high = np.log(bounds[..., 0]), np.log(bounds[..., 1])
    found: Factors = np.exp(np.where(error < 0, -error * low, error * high))
    return found


def drawn_problem(problem: Problem, factors: Factors) -> Problem:
    """The problem with all times multiplied by `factors` (units, device types); it is compiled again."""
    types = problem.cluster.types
    units = []
    for unit, row in zip(problem.units, factors.tolist(), strict=True):
        of_type = dict(zip(types, row, strict=True))
        whole = {name: value * of_type.get(name, 1.0) for name, value in unit.exec_ns.items()}
        split = {
            name: tuple(value * of_type.get(name, 1.0) for value in parts) for name, parts in unit.split_ns.items()
        }
        units.append(replace(unit, exec_ns=whole, split_ns=split))
    return replace(problem, units=tuple(units))


def _drawn(problem: Problem, factors: Factors) -> Problem:
    """The compiled problem with all whole-unit times multiplied."""
    table = problem.arrays.exec_ns.reshape(factors.shape)
    exec_ns: Integers = np.where(table > 0, np.maximum(1, np.rint(table * factors)), table).astype(np.int64)
    drawn = copy.copy(problem)
    drawn.__dict__["arrays"] = replace(problem.arrays, exec_ns=exec_ns.reshape(-1))
    return drawn
