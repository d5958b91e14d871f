"""DAPPLE: stages, each with its own replicas on devices of its own, planned for one-forward-one-backward (1F1B).

Fan et al., "DAPPLE: A pipelined data parallel approach for training large models", PPoPP 2021. Section 4.1 predicts the
latency of a plan from its warm-up, its steady phase and its ending. Section 4.2 has three policies for the devices of a
stage, and section 4.3 the dynamic program over layers and devices. 1F1B (Narayanan et al., SOSP 2019) keeps no more
micro-batches in flight than there are stages ahead, which is the stashed memory of a problem.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opmark.core.errors import PlacementError
from opmark.core.units import NS_PER_S
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.layers import Layers, layers_of
from opmark.leaderboards.search.cuts.machines import Devices, machines_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.published.pipedream_stage import slowest_bandwidth

# The micro-batches per device if the problem names none: DAPPLE's experiments have a few times as many as stages.
MICRO_BATCHES_PER_DEVICE = 4
# Layers of the program; more are joined.
LAYERS_AT_MOST = 48
BUDGET_SHARE = 0.9
# Latencies of plans that cannot run.
NEVER_NS = 1e18

Floats = npt.NDArray[np.float64]


class Dapple(Placer):
    """The valid plan of least predicted latency; without replication every stage has one device."""

    summary = "stages with replicas of their own by warm-up, steady phase and ending of 1F1B (DAPPLE, PPoPP'21)"
    paper = Placer.cites(
        "Fan et al.: DAPPLE: a pipelined data parallel approach for training large models, PPoPP",
        2021,
        link="https://arxiv.org/abs/2007.01045",
        code="https://github.com/AlibabaPAI/DAPPLE",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the plan; the best single device if no pipeline fits."""
        del seed
        incumbent = Incumbent(problem, "dapple", budget_s * BUDGET_SHARE)
        schedule = "one-f-one-b" if problem.in_micro_batches else ""
        layers = layers_of(problem, LAYERS_AT_MOST)
        for plan in sorted(_Planner(problem, layers).plans(incumbent), key=lambda plan: plan.latency_ns):
            placement = plan.placement(layers, schedule)
            if _runs(problem, placement) and incumbent.consider(placement):
                return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0], schedule=schedule))
        return incumbent.solution()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Times of one stage in ns, or of the transfer between two; arrays have one entry per candidate."""

    forward: float | Floats
    backward: float | Floats
    all_reduce: float | Floats = 0.0


def pipeline_ns(stages: list[StageTimes], micro_batches: int) -> Floats:
    """Section 4.1: L = warm-up + steady phase + ending, each up to, in and from the pivot stage (formulas 1 to 3).

    Transfers between stages count as stages of their own.
    """
    columns = [(stage.forward, stage.backward, stage.all_reduce) for stage in stages]
    flat = [np.atleast_1d(np.asarray(value, dtype=np.float64)) for row in zip(*columns, strict=True) for value in row]
    count = len(stages)
    forward, backward, reduce = np.stack(np.broadcast_arrays(*flat)).reshape(3, count, -1)
    each = np.arange(forward.shape[1])
    nothing = np.zeros((1, len(each)))
    both = np.concatenate([nothing, np.cumsum(forward + backward, axis=0)])
    ahead, behind = (np.concatenate([nothing, np.cumsum(row, axis=0)]) for row in (forward, backward))
    steady = (micro_batches - 1) * (forward + backward)
    # Formula 3: the pivot is the last stage, unless an earlier one keeps busy for longer than what lies between.
    pivot = np.full(len(each), count - 1)
    for stage in range(count - 2, -1, -1):
        hidden = steady[pivot, each] + both[pivot, each] - both[stage + 1, each]
        pivot = np.where(steady[stage] > hidden, stage, pivot)
    warm_up = ahead[pivot + 1, each]
    ending = np.full(len(each), -np.inf)
    for stage in range(count):
        back = np.where(
            stage <= pivot, behind[pivot + 1, each] - behind[stage], behind[pivot, each] - behind[stage + 1]
        )
        ending = np.maximum(ending, reduce[stage] + back)
    found: Floats = warm_up + steady[pivot, each] + ending
    return found


def fresh_first(machines: list[Devices], used: frozenset[int], count: int) -> Devices | None:
    """Section 4.2: a stage on machines that nobody uses yet, so that its replicas are near one another."""
    return _filled(sorted(machines, key=lambda row: sum(one in used for one in row)), used, count)


def append_first(machines: list[Devices], used: frozenset[int], count: int) -> Devices | None:
    """Section 4.2: a stage on machines that are in use already, so that no device is left over."""
    return _filled(sorted(machines, key=lambda row: -sum(one in used for one in row)), used, count)


def scatter_first(machines: list[Devices], used: frozenset[int], count: int) -> Devices | None:
    """Section 4.2: a stage spread evenly over the machines in use, or over all of them if none is."""
    free = [[one for one in row if one not in used] for row in machines]
    begun = [row for row, own in zip(free, machines, strict=True) if any(one in used for one in own)]
    rows = begun if sum(map(len, begun)) >= count else free
    spread = [row[turn] for turn in range(max(map(len, rows))) for row in rows if turn < len(row)]
    return tuple(sorted(spread[:count])) if len(spread) >= count else None


POLICIES = (fresh_first, append_first, scatter_first)


def _filled(machines: list[Devices], used: frozenset[int], count: int) -> Devices | None:
    free = [one for row in machines for one in row if one not in used]
    return tuple(sorted(free[:count])) if len(free) >= count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The first layer of each stage, its devices, and the predicted latency in ns."""

    starts: tuple[int, ...] = ()
    devices: tuple[Devices, ...] = ()
    latency_ns: float = NEVER_NS

    def with_stage(self, first: int, devices: Devices, latency_ns: float = NEVER_NS) -> "_Plan":
        """The plan and one more stage, from layer `first`."""
        return _Plan(starts=(*self.starts, first), devices=(*self.devices, devices), latency_ns=latency_ns)

    def placement(self, layers: Layers, schedule: str) -> Placement:
        """The first device of every stage holds its units, the others are replicas."""
        stage = np.searchsorted(np.array(self.starts), np.arange(layers.count), side="right") - 1
        primary = np.array([row[0] for row in self.devices], dtype=np.int64)
        copies = {row[0]: list(row[1:]) for row in self.devices if len(row) > 1}
        return Placement(device=primary[stage][layers.of_unit], replicas=copies, schedule=schedule)


class _Planner:
    """Section 4.3: the best plan for the first layers on some devices, with all other layers on all other devices."""

    def __init__(self, problem: Problem, layers: Layers) -> None:
        self.problem, self.layers = problem, layers
        self.micro_batches = problem.micro_batches or MICRO_BATCHES_PER_DEVICE * problem.arrays.devices
        self.ns_per_byte: dict[Devices, float] = {}

    def plans(self, incumbent: Incumbent) -> Iterator[_Plan]:
        """The best plan per number of stages on all devices, on all but the slowest, and so on, in the time left."""
        row = self.layers.fastest_first
        for count in range(len(row), 0, -1):
            for plan in self._best(machines_of(self.problem, row[:count]), incumbent):
                if plan.latency_ns < NEVER_NS:
                    yield plan

    def _best(self, machines: list[Devices], incumbent: Incumbent) -> Iterator[_Plan]:
        """A plan goes on from the best one for as many layers on the same devices."""
        every, last = frozenset(one for row in machines for one in row), self.layers.count
        replicate = self.problem.replication
        whole = tuple(sorted(every))
        if replicate or len(whole) == 1:
            alone = pipeline_ns([self._stage(whole, 0, np.array([last]))], self.micro_batches)
            yield _Plan(starts=(0,), devices=(whole,), latency_ns=float(alone[0]))
        waiting: dict[tuple[int, frozenset[int]], _Plan] = {(0, frozenset()): _Plan()}
        while waiting and incumbent.left_s > 0:
            longer: dict[tuple[int, frozenset[int]], _Plan] = {}
            best = _Plan()
            for (first, used), plan in waiting.items():
                if incumbent.left_s <= 0:
                    return
                for chosen in self._choices(machines, used):
                    rest = tuple(sorted(every - used - set(chosen)))
                    ends = np.arange(first + 1, last)
                    if not rest or not len(ends):
                        continue
                    found = self._latency_ns(plan, first, ends, chosen, rest)
                    most = int(found.argmin())
                    if (replicate or len(rest) == 1) and found[most] < best.latency_ns:
                        best = plan.with_stage(first, chosen).with_stage(int(ends[most]), rest, float(found[most]))
                    grown = plan.with_stage(first, chosen)
                    for end, latency in zip(ends.tolist(), found.tolist(), strict=True):
                        key = end, used | set(chosen)
                        if key not in longer or latency < longer[key].latency_ns:
                            longer[key] = replace(grown, latency_ns=latency)
            yield best
            waiting = longer

    def _choices(self, machines: list[Devices], used: frozenset[int]) -> list[Devices]:
        """The devices that the policies give to the next stage, for every number of replicas."""
        free = sum(map(len, machines)) - len(used) if self.problem.replication else 1
        found = {policy(machines, used, count) for policy in POLICIES for count in range(1, free + 1)}
        return sorted(one for one in found if one)

    def _latency_ns(self, plan: _Plan, first: int, ends: Integers, chosen: Devices, rest: Devices) -> Floats:
        """The stages of a plan, then layers `first` up to each of `ends` on `chosen`, then all others on `rest`."""
        row: list[StageTimes] = []
        cuts = [*plan.starts, first]
        for number, devices in enumerate(plan.devices):
            row += [self._stage(devices, cuts[number], np.array([cuts[number + 1]])), self._transfer(cuts[number + 1])]
        row += [self._stage(chosen, first, ends), self._transfer(ends)]
        row.append(self._stage(rest, ends, np.array([self.layers.count])))
        return pipeline_ns(row, self.micro_batches)

    def _stage(self, devices: Devices, first: int | Integers, last: Integers) -> StageTimes:
        """Layers `first` to `last` on replicas with equal shares: the slowest counts. They agree by ring all-reduce."""
        of, rows = self.layers, list(devices)
        start = np.atleast_1d(first)
        spans = of.run_ns[:, rows][..., last] - of.run_ns[:, rows][..., start]
        forward, backward, update = spans.max(axis=1)
        memory = self.problem.arrays.device_memory_bytes[rows].min()
        never = (of.unable[rows][:, last] > of.unable[rows][:, start]).any(axis=0)
        never |= of.weight_bytes[last] - of.weight_bytes[start] > memory
        count = len(devices)
        sent = (of.gradient_bytes[last] - of.gradient_bytes[start]) * self._ns_per_byte(devices)
        return StageTimes(
            forward=np.where(never, NEVER_NS, forward / count),
            backward=backward / count,
            all_reduce=update + 2 * (count - 1) / count * sent,
        )

    def _transfer(self, boundary: int | Integers) -> StageTimes:
        """The tensors that pass between two stages, as a stage of its own."""
        ahead, back = self.layers.crossing_ns[:, np.atleast_1d(boundary)]
        return StageTimes(forward=ahead, backward=back)

    def _ns_per_byte(self, devices: Devices) -> float:
        if len(devices) == 1:
            return 0.0
        if devices not in self.ns_per_byte:
            try:
                self.ns_per_byte[devices] = NS_PER_S / float(slowest_bandwidth(self.problem, list(devices)))
            except PlacementError:
                self.ns_per_byte[devices] = NEVER_NS
        return self.ns_per_byte[devices]


def _runs(problem: Problem, placement: Placement) -> bool:
    """True if every replica can run the units of its stage."""
    return all(
        bool((problem.arrays.run_ns[np.flatnonzero(placement.device == primary)][:, list(row)] >= 0).all())
        for primary, row in placement.replicas.items()
    )


PLACER = Dapple()
