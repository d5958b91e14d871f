"""The hunt among fleets of equal devices, with a counted effort: the same answer wherever it is made.

`equal-types` answers with it and `opmark` begins with it, so `opmark` is never worse.
"""

from collections.abc import Sequence

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt
from opmark.leaderboards.search.renting.front_hunt import hunt_front
from opmark.leaderboards.search.renting.halving import hunt_by_halving
from opmark.leaderboards.search.renting.pace import CountedPace, HuntPace

# Annealing steps for a second of budget: compiled ones per unit and tensor of the problem, and steps in plain Python.
# On a core of a cloud machine they take 0.1 to 0.3 s of that second.
COMPILED, PLAIN = 1_500_000, 150


def explore(hunt: FleetHunt, fleets: Sequence[Fleet], pace: HuntPace) -> None:
    """Hunt for the best placement on `fleets`, or for their front where the problem asks for one."""
    (hunt_front if hunt.problem.fronted else hunt_by_halving)(hunt, fleets, pace)


def hunt_equal(hunt: FleetHunt, *, budget_s: float, seed: int) -> None:
    """Look at the fleets of equal devices, and search the best of them with the steps that belong to a budget."""
    equal = [fleet for fleet in hunt.pool.fleets() if hunt.pool.equal(fleet)]
    explore(hunt, equal, CountedPace(hunt, counted_steps(hunt.problem, budget_s), seed=seed))


def counted_steps(problem: Problem, budget_s: float) -> int:
    """The annealing steps of the searches of equal devices, for a budget in seconds."""
    if problem.in_micro_batches:
        return int(PLAIN * budget_s)
    return int(COMPILED * budget_s / (problem.arrays.units + len(problem.arrays.tensor_bytes)))
