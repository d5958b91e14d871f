"""The difference between a predicted and a measured makespan, in parts that add up to it.

Each part is found by replaying the steps of all devices with predicted times, of which one group after another is
replaced by measured ones.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from opmark.bench.execution.crew import Execution, StepTimes
from opmark.bench.execution.programme import Programme
from opmark.studies.execution.planning import PlannedProgramme, step_order

StepNs = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MakespanDifference:
    """The parts of measured minus predicted makespan, in ns; each may be negative.

    `kernels_ns`: kernels, with handing over what they made, that take longer alone than predicted. `slowdown_ns`: the
    same, while the other devices work. `transfers_ns`: arriving signals and copies. `waiting_ns`: all the rest, such as
    devices that wait for one another where the simulator lets transfers overlap with kernels.
    """

    kernels_ns: int
    transfers_ns: int
    waiting_ns: int
    slowdown_ns: int


def explained_difference(
    planned: PlannedProgramme,
    *,
    predicted_ns: int,
    measured_ns: int,
    executions: Sequence[Execution],
    alone: Sequence[Mapping[tuple[int, int], StepTimes]],
    told: float = 1.0,
) -> MakespanDifference:
    """The parts of the difference; all times are medians over the executions, times `told`.

    `told` is the measured makespan at the state of the labels over that of the clock.
    """
    programme = planned.programme
    steps = [(device, number) for device, work in enumerate(programme.devices) for number in range(len(work.steps))]
    solo = {key: told * median([times[key].work_ns for times in alone]) for key in steps}
    together = {
        (device, number): told * median([one.devices[device][number].work_ns for one in executions])
        for device, number in steps
    }
    guess = dict(enumerate(planned.transfer_ns))
    as_planned = replayed_ns(programme, planned.run_ns, guess)
    real_kernels = replayed_ns(programme, solo, guess)
    real_neighbours = replayed_ns(programme, together, guess)
    real_transfers = replayed_ns(programme, together, _transfer_medians(executions, told))
    kernels = round(real_kernels - as_planned)
    slowdown = round(real_neighbours - real_kernels)
    transfers = round(real_transfers - real_neighbours)
    return MakespanDifference(
        kernels_ns=kernels,
        transfers_ns=transfers,
        waiting_ns=measured_ns - predicted_ns - kernels - slowdown - transfers,
        slowdown_ns=slowdown,
    )


def replayed_ns(programme: Programme, run_ns: StepNs, transfer_ns: Mapping[int, float]) -> float:
    """The makespan if each step and transfer takes that long, and a device receives one tensor at a time."""
    clock = [0.0] * len(programme.devices)
    sent: dict[int, float] = {}
    for device, number in step_order(programme):
        step = programme.devices[device].steps[number]
        now = clock[device]
        for crossing in step.receives:
            now = max(now, sent[crossing]) + transfer_ns.get(crossing, 0.0)
        now += run_ns.get((device, number), 0.0)
        sent.update(dict.fromkeys(step.sends, now))
        clock[device] = now
    return max(clock, default=0.0)


def transfer_times(execution: Execution) -> dict[int, int]:
    """The time of every crossing: the signal's way, if it was waited for, and the copy."""
    sent = {number: at for steps in execution.devices for step in steps for number, at in step.sent}
    return {
        number: (copied - came) + max(0, came - max(waiting, sent[number]))
        for steps in execution.devices
        for step in steps
        for number, waiting, came, copied in step.received
    }


def _transfer_medians(executions: Sequence[Execution], told: float) -> dict[int, float]:
    copies: dict[int, list[int]] = defaultdict(list)
    for execution in executions:
        for number, taken in transfer_times(execution).items():
            copies[number].append(taken)
    return {key: told * median(all_) for key, all_ in copies.items()}
