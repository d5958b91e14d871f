"""The page of a recommendation: the front of price against time, the answers, and the recommended schedule."""

from dataclasses import dataclass

from opmark.core.units import format_ns
from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.recommendation import ROLES, Recommendation
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.simulate import simulate
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.axis import log_fraction, log_ticks
from opmark.pages.gantt import timeline_picture
from opmark.pages.template import render

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 72, 16, 14, 46
# Room beyond the outermost points, as a factor.
MARGIN = 1.4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """One answer in picture coordinates."""

    x: float
    y: float
    style: str
    name: str
    label: str
    front: bool


def provisioning_page(found: Recommendation) -> str:
    """The page as one HTML file."""
    best = found.recommended
    objective = "throughput" if found.goal.in_a_pipeline else "latency"
    problem = found.job.problem(best.fleet, objective=objective)
    schedule = simulate(problem, best.placement)
    evaluation = Evaluation(placement=best.placement, schedule=schedule, cost=schedule.cost_ns)
    return render(
        "leaderboards/provisioning/page.html.jinja",
        title=f"Devices for {found.job.model}",
        found=found,
        roles=[(role.replace("_", " "), answer) for role in ROLES if (answer := found.roles[role]) is not None],
        picture=_front_picture(found),
        schedule=timeline_picture(timeline_of(problem, evaluation), f"{found.job.model} on {best.fleet.title}"),
        money=lambda value: f"{value:,.4g}",
    )


def _front_picture(found: Recommendation) -> str:
    """Price per hour against time, on logarithmic axes; fleets of unequal types have a colour of their own."""
    answers = list(dict.fromkeys([*found.front, *(one for one in found.roles.values() if one is not None)]))
    times = [_time_ns(found, answer) for answer in answers]
    prices = [answer.price_per_hour for answer in answers]
    low_x, high_x = min(prices) / MARGIN, max(prices) * MARGIN
    low_y, high_y = min(times) / MARGIN, max(times) * MARGIN

    def across(price: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log_fraction(price, low_x, high_x)

    def down(time_ns: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log_fraction(time_ns, low_y, high_y)

    marks = [
        _Mark(
            x=across(answer.price_per_hour),
            y=down(time_ns),
            style=_style(found, answer),
            name=answer.fleet.title,
            label=f"{answer.fleet.title}: {format_ns(time_ns)}, {answer.price_per_hour:,.4g} per hour",
            front=answer in found.front,
        )
        for answer, time_ns in zip(answers, times, strict=True)
    ]
    return render(
        "leaderboards/provisioning/front.svg.jinja",
        marks=marks,
        steps=" ".join(f"{mark.x:.1f},{mark.y:.1f}" for mark in marks if mark.front),
        across=[(across(tick.value), tick.label) for tick in log_ticks(low_x, high_x, lambda value: f"{value:,.3g}")],
        down=[(down(tick.value), tick.label) for tick in log_ticks(low_y, high_y, format_ns)],
        width=WIDTH,
        height=HEIGHT,
        edges=(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM),
        currency=found.job.catalogue.currency,
        time="time per sample" if found.goal.in_a_pipeline else "latency",
    )


def _time_ns(found: Recommendation, answer: Answer) -> float:
    return 1e9 / answer.samples_per_second if found.goal.in_a_pipeline else answer.latency_ns


def _style(found: Recommendation, answer: Answer) -> str:
    if answer is found.recommended:
        return "recommended"
    return "equal" if answer.fleet.equal else "unequal"
