"""The table of ranks: score, interval, what was solved, and how long planning took."""

from collections.abc import Mapping
from statistics import median

from opmark.leaderboards.site.board import Board, Entry
from opmark.pages.interval import interval
from opmark.pages.template import render


def ranking(board: Board, *, links: Mapping[str, str] | None = None) -> str:
    """The board's ranking as a table; `links` leads from an entry's name to its page."""
    rows = [
        (entry, (links or {}).get(entry.name, ""), interval(entry.score, entry.low, entry.high), _planning_s(entry))
        for entry in board.entries
    ]
    figures = board.entries[0].figures if board.entries else ()
    return render("leaderboards/site/ranking.html.jinja", rows=rows, figures=figures, total=len(board.instances))


def _planning_s(entry: Entry) -> float | None:
    spent = [outcome.planning_s for outcome in entry.outcomes if outcome.planning_s is not None]
    return median(spent) if spent else None
