"""The area bound: all work spread over all slots, by linear programming with memory rows for weights."""

import math

import numpy as np

from opmark.leaderboards.bounds.relaxation import (
    LOAD_PROFILES,
    Relaxation,
    is_latency,
    is_load,
    of_groups,
    profile_of,
    work_ns,
)
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups

# Beyond this many (group, device type) variables the linear program costs more than it tells.
AREA_VARIABLES_AT_MOST = 60_000


class Area(Relaxation):
    """No device type can work longer than its slots allow."""

    summary = "all work cut freely over all slots, a linear program"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For latency and for throughput."""
        if problem.objective == "cost" or not (is_latency(problem) or is_load(problem)):
            return None
        return area(problem, groups)


def area(problem: Problem, groups: Groups) -> int:
    """The busy time of the busiest type if groups could be cut freely over device types, in ns.

    0 where the program is larger than `AREA_VARIABLES_AT_MOST`. Weights that several groups share are left out of the
    memory rows, since each device holds them once; so are all where replicas may hold further copies, which only
    makes the bound lower.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    arrays = problem.arrays
    types = int(arrays.device_type.max()) + 1
    serial = profile_of(problem) in LOAD_PROFILES
    # Devices of a type differ in dispatch only by configuration; the cheapest keeps the bound valid.
    run = np.full((groups.count, types), np.inf)
    work = of_groups(groups, work_ns(problem))
    slots, memory = np.zeros(types), np.zeros(types)
    for device in range(arrays.devices):
        kind = int(arrays.device_type[device])
        able = groups.allowed[:, device]
        run[able, kind] = np.minimum(run[able, kind], work[able, device])
        slots[kind] += 1 if serial else arrays.device_slots[device]
        memory[kind] += arrays.device_memory_bytes[device]
    row, column = np.nonzero(np.isfinite(run))
    count = len(row)
    if count > AREA_VARIABLES_AT_MOST:
        return 0
    # Times as fractions of the largest keep the program well scaled.
    scale = max(1.0, float(run[row, column].max()))
    own = _own_weight_bytes(problem, groups)
    numbers = np.arange(count)
    slot_rows = np.arange(types)
    busy = csr_array(
        (
            np.concatenate([run[row, column] / scale, -slots]),
            (np.concatenate([column, slot_rows]), np.concatenate([numbers, np.full(types, count)])),
        ),
        shape=(types, count + 1),
    )
    held = csr_array((own[row] / memory[column], (column, numbers)), shape=(types, count + 1))
    upper = vstack([busy, held])
    equal = csr_array((np.ones(count), (row, numbers)), shape=(groups.count, count + 1))
    objective = np.zeros(count + 1)
    objective[count] = 1
    limits = np.concatenate([np.zeros(types), np.ones(types)])
    result = linprog(objective, A_ub=upper, b_ub=limits, A_eq=equal, b_eq=np.ones(groups.count), method="highs")
    if not result.success:
        return 0
    return max(0, math.floor(float(result.fun) * scale * (1 - 1e-9)))


def _own_weight_bytes(problem: Problem, groups: Groups) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Bytes per group of the weights that no other group uses."""
    users: dict[str, set[int]] = {}
    for unit, group in zip(problem.units, groups.of_unit.tolist(), strict=True):
        for name in unit.weights:
            users.setdefault(name, set()).add(group)
    own = np.zeros(groups.count)
    for name, used_by in users.items():
        if len(used_by) == 1:
            own[next(iter(used_by))] += problem.held_bytes[name]
    return own


RELAXATION = Area()
