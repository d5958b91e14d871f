"""The work of each rented device: its units, how busy they keep it, and the memory that it needs."""

from dataclasses import dataclass

from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.simulate import simulate
from opmark.leaderboards.simulator.steady_state import server_loads


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedDevice:
    """One rented device. `in_turn_with` are devices that hold the same units and take every other sample.

    `busy` is the share of the time of one pass, or of the time between two samples of a full pipeline.
    """

    device: str
    units: int
    busy: float
    peak_bytes: int
    memory_bytes: int
    in_turn_with: tuple[str, ...]


def work_of_devices(job: Job, answer: Answer, *, in_a_pipeline: bool) -> list[RentedDevice]:
    """The work of every device of an answer, in the order of its fleet."""
    problem = job.problem(answer.fleet, objective="throughput" if in_a_pipeline else "latency")
    schedule = simulate(problem, answer.placement)
    devices = problem.cluster.devices
    if in_a_pipeline:
        loads = server_loads(problem, answer.placement, profile_named(problem.profile))
        busy = [float(load / loads.bottleneck_ns) if loads.bottleneck_ns else 0.0 for load in loads.device_ns]
    else:
        evaluation = Evaluation(placement=answer.placement, schedule=schedule, cost=schedule.cost_ns)
        busy = [spent / max(1, schedule.latency_ns) for spent in evaluation.busy_ns(len(devices))]
    groups = {number: [number, *row] for number, row in answer.placement.replicas.items()}
    holder = {member: primary for primary, row in groups.items() for member in row}
    placed = answer.placement.device.tolist()
    return [
        RentedDevice(
            device=device.name,
            units=placed.count(holder.get(number, number)),
            busy=busy[number],
            peak_bytes=int(schedule.peak_bytes[number]),
            memory_bytes=device.memory_bytes,
            in_turn_with=tuple(
                devices[other].name for other in groups.get(holder.get(number, number), ()) if other != number
            ),
        )
        for number, device in enumerate(devices)
    ]
