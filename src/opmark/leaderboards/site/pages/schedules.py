"""The schedules of all entries on one instance, as a script that the pages of the entries load when one is opened."""

from collections.abc import Iterator
from functools import partial

from opmark.leaderboards.site.page import Document, Site, schedules_path
from opmark.pages.gantt_columns import schedule_script


def schedules(site: Site) -> Iterator[Document]:
    """`<track>/schedules/<instance>.js`."""
    for board in site.boards:
        for instance in board.instances:
            timelines = {
                entry.name: outcome.timeline
                for entry in board.entries
                if (outcome := entry.outcome(instance.name)) is not None and outcome.timeline is not None
            }
            if timelines:
                yield Document(
                    path=schedules_path(board, instance.name),
                    make=partial(schedule_script, timelines, instance.name),
                    source=[instance.name, {entry: timeline.identity for entry, timeline in timelines.items()}],
                )


PAGE = schedules
