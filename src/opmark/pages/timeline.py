"""What ran when, as stored for the site, and its picture."""

from dataclasses import dataclass

from opmark.pages.gantt import Bar, gantt
from opmark.pages.overlay import Arrow, MemoryCurve


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What a solution does over time; `lanes` (devices, then links) from the top, `memory` per device where known."""

    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    arrows: tuple[Arrow, ...] = ()
    memory: tuple[MemoryCurve, ...] = ()


def timeline_picture(timeline: Timeline | None, title: str) -> str:
    """The Gantt chart of a timeline, nothing where none is stored."""
    if timeline is None:
        return ""
    return gantt(timeline.bars, lanes=timeline.lanes, title=title, arrows=timeline.arrows, memory=timeline.memory)
