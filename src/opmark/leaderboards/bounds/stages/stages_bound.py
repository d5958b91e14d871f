"""A bound on the throughput of a full pipeline: every way to join devices to stages is ruled out, or bounded.

Replicas join devices to one stage, whose members take turns; so every partition of the devices is a problem of its own.
A linear program bounds its loads without transfers, and dynamic programming over a frontier (`frontier`) decides
whether any division of the groups keeps all servers, ports included, below a cost.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from opmark.leaderboards.bounds.prices import Floats
from opmark.leaderboards.bounds.relaxation import EVENT_PROFILES, has_splits, profile_of
from opmark.leaderboards.bounds.stages.frontier import Frontier
from opmark.leaderboards.bounds.stages.stage_loads import HOME, Stage, StageLoader, StageLoads
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of

# More devices have more partitions than there is time for.
REPLICATED_AT_MOST = 5
DEVICES_AT_MOST = 16
# Ways that are kept apart at a time.
WAYS_AT_MOST = 10_000
# The search for the best bound ends where its steps are this share of the cost.
STEP_SHARE = 5e-4
ROUNDING = 1e-7
# Prices beside those of the linear programs: as many, with factors drawn around 1.
SPREAD, DRAWN = 0.25, 4


def stages_bound(problem: Problem, limit_ns: int, *, seconds: float) -> int | None:
    """A proven lower bound, at most the cost `limit_ns` of a valid answer; None if it does not apply."""
    if not applies(problem) or seconds <= 0:
        return None
    deadline = time.monotonic() + seconds
    search = _Search(problem)
    low, high = min(search.least(), limit_ns), limit_ns
    if search.decide(limit_ns, deadline):
        return limit_ns
    while high - low > max(1, STEP_SHARE * limit_ns) and time.monotonic() < deadline:
        middle = (low + high + 1) // 2
        if search.decide(middle, deadline):
            low = middle
        else:
            high = middle
    return low


def is_unreachable(problem: Problem, below_ns: int, *, seconds: float, ways: int = WAYS_AT_MOST * 2) -> bool | None:
    """True if no solution costs less than `below_ns`, None if that is open; from the last group to the first."""
    if not applies(problem):
        return None
    search = _Search(problem, backwards=True, ways=ways)
    return search.decide(below_ns, time.monotonic() + seconds) or None


def applies(problem: Problem) -> bool:
    """True where only loads count, by the rules of opsim 1, and solutions leave units whole."""
    devices = problem.arrays.devices
    few = devices <= (REPLICATED_AT_MOST if problem.replication else DEVICES_AT_MOST)
    load = profile_of(problem) in EVENT_PROFILES[:1] and problem.objective == "throughput"
    return load and few and not has_splits(problem) and not problem.limits


class _Search:
    """All partitions of one problem's devices, each with its bound by linear programming."""

    def __init__(self, problem: Problem, *, backwards: bool = False, ways: int = WAYS_AT_MOST) -> None:
        self._ways, self._backwards = ways, backwards
        loader = StageLoader(problem, groups_of(problem))
        devices = range(problem.arrays.devices)
        partitions = _partitions(tuple(devices)) if problem.replication else iter([[(one,) for one in devices]])
        self._open: list[tuple[float, Frontier]] = []
        self._loader = loader
        for stages in partitions:
            loads = loader.loads(stages)
            bound, prices = priced(loads)
            self._open.append((bound, Frontier(loads, _order(loads, backwards), prices)))
        self._open.sort(key=lambda item: item[0])

    def least(self) -> int:
        """The bound by linear programming alone."""
        return int(self._open[0][0])

    def decide(self, below: int, deadline: float) -> bool:
        """True if it is proved that nothing costs less than `below`."""
        for bound, frontier in self._open:
            if bound >= below:
                continue
            if time.monotonic() > deadline or not frontier.is_impossible(below - 1, ways_at_most=self._ways):
                return False
        return True


def _partitions(devices: Stage) -> Iterator[list[Stage]]:
    """Every way to join devices to stages."""
    if not devices:
        yield []
        return
    first, rest = devices[0], devices[1:]
    for found in _partitions(rest):
        yield [(first,), *found]
        for place, stage in enumerate(found):
            yield [*found[:place], (first, *stage), *found[place + 1 :]]


def _order(loads: StageLoads, backwards: bool) -> list[int]:
    """Groups in an order that keeps few tensors waiting for a reader: each time the one that leaves the fewest."""
    count = len(loads.group)
    members = [{*tensor.readers, tensor.producer} - {HOME} for tensor in loads.tensors]
    of_group: list[list[int]] = [[] for _ in range(count)]
    for number, groups in enumerate(members):
        for group in groups:
            of_group[group].append(number)
    left, waiting = [len(groups) for groups in members], set[int]()
    free, found = set(range(count)), list[int]()
    while free:
        near = {group for number in waiting for group in members[number]} & free or free
        sign = -1 if backwards else 1

        def after(group: int, sign: int = sign) -> tuple[int, int]:
            ended = sum(1 for number in of_group[group] if left[number] == 1 and number in waiting)
            begun = sum(1 for number in of_group[group] if left[number] > 1 and number not in waiting)
            return begun - ended, sign * group

        group = min(near, key=after)
        free.remove(group)
        found.append(group)
        for number in of_group[group]:
            left[number] -= 1
            waiting.add(number)
            if not left[number]:
                waiting.discard(number)
    return found


def priced(loads: StageLoads) -> tuple[float, Floats]:
    """A bound without transfers, and rows of prices of servers: of that program, of its parts, and drawn near them."""
    count = len(loads.group)
    bound, whole = _relaxed(loads, np.arange(count))
    rows = [whole]
    for share in (0.33, 0.66):
        rows += [
            _relaxed(loads, np.arange(int(share * count)))[1],
            _relaxed(loads, np.arange(int(share * count), count))[1],
        ]
    generator = np.random.default_rng(0)
    rows += [whole * np.exp(generator.normal(0, SPREAD, len(whole))) for _ in range(DRAWN)]
    return bound * (1 - ROUNDING), np.array(rows)


def _relaxed(
    loads: StageLoads, groups: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[float, Floats]:
    """The least cost of some groups that may be divided over stages, transfers left out, and the servers' prices."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    servers = len(loads.rate)
    row, label = np.nonzero(loads.allowed[groups])
    if not len(row):
        return 0.0, np.zeros(servers)
    vectors = loads.group[np.asarray(groups)[row], label].astype(np.float64)
    scale = np.maximum(1.0, np.maximum(vectors.max(axis=0), loads.room))
    cost_scale = max(1.0, float((vectors / np.maximum(loads.rate, 1)).max()))
    busy = np.column_stack([(vectors / scale).T, -loads.rate * cost_scale / scale])
    whole = csr_array((np.ones(len(row)), (row, np.arange(len(row)))), shape=(len(groups), len(row) + 1))
    objective = np.zeros(len(row) + 1)
    objective[-1] = 1
    result = linprog(
        objective, A_ub=busy, b_ub=loads.room / scale, A_eq=whole, b_eq=np.ones(len(groups)), method="highs"
    )
    if result.status == 2:
        return float(2**62), np.zeros(servers)
    if not result.success:
        return 0.0, np.zeros(servers)
    return float(result.fun) * cost_scale, np.maximum(0.0, -np.asarray(result.ineqlin.marginals)) / scale
