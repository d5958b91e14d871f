"""One placement executed several times: the measured makespan beside the predicted one, and a trace of both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from statistics import median
from typing import Any

from opmark.bench.execution.crew import Execution
from opmark.core.errors import PlacementError
from opmark.core.measurements.labelling import Label, labels_of
from opmark.core.measurements.looks import STATES, Look
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.site.timeline import operator, timeline_of
from opmark.pages.gantt import TRANSFER, Bar, GanttTimeline, gantt
from opmark.pages.template import render
from opmark.studies.execution.difference import MakespanDifference, explained_difference
from opmark.studies.execution.label_state import MachineState, Readings, state_of
from opmark.studies.execution.planning import PlannedProgramme
from opmark.studies.execution.stage import EQUAL, ExecutionStage

_ALONE = 5
# Process numbers of the executed rows of a trace; the planned ones are 1 and 2.
_DEVICES, _LINKS = 3, 4


@dataclass(frozen=True, kw_only=True)
class ExecutionReport:
    """A placement executed `repeats` times; `typical` is the execution of median makespan.

    `measured_ns` is the robust mean of the makespans at the state of the labels, `standard_error` its error as a
    fraction, and `raw_ns` the median of `makespans_ns`, as the clock told them. `states` are those of the machine
    beside each execution. Where that state is unknown, nothing is converted.
    `repeat_spread` is the interquartile range of the makespans as a share of their median. `largest_difference` is that
    of an output from the undivided network's, relative to the output's largest element.
    """

    problem: Problem
    solution: Solution
    evaluation: Evaluation
    planned: PlannedProgramme
    typical: Execution
    predicted_ns: int
    measured_ns: int
    raw_ns: int
    standard_error: float
    makespans_ns: tuple[int, ...]
    states: tuple[MachineState, ...]
    repeat_spread: float
    largest_difference: float
    difference: MakespanDifference

    @property
    def outputs_equal(self) -> bool:
        """True if every output equals that of the undivided network."""
        return self.largest_difference <= EQUAL

    @property
    def error(self) -> float:
        """The error of the prediction as a share of the measured makespan."""
        return self.predicted_ns / self.measured_ns - 1

    def document(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        parts = self.difference
        return {
            "problem": self.problem.name,
            "placer": self.solution.placer,
            "predicted_ns": self.predicted_ns,
            "measured_ns": self.measured_ns,
            "error": self.error,
            "repeats": len(self.makespans_ns),
            "repeat_spread": self.repeat_spread,
            "raw_ns": self.raw_ns,
            "standard_error": self.standard_error,
            "state": dict(zip(STATES, (exp(median(column)) for column in zip(*self.states, strict=True)), strict=True)),
            "outputs_equal": self.outputs_equal,
            "largest_difference": self.largest_difference,
            "kernels_ns": parts.kernels_ns,
            "transfers_ns": parts.transfers_ns,
            "waiting_ns": parts.waiting_ns,
            "slowdown_ns": parts.slowdown_ns,
        }


def execute_solution(
    stage: ExecutionStage,
    solution: Solution,
    *,
    repeats: int = 30,
    told_at: Sequence[Readings] = (),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ExecutionReport:
    """Execute `solution` `repeats` times, in turns with the sentinels, and a few times with one device at a time.

    `told_at` are the readings of each device's sentinels at the state of the labels (`label_state`).
    Raises `PlacementError` for an invalid solution or one that divides or repeats units, `MeasurementError` if a
    process fails.
    """
    if solution.replicas or solution.splits or solution.recompute:
        raise PlacementError(
            "replicas, splits and recomputed units cannot be executed: a unit runs once, on one device"
        )
    evaluation = evaluate(stage.problem, solution)
    planned = stage.prepare(evaluation)
    total = repeats + min(repeats, _ALONE)
    executions, states = _executed(stage, repeats, told_at, lambda done: progress(done, total))
    difference = stage.difference()
    alone = []
    for done in range(min(repeats, _ALONE)):
        progress(repeats + done, total)
        alone.append(stage.run_alone())
    progress(total, total)
    makespans = [one.makespan_ns for one in executions]
    label = told_makespan(makespans, states)
    measured_ns, raw_ns, predicted_ns = (
        round(label.latency_ns),
        round(median(makespans)),
        evaluation.schedule.latency_ns,
    )
    return ExecutionReport(
        problem=stage.problem,
        solution=solution,
        evaluation=evaluation,
        planned=planned,
        typical=min(executions, key=lambda one: abs(one.makespan_ns - raw_ns)),
        predicted_ns=predicted_ns,
        measured_ns=measured_ns,
        raw_ns=raw_ns,
        standard_error=label.standard_error,
        makespans_ns=tuple(makespans),
        states=tuple(states),
        repeat_spread=spread_of(makespans),
        largest_difference=difference,
        difference=explained_difference(
            planned,
            predicted_ns=predicted_ns,
            measured_ns=measured_ns,
            executions=executions,
            alone=alone,
            told=measured_ns / raw_ns,
        ),
    )


def _executed(
    stage: ExecutionStage, repeats: int, told_at: Sequence[Readings], show: Callable[[int], None]
) -> tuple[list[Execution], list[MachineState]]:
    """The executions, and the state of the machine beside each."""
    executions: list[Execution] = []
    states: list[MachineState] = []
    readings = stage.sense()
    for done in range(repeats):
        show(done)
        execution, before, readings = stage.run_turn(readings)
        executions.append(execution)
        states.append(state_of(before, readings, told_at, execution.busy_ns))
    return executions, states


def told_makespan(makespans_ns: Sequence[int], states: Sequence[MachineState]) -> Label:
    """The makespan at the state of the labels from one visit, whose error takes other processes into account."""
    return labels_of({"": [Look(process=0, ns=makespans_ns, state=states)]}, calm=False)[""]


def spread_of(values: list[int]) -> float:
    """The interquartile range as a share of the median; 0 for a single value."""
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4 if len(ordered) > 1 else 0]
    return (high - low) / median(ordered)


def executed_timeline(report: ExecutionReport) -> GanttTimeline:
    """The typical execution: one bar per step and one per transfer, from its signal to the end of its copy."""
    devices = [device.name for device in report.problem.cluster.devices]
    kinds = {unit.name: unit.kind or operator(unit.name) for unit in report.problem.units}
    programme, start = report.planned.programme, report.typical.start_ns
    bars, links = [], []
    sent = {number: at for steps in report.typical.devices for step in steps for number, at in step.sent}
    for device, steps in enumerate(report.typical.devices):
        for number, step in enumerate(steps):
            units = programme.devices[device].steps[number].units
            if units:
                label = units[0] if len(units) == 1 else f"{units[0]} … {units[-1]}"
                span = step.run[0] - start, step.run[1] - start
                bars.append(
                    Bar(lane=devices[device], start_ns=span[0], end_ns=span[1], label=label, kind=kinds[units[0]])
                )
            for crossing, _, _, copied in step.received:
                one = programme.crossings[crossing]
                lane = f"{devices[one.source]} → {devices[device]}"
                links.append(
                    Bar(
                        lane=lane,
                        start_ns=max(0, sent[crossing] - start),
                        end_ns=copied - start,
                        label=one.tensor,
                        kind=TRANSFER,
                    )
                )
    lanes = (*devices, *dict.fromkeys(bar.lane for bar in links))
    return GanttTimeline(lanes=lanes, bars=(*bars, *links))


def execution_trace(report: ExecutionReport) -> dict[str, Any]:
    """The planned and the executed schedule as one Chrome trace, in rows of their own."""
    trace = chrome_trace(report.problem, report.evaluation)
    timeline = executed_timeline(report)
    devices = {device.name for device in report.problem.cluster.devices}
    rows = {lane: (_DEVICES if lane in devices else _LINKS, number) for number, lane in enumerate(timeline.lanes)}
    events = trace["traceEvents"]
    for process, name in ((_DEVICES, "executed devices"), (_LINKS, "executed transfers")):
        events.append({"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}})
    for lane, (process, row) in rows.items():
        events.append({"ph": "M", "pid": process, "tid": row, "name": "thread_name", "args": {"name": lane}})
    for bar in timeline.bars:
        process, row = rows[bar.lane]
        span = {"ts": bar.start_ns / 1000, "dur": (bar.end_ns - bar.start_ns) / 1000}
        exact = {"start_ns": bar.start_ns, "end_ns": bar.end_ns}
        events.append({"ph": "X", "pid": process, "tid": row, "name": bar.label, **span, "args": exact})
    trace["otherData"] |= {"measured_ns": report.measured_ns, "repeats": len(report.makespans_ns)}
    return trace


def execution_page(report: ExecutionReport) -> str:
    """The planned and the executed schedule over one time axis, and the parts of the difference, as one HTML file."""
    planned, executed = timeline_of(report.problem, report.evaluation), executed_timeline(report)
    end_ns = max(bar.end_ns for bar in (*planned.bars, *executed.bars))
    parts = report.difference
    return render(
        "studies/templates/execution.html.jinja",
        title=f"{report.problem.name}, executed",
        report=report,
        parts=[
            ("kernels alone", parts.kernels_ns),
            ("slowdown by the neighbour", parts.slowdown_ns),
            ("transfers", parts.transfers_ns),
            ("waiting and all the rest", parts.waiting_ns),
        ],
        planned=gantt(planned.bars, lanes=planned.lanes, end_ns=end_ns, title="The planned schedule"),
        executed=gantt(executed.bars, lanes=executed.lanes, end_ns=end_ns, title="The execution of median makespan"),
    )
