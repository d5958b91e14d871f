"""The cost of a placement over random draws of the predictors' errors."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.simulator.simulate import simulate, simulate_many

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
    """`robustness` of several placements over the same draws; each draw is compiled once."""
    fixed = [
        replace(placement, priority=problem.arrays.default_priority) if placement.priority is None else placement
        for placement in placements
    ]
    plain = [place for place, one in enumerate(fixed) if not (one.order or one.replicas or one.schedule)]
    devices = np.array([fixed[place].device for place in plain], dtype=np.int64)
    priorities = np.array([fixed[place].priority for place in plain], dtype=np.int64)
    costs = np.zeros((len(factors), len(fixed)), dtype=np.int64)
    for draw, row in enumerate(factors):
        whole = _drawn(problem, row)
        if plain:
            costs[draw, plain] = simulate_many(whole, devices, priorities, profile=profile, enforce_memory=False)
        for place in set(range(len(fixed))).difference(plain):
            drawn = drawn_problem(problem, row) if fixed[place].replicas else whole
            costs[draw, place] = simulate(drawn, fixed[place], profile).cost_ns
    return tuple(Robustness(costs=tuple(own)) for own in costs.T.tolist())


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


def drawn_factors(problem: Problem, *, draws: int = DRAWS, seed: int = 0) -> Factors:
    """Factors of `exec_ns`, shape (draws, units, device types); device types in sorted order.

    On each device type, half of the error variance is shared by all units of a kind and half by all units of a shape
    group; independent errors would average out. The predictor's interval covers its stated share of the draws.
    """
    from opmark.predictors.model.intervals import COVERAGE

    types = sorted({device.type for device in problem.cluster.devices})
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
    types = sorted({device.type for device in problem.cluster.devices})
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
