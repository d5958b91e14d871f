"""The cost of a cut in a network: what both devices spend where a tensor leaves one of them and enters the other.

A network that no board knows runs on two equal devices in three ways: whole, with every unit as a stretch of its own,
and with every second unit on the other device. The first two differ by the cost of a stretch, which is one more call
of the runtime. The last two differ by what it costs a unit to receive or to send. The three take turns, so that a
machine that slows down meanwhile does not decide. Transfers are compared with the link, whose time is that of copies
alone and in cache. Everything is told at the state of the labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from opmark.bench.execution.crew import Execution
from opmark.bench.execution.programme import DeviceStep, DeviceWork, Programme
from opmark.core.hardware.cluster import Cluster, Link
from opmark.core.kernels.graph import Graph
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.model_problem import problem_of_model
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.studies.execution.difference import transfer_times
from opmark.studies.execution.label_state import Readings, label_factor, label_readings, state_of
from opmark.studies.execution.planning import PlannedProgramme
from opmark.studies.execution.stage import ExecutionStage

# On no board of executed placements.
MODEL = "mobilenet-small"
TURNS = 5
ROUNDS = 3
# A cost below this is noise, and one above it is that of another machine.
_MOST_RATIO = 10.0
_EXPECTED_NS = 1e6
Taken = list[tuple[Execution, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutCost:
    """The time that a target spends on one end of a transfer: `end_ns` + `ns_per_byte` · bytes, stretches included.

    `stretch_ns` is the part that a cut without a transfer costs. `transfer_ratio` is the time of a transfer over that
    of the link.
    """

    stretch_ns: float
    end_ns: float
    ns_per_byte: float
    transfer_ratio: float


def cut_cost_on(cluster: Cluster, workspace: Workspace) -> CutCost:
    """The cost of a cut between the two devices of `cluster`, which have one target.

    Raises `UnavailableError` if this machine lacks a device, `MeasurementError` if a process fails.
    """
    problem = problem_of_model(MODEL, cluster, workspace)
    with ExecutionStage(problem) as stage:
        return measured_cut_cost(stage, label_readings(problem, workspace))


def measured_cut_cost(
    stage: ExecutionStage, told_at: Sequence[Readings], *, turns: int = TURNS, rounds: int = ROUNDS
) -> CutCost:
    """Measure the cost of a cut on `stage`, whose two devices have one target.

    Raises `MeasurementError` if a process fails.
    """
    problem = stage.problem
    target = problem.cluster.devices[0].target
    order = [problem.units[number].name for number in problem.arrays.topological.tolist()]
    names = [device.name for device in problem.cluster.devices]
    device = {name: names[place % 2] for place, name in enumerate(order)}
    planned = stage.prepare(evaluate(problem, Solution(device=device)))
    programmes = (
        one_device(stage.graphs[target], [sum((stage.units[name][target] for name in order), ())]),
        one_device(stage.graphs[target], [stage.units[name][target] for name in order]),
        planned.programme,
    )
    whole, single, cut = _in_turns(stage, programmes, told_at, turns, rounds)
    longer = [
        _makespan_ns(single[first : first + turns]) - _makespan_ns(whole[first : first + turns])
        for first in range(0, turns * rounds, turns)
    ]
    stretch_ns = max(0.0, median(longer) / max(1, len(order) - 1))
    alone = {name: _step_ns(single, 0, place) for place, name in enumerate(order)}
    end_ns, ns_per_byte = _ends(planned, cut, alone, problem)
    return CutCost(
        stretch_ns=stretch_ns,
        end_ns=stretch_ns + end_ns,
        ns_per_byte=ns_per_byte,
        transfer_ratio=_transfer_ratio(planned, cut),
    )


def one_device(graph: Graph, stretches: Sequence[tuple[int, ...]]) -> Programme:
    """The whole of `graph` on the first of two devices, as these stretches of kernels."""
    steps = tuple(DeviceStep(kernels=tuple(kernels)) for kernels in stretches)
    first = DeviceWork(steps=steps, feeds=tuple(graph.inputs), outputs=tuple(graph.outputs))
    return Programme(devices=(first, DeviceWork(steps=())), crossings=())


def as_executed(problem: Problem, costs: Mapping[str, CutCost]) -> Problem:
    """`problem` as processes of this machine execute it; `costs` are by device type.

    Both ends of a transfer pay for the cut, transfers are as slow as between processes that also compute (the mean
    ratio of the devices' targets), and a device that copies does nothing else meanwhile.
    """
    ratio = fmean(costs[device.type].transfer_ratio for device in problem.cluster.devices)
    devices = tuple(replace(device, own_copies=True) for device in problem.cluster.devices)
    links = tuple(slowed_link(link, ratio) for link in problem.cluster.links)
    cluster = replace(problem.cluster, devices=devices, links=links)
    return with_cut_costs(replace(problem, cluster=cluster), costs)


def with_cut_costs(problem: Problem, costs: Mapping[str, CutCost]) -> Problem:
    """`problem` with the cost of a cut, by device type, at both ends of every transfer."""
    tensors = tuple(
        replace(
            tensor,
            boundary_ns={
                kind: round(tensor.boundary_ns.get(kind, 0) + cost.end_ns + cost.ns_per_byte * tensor.size_bytes)
                for kind, cost in costs.items()
            },
        )
        for tensor in problem.tensors
    )
    return replace(problem, tensors=tensors)


def slowed_link(link: Link, ratio: float) -> Link:
    """`link` with every transfer `ratio` times as long."""
    return replace(
        link,
        latency_ns=round(link.latency_ns * ratio),
        bandwidth_bytes_per_s=link.bandwidth_bytes_per_s / ratio,
        points=tuple((size, round(ns * ratio)) for size, ns in link.points),
    )


def _in_turns(
    stage: ExecutionStage, programmes: Sequence[Programme], told_at: Sequence[Readings], turns: int, rounds: int
) -> list[Taken]:
    """Executions of each programme, with their factors to the state of the labels: `turns` of one, then of the next."""
    found: list[Taken] = [[] for _ in programmes]
    for _ in range(rounds):
        for programme, taken in zip(programmes, found, strict=True):
            stage.build(programme, _EXPECTED_NS)
            readings = stage.sense()
            for _ in range(turns):
                execution, before, readings = stage.run_turn(readings)
                taken.append((execution, label_factor(state_of(before, readings, told_at, execution.busy_ns))))
    return found


def _makespan_ns(taken: Taken) -> float:
    return median(factor * one.makespan_ns for one, factor in taken)


def _step_ns(taken: Taken, device: int, step: int) -> float:
    return median(factor * one.devices[device][step].work_ns for one, factor in taken)


def _ends(planned: PlannedProgramme, cut: Taken, alone: Mapping[str, float], problem: Problem) -> tuple[float, float]:
    """A constant and a time per byte for one end of a transfer, beyond what the problem knows already."""
    from scipy.optimize import nnls

    programme = planned.programme
    exec_ns = {unit.name: dict(unit.exec_ns) for unit in problem.units}
    rows, extra = [], []
    for device, work in enumerate(programme.devices):
        kind = problem.cluster.devices[device].type
        for number, step in enumerate(work.steps):
            ends = [programme.crossings[one] for one in (*step.receives, *step.sends)]
            if len(step.units) == 1 and ends:
                unit = step.units[0]
                known_ns = planned.run_ns[device, number] - exec_ns[unit][kind]
                rows.append([len(ends), sum(one.size_bytes for one in ends)])
                extra.append(_step_ns(cut, device, number) - alone[unit] - known_ns)
    if not rows:
        return 0.0, 0.0
    # Beyond the median error a step was interrupted; columns of one size, so that neither is preferred.
    matrix, found = np.array(rows, dtype=float), np.array(extra)
    size = np.maximum(matrix.max(axis=0), 1.0)
    weight = np.ones(len(found))
    solution = np.zeros(2)
    for _ in range(5):
        solution = nnls(matrix / size * weight[:, None], found * weight)[0]
        off = np.abs(found - matrix / size @ solution)
        weight = np.sqrt(np.minimum(1.0, 1.5 * max(float(np.median(off)), 1.0) / np.maximum(off, 1e-9)))
    constant, per_byte = (solution / size).tolist()
    return constant, per_byte


def _transfer_ratio(planned: PlannedProgramme, cut: Taken) -> float:
    """The measured time of all transfers over that which the link says."""
    times = [(transfer_times(one), factor) for one, factor in cut]
    measured = sum(median(factor * taken[number] for taken, factor in times) for number in times[0][0])
    predicted = sum(planned.transfer_ns[number] for number in times[0][0])
    return float(min(max(measured / predicted, 1 / _MOST_RATIO), _MOST_RATIO)) if predicted > 0 else 1.0
