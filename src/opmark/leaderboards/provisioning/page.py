"""The page of a recommendation: the answers, the front of price against time, and the recommended schedule."""

from dataclasses import replace

from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.device_work import work_of_devices
from opmark.leaderboards.provisioning.front_picture import front_picture
from opmark.leaderboards.provisioning.recommendation import ROLE_NAMES, Recommendation
from opmark.leaderboards.provisioning.verdict import sentences
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.simulate import simulate
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.gantt import timeline_picture
from opmark.pages.template import render


def provisioning_page(found: Recommendation) -> str:
    """The page as one HTML file."""
    best = found.recommended
    return render(
        "leaderboards/provisioning/page.html.jinja",
        title=f"Devices for {found.job.model}",
        found=found,
        told=sentences(found),
        roles=[(name, answer) for role, name in ROLE_NAMES.items() if (answer := found.roles[role]) is not None],
        by_type=sorted(found.by_type.values(), key=found.goal.rank),
        picture=front_picture(found),
        work=work_of_devices(found.job, best, in_a_pipeline=found.goal.in_a_pipeline),
        schedule=_schedule(found, best),
        money=lambda value: f"{value:,.4g}",
        meets=lambda answer: found.goal.shortfall(answer) <= 1.0,
    )


def _schedule(found: Recommendation, best: Answer) -> str:
    """The recommended schedule of one pass, without the devices that wait for other samples."""
    problem = found.job.problem(best.fleet, objective="throughput" if found.goal.in_a_pipeline else "latency")
    schedule = simulate(problem, best.placement)
    evaluation = Evaluation(placement=best.placement, schedule=schedule, cost=schedule.cost_ns)
    drawn = timeline_of(problem, evaluation)
    busy = {bar.lane for bar in drawn.bars}
    shown = replace(
        drawn,
        lanes=tuple(lane for lane in drawn.lanes if lane in busy),
        memory=tuple(curve for curve in drawn.memory if curve.lane in busy),
    )
    return timeline_picture(shown, f"{found.job.model} on {best.fleet.title}")
