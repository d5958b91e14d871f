"""The page of `opmark configurations -o`: samples per second against latency, the best ones, and all in a table."""

from dataclasses import dataclass

from opmark.core.units import format_count, format_ns
from opmark.pages.axis import log_fraction, log_ticks
from opmark.pages.template import render
from opmark.studies.configurations.sweep import Configuration, Sweep, is_batch

COLOURS = 8
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 16, 46
# Room beyond the outermost points, as a factor.
MARGIN = 1.35
# The lines in one colour differ in their dashes.
DASHES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLine:
    """The configurations that differ in the batch alone, in picture coordinates."""

    label: str
    style: str
    dash: int
    points: tuple[tuple[float, float, float, float, Configuration], ...]


def configurations_page(found: Sweep) -> str:
    """A self-contained HTML page."""
    return render(
        "studies/templates/configurations.html.jinja",
        title=f"Configurations of {found.model}",
        found=found,
        best=[(goal, one, found.rivals(goal)) for goal, one in found.best.items()],
        picture=sweep_picture(found),
        dimensions=list(dict.fromkeys(name for one in found.configurations for name in one.sizes)),
        front=found.front,
    )


def sweep_picture(found: Sweep) -> str:
    """Samples per second against latency, on logarithmic axes; one line per target, type and other sizes."""
    latencies = [value for one in found.configurations for value in (one.low_ns, one.high_ns)]
    rates = [one.samples_per_second for one in found.configurations]
    limits = () if found.limit_ns is None else (found.limit_ns,)
    low_x, high_x = min(*latencies, *limits) / MARGIN, max(*latencies, *limits) * MARGIN
    low_y, high_y = min(rates) / MARGIN, max(rates) * MARGIN

    def across(latency_ns: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log_fraction(latency_ns, low_x, high_x)

    def down(rate: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log_fraction(rate, low_y, high_y)

    groups: dict[str, list[Configuration]] = {}
    for one in found.configurations:
        groups.setdefault(line_name(one), []).append(one)
    lines = [
        SweepLine(
            label=label,
            style=f"c{number % COLOURS}",
            dash=number // COLOURS % DASHES,
            points=tuple(
                (across(one.latency_ns), down(one.samples_per_second), across(one.low_ns), across(one.high_ns), one)
                for one in sorted(group, key=lambda one: one.batch)
            ),
        )
        for number, (label, group) in enumerate(groups.items())
    ]
    return render(
        "studies/templates/configurations.svg.jinja",
        lines=lines,
        best=[(across(one.latency_ns), down(one.samples_per_second)) for one in found.best.values() if one is not None],
        limit=None if found.limit_ns is None else across(found.limit_ns),
        across_ticks=[(across(tick.value), tick.label) for tick in log_ticks(low_x, high_x, format_ns)],
        down_ticks=[(down(tick.value), tick.label) for tick in log_ticks(low_y, high_y, format_count)],
        frame={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        size=(WIDTH, HEIGHT),
        title=f"{found.model}: samples per second against latency",
    )


def line_name(one: Configuration) -> str:
    """Target, type, and the sizes other than the batch."""
    others = [f"{name}={size}" for name, size in one.sizes.items() if not is_batch(name)]
    return ", ".join((one.target, one.type, *others))
