"""How much units that share a device's slots slow one another down, as a table of millionths.

The pairwise additive model of Choi et al., "Serving Heterogeneous Machine Learning Models on Multi-GPU Servers with
Spatio-Temporal Sharing", ATC 2022: every neighbour adds what its factor exceeds 1.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from opmark.leaderboards.problem.integers import Integers, integers

if TYPE_CHECKING:
    from opmark.leaderboards.problem.problem import Problem

MILLION = 1_000_000
ANY = "*"


def interference_arrays(problem: "Problem", types: list[str]) -> tuple[int, Integers, Integers]:
    """How many classes, the class of every unit, and factors by type, class and class beside it; 0 without a table.

    A class is a kind that a table names, or the one of all other kinds.
    """
    named = {kind for table in problem.interference.values() for own, row in table.items() for kind in (own, *row)} - {
        ANY
    }
    if not any(row for table in problem.interference.values() for row in table.values()):
        return 0, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    classes = [ANY, *sorted(named)]
    number = {name: index for index, name in enumerate(classes)}
    factors = [
        round(factor_of(problem, type_name, own, beside) * MILLION)
        for type_name in types
        for own in classes
        for beside in classes
    ]
    return len(classes), integers(number.get(unit.kind, 0) for unit in problem.units), integers(factors)


def factor_of(problem: "Problem", type_name: str, kind: str, beside: str) -> float:
    """How much a unit of `kind` is slowed by one of `beside`; the most exact entry counts, 1 without any."""
    table = problem.interference.get(type_name, {})
    for own, other in ((kind, beside), (kind, ANY), (ANY, beside), (ANY, ANY)):
        if other in table.get(own, {}):
            return table[own][other]
    return 1.0


def slowest_factor(problem: "Problem") -> int:
    """By how much a unit can be slowed at most, rounded up; 0 without a table."""
    factors = [f for table in problem.interference.values() for row in table.values() for f in row.values()]
    slots = max(device.slots for device in problem.cluster.devices)
    return math.ceil(max(factors, default=1.0) - 1) * (slots - 1)
