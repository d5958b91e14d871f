"""The schedules of all entries on one instance, as a script that the pages of the entries load when one is opened."""

from collections.abc import Iterator

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
                path = schedules_path(board, instance.name)
                yield Document(path=path, html=schedule_script(timelines, instance.name))


PAGE = schedules
