"""The slowdown of units that share a device's slots, as factors in millionths.

The pairwise additive model of Choi et al., "Serving Heterogeneous Machine Learning Models on Multi-GPU Servers with
Spatio-Temporal Sharing", ATC 2022: every neighbour adds what its factor exceeds 1.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from opmark.leaderboards.problem.fields import ProblemFields
from opmark.leaderboards.problem.integers import Integers, integers

MILLION = 1_000_000
ANY = "*"


def interference_arrays(problem: ProblemFields, types: Sequence[str]) -> tuple[int, Integers, Integers]:
    """The number of classes, the class of every unit, and factors by type, class and class beside it.

    A class is a kind that a table names, or the one of all other kinds; without a table there is none.
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


def factor_of(problem: ProblemFields, type_name: str, kind: str, beside: str) -> float:
    """The factor by which a unit of `kind` is slowed by one of `beside`: the most exact entry, or 1 without any."""
    table = problem.interference.get(type_name, {})
    for own, other in ((kind, beside), (kind, ANY), (ANY, beside), (ANY, ANY)):
        if other in table.get(own, {}):
            return table[own][other]
    return 1.0


def slowest_factor(problem: ProblemFields) -> int:
    """The most that a unit's factor can exceed 1, rounded up; 0 without a table."""
    factors = [f for table in problem.interference.values() for row in table.values() for f in row.values()]
    slots = max(device.slots for device in problem.cluster.devices)
    return math.ceil(max(factors, default=1.0) - 1) * (slots - 1)


def slowed_ends(
    problem: ProblemFields, type_name: str, starts_ns: Sequence[tuple[int, str]], durations_ns: Mapping[str, int]
) -> dict[str, int]:
    """The end of each unit of one device, from (start, unit) pairs and the durations without neighbours.

    At every start and finish, the remaining time is multiplied by new / old factor and rounded up.
    """
    kinds = {unit.name: unit.kind for unit in problem.units}
    found = {name: start for start, name in starts_ns if not durations_ns[name]}
    coming = sorted((start, name) for start, name in starts_ns if durations_ns[name])
    running: dict[str, tuple[int, int]] = {}
    while coming or running:
        now = min([end for end, _ in running.values()] + [start for start, _ in coming[:1]])
        for name in [name for name, (end, _) in running.items() if end == now]:
            found[name] = running.pop(name)[0]
        while coming and coming[0][0] == now:
            _, name = coming.pop(0)
            running[name] = (now + durations_ns[name], MILLION)
        for name, (end, factor) in list(running.items()):
            others = (kinds[other] for other in running if other != name)
            slowed = MILLION + sum(
                round(factor_of(problem, type_name, kinds[name], kind) * MILLION) - MILLION for kind in others
            )
            running[name] = (now - (now - end) * slowed // factor, slowed)
    return found
