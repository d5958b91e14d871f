"""An answer to a provisioning question: a fleet, the placement on it, and its figures."""

from dataclasses import dataclass, replace

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Placement, Solution
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
    rented, kept = without_idle(problem, fleet, solution)
    return answer_on(job, rented, problem if rented == fleet else job.problem(rented, objective=objective), kept)


def answer_on(job: Job, fleet: Fleet, problem: Problem, solution: Solution) -> Answer:
    """The answer of a placement that uses all devices of `problem`. Raises `PlacementError` where it is not valid."""
    found = evaluate(problem, solution)
    latency_ns = found.schedule.latency_ns
    period_ns = found.schedule.value if problem.objective == "throughput" else latency_ns
    return Answer(
        fleet=fleet,
        placement=found.placement,
        latency_ns=float(latency_ns),
        samples_per_second=samples_per_second(job.batch, float(period_ns)),
        price_per_hour=job.catalogue.price_per_hour(fleet),
    )


def without_idle(problem: Problem, fleet: Fleet, solution: Solution) -> tuple[Fleet, Solution]:
    """The fleet of the devices that a solution uses, and the same solution there; devices are numbered anew.

    Raises `PlacementError` where it uses no device, or one that the fleet lacks.
    """
    used = set(solution.device.values())
    for row in (solution.replicas or {}).values():
        used.update(row)
    devices = problem.cluster.devices
    if unknown := used.difference(device.name for device in devices):
        raise PlacementError(f"the placement uses {min(map(str, unknown))!r}, which is no device of {fleet.title}")
    if len(used) == fleet.size:
        return fleet, solution
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for device in devices:
        if device.name in used:
            names[device.name] = f"{device.type}-{counts.get(device.type, 0)}"
            counts[device.type] = counts.get(device.type, 0) + 1
    if not counts:
        raise PlacementError("the placement uses no device")
    replicas = solution.replicas and {
        names[device]: tuple(names[other] for other in row) for device, row in solution.replicas.items() if row
    }
    order = solution.order and {names[device]: row for device, row in solution.order.items() if device in names}
    placed = {unit: names[device] for unit, device in solution.device.items()}
    return Fleet.of(counts), replace(
        solution, device=placed, replicas=replicas or None, order=order or None, problem=""
    )
