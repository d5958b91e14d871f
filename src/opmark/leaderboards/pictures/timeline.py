"""What ran when, as stored for the site, and its picture."""

from dataclasses import dataclass

from opmark.leaderboards.pictures.gantt import Bar, gantt


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What a solution does over time; `lanes` (devices, then links) from the top."""

    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]


def timeline_picture(timeline: Timeline | None, title: str) -> str:
    """The Gantt chart of a timeline, nothing where none is stored."""
    return gantt(timeline.bars, lanes=timeline.lanes, title=title) if timeline else ""
