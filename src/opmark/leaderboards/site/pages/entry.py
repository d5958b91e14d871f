"""The page of an entry: its cost, gap and schedule on every instance."""

from collections.abc import Iterator
from functools import partial

from opmark.leaderboards.site.board import Board, BoardEntry, Instance, Outcome, format_cost, gap
from opmark.leaderboards.site.page import Document, Site, anchor, board_path, entry_path, instance_path, schedules_path
from opmark.pages.template import render


def entry_page(site: Site) -> Iterator[Document]:
    """`<track>/entries/<entry>.html`."""
    for board in site.boards:
        source = site.source_of(board)
        for entry in board.entries:
            yield Document(
                path=entry_path(board, entry.name), make=partial(_html, board, entry), source=[source, entry.name]
            )


def _html(board: Board, entry: BoardEntry) -> str:
    pairs = [(outcome, board.instance(outcome.instance)) for outcome in entry.outcomes]
    return render(
        "leaderboards/site/pages/entry.html.jinja",
        title=entry.name,
        up="../../",
        scripts=("sort", "zoom", "draw"),
        board=board,
        entry=entry,
        home="../" + board_path(board).rpartition("/")[2],
        rows=[_row(board, outcome, instance) for outcome, instance in pairs],
        pictures=[
            {
                "instance": instance.name,
                "anchor": anchor(instance.name),
                "cost": format_cost(outcome.cost, instance.unit),
                "script": _relative(schedules_path(board, instance.name)) if outcome.timeline else "",
                "page": _relative(instance_path(board, instance.name)),
            }
            for outcome, instance in pairs
        ],
    )


def _row(board: Board, outcome: Outcome, instance: Instance) -> dict[str, object]:
    return {
        "instance": instance,
        "link": _relative(instance_path(board, instance.name)),
        "outcome": outcome,
        "cost": format_cost(outcome.cost, instance.unit),
        "bound": format_cost(instance.bound, instance.unit),
        "best": format_cost(instance.best_known, instance.unit),
        "gap": gap(outcome, instance),
        "median": format_cost(outcome.median, instance.unit),
        "p95": format_cost(outcome.p95, instance.unit),
    }


def _relative(path: str) -> str:
    return "../" + path.split("/", 1)[1]


PAGE = entry_page
