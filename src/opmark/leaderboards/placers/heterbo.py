"""Bayesian search over fleets where trying a dear fleet costs more.

Yi, Zhang, Wang, Li, Yan, "Not All Explorations Are Equal: Harnessing Heterogeneous Profiling Cost for Efficient MLaaS
Training", IPDPS 2020 (HeterBO): a Gaussian process over the counts of devices; the next fleet to try has the largest
expected improvement per price of trying it; the search begins with single devices and ends where nothing promises more.
Trying a fleet is a quick placement here. The process is scikit-learn's, with a Matérn kernel.
"""

import warnings
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from opmark.core.errors import MissingExtraError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import THOROUGH, FleetFigures, FleetHunt

# Fleets that are tried at most, and the expected gain (in logarithms) at which the search ends.
TRIES, LEAST_GAIN = 40, 0.002
# A fleet that cannot be placed counts as so many times the worst value seen.
FAILED = 4.0
# A fleet that misses the goal is worse by the miss to this power, so that the process sees a slope.
MISS_POWER = 2.0


class HeterBO(Placer):
    """Needs scikit-learn (extra solvers)."""

    summary = "Bayesian search over counts, gain per price of a try (HeterBO, IPDPS'20; extra solvers)"
    rents = True
    paper = Placer.cites(
        "Yi, Zhang, Wang, Li, Yan: Not all explorations are equal: harnessing heterogeneous profiling cost for "
        "efficient MLaaS training, IPDPS",
        2020,
    )

    def prepare(self) -> None:
        """Import the Gaussian process, where it is installed."""
        with suppress(ImportError):
            import sklearn.gaussian_process  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the best placement tried. Raises `MissingExtraError` without scikit-learn."""
        try:
            import sklearn.gaussian_process  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("heterbo needs scikit-learn", hint="pip install 'opmark[solvers]'") from error
        hunt = FleetHunt(problem, "heterbo", budget_s)
        fleets = list(hunt.pool.fleets())
        tried: dict[Fleet, FleetFigures | None] = {}
        for fleet in [*hunt.pool.singles(), *fleets[:1], *fleets[-1:]]:
            if not hunt.over and fleet not in tried:
                tried[fleet] = hunt.look(fleet, seed=seed)
        while not hunt.over and len(tried) < min(TRIES, len(fleets)):
            fleet, gain = _next(hunt, [one for one in fleets if one not in tried], tried, seed)
            if gain < LEAST_GAIN:
                break
            tried[fleet] = hunt.look(fleet, seed=seed)
        best = hunt.best()
        if best is not None and not hunt.over:
            hunt.look(best.fleet, THOROUGH[hunt.kind], seed=seed)
        return hunt.solution()


PLACER = HeterBO()


def _next(
    hunt: FleetHunt, open_fleets: list[Fleet], tried: dict[Fleet, FleetFigures | None], seed: int
) -> tuple[Fleet, float]:
    """The fleet of the largest expected improvement per price, and its expected improvement."""
    from scipy.stats import norm
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    scale = np.array(hunt.pool.available, dtype=np.float64)
    seen = _logarithms(hunt, tried)
    process = GaussianProcessRegressor(
        Matern(length_scale=0.5, length_scale_bounds=(0.05, 5.0), nu=2.5) + WhiteKernel(1e-3, (1e-6, 1e-1)),
        normalize_y=True,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(np.array(list(tried)) / scale, seen)
    mean, deviation = process.predict(np.array(open_fleets) / scale, return_std=True)
    deviation = np.maximum(deviation, 1e-9)
    standing = (seen.min() - mean) / deviation
    gain = (seen.min() - mean) * norm.cdf(standing) + deviation * norm.pdf(standing)
    price = np.array([max(hunt.pool.price_per_hour(fleet), 1e-9) for fleet in open_fleets])
    place = int((gain / price).argmax())
    return open_fleets[place], float(gain[place])


def _logarithms(hunt: FleetHunt, tried: dict[Fleet, FleetFigures | None]) -> npt.NDArray[np.float64]:
    """The logarithm of each fleet's value, raised by its miss of the goal."""
    problem = hunt.problem
    known = [
        None if one is None else max(one.value(problem), 1e-12) * one.shortfall(problem.limits) ** MISS_POWER
        for one in tried.values()
    ]
    worst = max((value for value in known if value is not None), default=1.0)
    values: npt.NDArray[np.float64] = np.array([FAILED * worst if value is None else value for value in known])
    return np.log(values)
