"""An answer to a provisioning question: a fleet, the placement on it, and its figures."""

from dataclasses import dataclass, replace

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.goal import Figures, samples_per_second
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.simulator.evaluation import evaluate


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer(Figures):
    """A fleet with a placement that uses every device of it.

    `latency_ns` is that of one pass. `samples_per_second` counts passes that follow one another through the devices
    where the goal is a throughput, else one pass at a time.
    """

    fleet: Fleet
    placement: Placement


def answer_of(job: Job, fleet: Fleet, solution: Solution, *, objective: str) -> Answer:
    """The answer of a placement, on the devices that it uses: the others are not rented.

    Raises `PlacementError` where the placement is not valid.
    """
    problem = job.problem(fleet, objective=objective)
    used = set(placement_of(problem, solution).device.tolist())
    used |= {other for row in placement_of(problem, solution).replicas.values() for other in row}
    if len(used) < fleet.size:
        fleet, solution = _without_idle(problem, used, solution)
        problem = job.problem(fleet, objective=objective)
    found = evaluate(problem, solution)
    latency_ns = found.schedule.latency_ns
    period_ns = found.schedule.value if objective == "throughput" else latency_ns
    return Answer(
        fleet=fleet,
        placement=found.placement,
        latency_ns=float(latency_ns),
        samples_per_second=samples_per_second(job.batch, float(period_ns)),
        price_per_hour=job.catalogue.price_per_hour(fleet),
    )


def _without_idle(problem: Problem, used: set[int], solution: Solution) -> tuple[Fleet, Solution]:
    """The fleet of the used devices, and the same placement there; devices of a type are numbered anew."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for number, device in enumerate(problem.cluster.devices):
        if number in used:
            names[device.name] = f"{device.type}-{counts.get(device.type, 0)}"
            counts[device.type] = counts.get(device.type, 0) + 1
    if not counts:
        raise PlacementError("the placement uses no device")
    replicas = solution.replicas and {
        names[device]: tuple(names[other] for other in row) for device, row in solution.replicas.items() if row
    }
    devices = {unit: names[device] for unit, device in solution.device.items()}
    return Fleet.of(counts), replace(solution, device=devices, replicas=replicas or None, order=None, problem="")
