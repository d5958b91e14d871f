"""The parts of a difference add up to it, and each finds what was put into it."""

from dataclasses import replace

import pytest

from opmark.bench.execution.crew import Execution, StepTimes
from opmark.bench.execution.programme import CrossingTable, DeviceStep, DeviceWork, Programme
from opmark.core.errors import PlacementError
from opmark.studies.execution.difference import explained_difference, replayed_ns, transfer_times
from opmark.studies.execution.planning import PlannedProgramme, step_order

# Device 0 runs 100, sends, runs 50; device 1 receives, runs 80 and sends back; device 0 receives.
RUN_NS = {(0, 0): 100, (0, 1): 50, (1, 0): 80, (0, 2): 0}
TRANSFER_NS = (10, 10)


def programme() -> Programme:
    table = CrossingTable()
    there = table.number(tensor="t", received_as="t", source=0, destination=1, size_bytes=8)
    back = table.number(tensor="u", received_as="u", source=1, destination=0, size_bytes=8)
    host = (DeviceStep(units=("a",), sends=(there,)), DeviceStep(units=("b",)), DeviceStep(receives=(back,)))
    other = (DeviceStep(units=("c",), receives=(there,), sends=(back,)),)
    return Programme(devices=(DeviceWork(steps=host), DeviceWork(steps=other)), crossings=table.all())


PLANNED = PlannedProgramme(programme=programme(), run_ns=RUN_NS, transfer_ns=TRANSFER_NS)


def times(first: int, second: int, remote: int, copy: int, late: int = 0) -> Execution:
    """An execution in which the kernels and copies take that long, and the last receipt is `late`."""
    sent = first
    done = sent + copy + remote
    host = (
        StepTimes(received=(), run=(0, first), sent=((0, sent),)),
        StepTimes(received=(), run=(sent, sent + second), sent=()),
        StepTimes(
            received=((1, sent + second, done, done + copy + late),),
            run=(done + copy + late, done + copy + late),
            sent=(),
        ),
    )
    other = (StepTimes(received=((0, 0, sent, sent + copy),), run=(sent + copy, done), sent=((1, done),)),)
    return Execution(start_ns=0, devices=(host, other))


def explained(execution: Execution, alone: Execution) -> tuple[int, int, int, int]:
    steps = {(device, n): step for device, row in enumerate(alone.devices) for n, step in enumerate(row)}
    found = explained_difference(
        PLANNED,
        predicted_ns=200,
        measured_ns=execution.makespan_ns,
        executions=[execution],
        alone=[steps],
    )
    return found.kernels_ns, found.slowdown_ns, found.transfers_ns, found.waiting_ns


def test_a_perfect_execution_has_no_difference() -> None:
    assert replayed_ns(PLANNED.programme, RUN_NS, dict(enumerate(TRANSFER_NS))) == 200
    assert explained(times(100, 50, 80, 10), times(100, 50, 80, 10)) == (0, 0, 0, 0)


def test_each_part_finds_its_cause() -> None:
    assert explained(times(120, 50, 80, 10), times(120, 50, 80, 10)) == (20, 0, 0, 0)
    assert explained(times(100, 50, 95, 10), times(100, 50, 80, 10)) == (0, 15, 0, 0)
    assert explained(times(100, 50, 80, 13), times(100, 50, 80, 13)) == (0, 0, 6, 0)


def test_handing_over_belongs_to_the_kernels() -> None:
    found = times(100, 50, 80, 10)
    late = replace(found.devices[1][0], run=(110, 175))
    assert (late.work_ns, late.end_ns) == (80, 190)
    slow = replace(found, devices=(found.devices[0], (late,)))
    assert explained(slow, slow) == (0, 0, 0, 0)


def test_parts_are_told_at_the_label_state() -> None:
    steps = {(0, 0): 200, (0, 1): 100, (1, 0): 160, (0, 2): 0}
    slow = times(200, 100, 160, 20)
    alone = {(device, n): step for device, row in enumerate(slow.devices) for n, step in enumerate(row)}
    assert set(alone) == set(steps)
    found = explained_difference(
        PLANNED, predicted_ns=200, measured_ns=slow.makespan_ns // 2, executions=[slow], alone=[alone], told=0.5
    )
    assert (found.kernels_ns, found.slowdown_ns, found.transfers_ns, found.waiting_ns) == (0, 0, 0, 0)


def test_the_parts_add_up() -> None:
    execution = times(130, 70, 85, 25)
    assert sum(explained(execution, times(110, 60, 75, 25))) == execution.makespan_ns - 200


def test_a_slow_signal_belongs_to_its_transfer() -> None:
    assert transfer_times(times(100, 50, 80, 10, late=0)) == {0: 10, 1: 10}
    waking = times(100, 50, 80, 10)
    (step,) = waking.devices[1]
    late = replace(step, received=((0, 0, 107, 117),))
    assert transfer_times(replace(waking, devices=(waking.devices[0], (late,))))[0] == 17


def test_steps_come_after_the_steps_they_wait_for() -> None:
    order = list(step_order(PLANNED.programme))
    assert order.index((0, 0)) < order.index((1, 0)) < order.index((0, 2))
    assert sorted(order) == sorted(RUN_NS)


def test_devices_that_wait_for_one_another_are_refused() -> None:
    table = CrossingTable()
    there = table.number(tensor="t", received_as="t", source=0, destination=1, size_bytes=8)
    back = table.number(tensor="u", received_as="u", source=1, destination=0, size_bytes=8)
    devices = (
        DeviceWork(steps=(DeviceStep(receives=(back,), sends=(there,)),)),
        DeviceWork(steps=(DeviceStep(receives=(there,), sends=(back,)),)),
    )
    with pytest.raises(PlacementError, match="deadlock"):
        list(step_order(Programme(devices=devices, crossings=table.all())))
