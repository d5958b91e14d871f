"""The picture of a recommendation's front: price per hour against time, as steps, with the answers beside it."""

from dataclasses import dataclass

from opmark.core.units import format_ns
from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.recommendation import Recommendation
from opmark.pages.axis import log_fraction, log_ticks
from opmark.pages.template import render

WIDTH, HEIGHT = 480, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 14, 14, 44
# Room beyond the outermost points, as a factor.
MARGIN = 1.4
RADIUS, RECOMMENDED_RADIUS = 4.5, 6.5
# The size of a label: per letter across, and up and down, in units of the picture.
LETTER, LINE = 6.4, 13.0
# The colours of the style sheet, by what an answer is.
STYLES = {"recommended": "c1", "unequal types": "c0", "equal types": "c8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle of the picture that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """True where two rectangles overlap."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMark:
    """One answer in picture coordinates; `text` is where its name stands, None where there is no room for it."""

    x: float
    y: float
    radius: float
    style: str
    name: str
    tooltip: str
    text: tuple[float, float, str] | None


def front_picture(found: Recommendation) -> str:
    """Price per hour against time, both logarithmic; the dashed steps are the least time that a price buys."""
    answers = list(dict.fromkeys([*found.front, *(one for one in found.roles.values() if one is not None)]))
    times = [_time_ns(found, answer) for answer in answers]
    prices = [answer.price_per_hour for answer in answers]
    low_x, high_x = min(prices) / MARGIN, max(prices) * MARGIN
    low_y, high_y = min(times) / MARGIN, max(times) * MARGIN

    def across(price: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log_fraction(price, low_x, high_x)

    def down(time_ns: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log_fraction(time_ns, low_y, high_y)

    places = {answer: (across(answer.price_per_hour), down(_time_ns(found, answer))) for answer in answers}
    return render(
        "leaderboards/provisioning/front.svg.jinja",
        marks=_marks(found, places),
        steps=_steps([places[answer] for answer in found.front]),
        across=[(across(tick.value), tick.label) for tick in log_ticks(low_x, high_x, lambda value: f"{value:,.3g}")],
        down=[(down(tick.value), tick.label) for tick in log_ticks(low_y, high_y, format_ns)],
        width=WIDTH,
        height=HEIGHT,
        edges=(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM),
        currency=found.job.catalogue.currency,
        time="time per sample" if found.goal.in_a_pipeline else "latency",
        legend=[(style, name) for name, style in STYLES.items()],
    )


def _marks(found: Recommendation, places: dict[Answer, tuple[float, float]]) -> list[FrontMark]:
    """All answers; the recommended one gets its label first, then the front."""
    taken = [_around(x, y, RECOMMENDED_RADIUS) for x, y in places.values()]
    marks = []
    for answer in sorted(places, key=lambda one: (one is not found.recommended, one not in found.front)):
        x, y = places[answer]
        name = answer.fleet.title
        text: tuple[float, float, str] | None = None
        for left, baseline, anchor in _label_places(x, y, LETTER * len(name)):
            box = Box(left=left, top=baseline - LINE + 3, right=left + LETTER * len(name), bottom=baseline + 3)
            inside = box.left >= LEFT and box.right <= WIDTH and box.top >= 0 and box.bottom <= HEIGHT - BOTTOM
            if inside and not any(box.meets(other) for other in taken):
                taken.append(box)
                text = {"start": left, "middle": x, "end": box.right}[anchor], baseline, anchor
                break
        marks.append(
            FrontMark(
                x=x,
                y=y,
                radius=RECOMMENDED_RADIUS if answer is found.recommended else RADIUS,
                style=_style(found, answer),
                name=name,
                tooltip=f"{name}: {format_ns(_time_ns(found, answer))}, {answer.price_per_hour:,.4g} per hour",
                text=text,
            )
        )
    return marks


def _label_places(x: float, y: float, width: float) -> list[tuple[float, float, str]]:
    """Left edge, baseline and anchor of a label: above, right, below or left of a point, then at its corners."""
    return [
        (x - width / 2, y - 10, "middle"),
        (x + 10, y + 4, "start"),
        (x - width / 2, y + 19, "middle"),
        (x - 10 - width, y + 4, "end"),
        (x - 6 - width, y + 17, "end"),
        (x + 6, y - 9, "start"),
        (x + 6, y + 17, "start"),
        (x - 6 - width, y - 9, "end"),
    ]


def _around(x: float, y: float, radius: float) -> Box:
    return Box(left=x - radius, top=y - radius, right=x + radius, bottom=y + radius)


def _steps(points: list[tuple[float, float]]) -> str:
    """The corners of the front: a time holds until the price of the next faster answer, and the last one for ever."""
    corners: list[tuple[float, float]] = []
    for x, y in points:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    corners.append((float(WIDTH - RIGHT), corners[-1][1]))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


def _time_ns(found: Recommendation, answer: Answer) -> float:
    return 1e9 / answer.samples_per_second if found.goal.in_a_pipeline else answer.latency_ns


def _style(found: Recommendation, answer: Answer) -> str:
    if answer is found.recommended:
        return STYLES["recommended"]
    return STYLES["equal types" if answer.fleet.equal else "unequal types"]
