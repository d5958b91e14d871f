"""The board of a track: the ranking, performance profiles, and the cost of every entry on every instance."""

from collections.abc import Iterator, Mapping
from functools import partial
from statistics import median

from opmark.leaderboards.site.board import OURS, Board, BoardEntry, format_cost
from opmark.leaderboards.site.page import Document, Site, board_path, entry_path, instance_path
from opmark.pages.bars import interval
from opmark.pages.profile_curve import Profiled, profile_curve
from opmark.pages.records import Dated, record_picture
from opmark.pages.template import render


def standings(site: Site) -> Iterator[Document]:
    """`<track>/index.html` of every track."""
    for board in site.boards:
        yield Document(path=board_path(board), make=partial(_html, site, board), source=site.source_of(board))


def _html(site: Site, board: Board) -> str:
    links = {entry.name: _relative(board, entry_path(board, entry.name)) for entry in board.entries}
    return render(
        "leaderboards/site/pages/standings.html.jinja",
        title=board.title,
        up="../",
        scripts=("sort",),
        board=board,
        ranking=ranking(board, links=links),
        progress=_progress(board),
        fidelity=[one for one in site.fidelity if one.track == board.name],
        profile=profile_curve([_profiled(board, entry) for entry in board.entries]),
        columns=list(links.items()),
        matrix=[
            (
                instance,
                _relative(board, instance_path(board, instance.name)),
                format_cost(instance.bound, instance.unit),
                [_cell(entry, instance.name, instance.unit) for entry in board.entries],
            )
            for instance in board.instances
        ],
    )


def ranking(board: Board, *, links: Mapping[str, str] | None = None) -> str:
    """The board's ranking as a table; `links` maps the names of entries to their pages."""
    rows = [
        (entry, (links or {}).get(entry.name, ""), interval(entry.score, entry.low, entry.high), _planning_s(entry))
        for entry in board.entries
    ]
    figures = board.entries[0].figures if board.entries else ()
    known = {one.name for entry in board.entries for one in entry.figures if one.value is not None}
    return render(
        "leaderboards/site/pages/ranking.html.jinja",
        rows=rows,
        figures=[one for one in figures if one.name in known],
        known=known,
        total=len(board.instances),
    )


def _progress(board: Board) -> str:
    """The scores of published algorithms over their years; OpMark's own one stands a year after the last."""
    dated = [
        Dated(label=entry.name, year=entry.paper.year, score=entry.score)
        for entry in board.entries
        if entry.paper and entry.paper.year
    ]
    own = next((entry for entry in board.entries if entry.origin == OURS), None)
    last = max([one.year for one in dated], default=0)
    today = None if own is None else Dated(label=own.name, year=last + 1, score=own.score)
    picture = record_picture(dated, title=f"{board.title}: scores by year of publication", today=today)
    return render("leaderboards/site/pages/progress.html.jinja", picture=picture)


def _planning_s(entry: BoardEntry) -> float | None:
    spent = [outcome.planning_s for outcome in entry.outcomes if outcome.planning_s is not None]
    return median(spent) if spent else None


def _profiled(board: Board, entry: BoardEntry) -> Profiled:
    scored = [instance for instance in board.instances if instance.scored and instance.best_known]
    outcomes = [(entry.outcome(instance.name), instance.best_known) for instance in scored]
    return Profiled(
        label=entry.name,
        ratios=tuple(
            None if outcome is None or outcome.cost is None or not best else outcome.cost / best
            for outcome, best in outcomes
        ),
    )


def _relative(board: Board, path: str) -> str:
    return path.removeprefix(board_path(board).removesuffix("index.html"))


def _cell(entry: BoardEntry, instance: str, unit: str) -> tuple[str, float | None, float | None, str]:
    """The text, sort key, quality (for the shade) and tooltip of a cell."""
    outcome = entry.outcome(instance)
    if outcome is None:
        return "", None, None, f"{entry.name} was not tried on {instance}"
    if outcome.cost is None:
        return "invalid", None, None, outcome.reason
    quality = "" if outcome.quality is None else f", quality {outcome.quality:.3f}"
    return format_cost(outcome.cost, unit), outcome.cost, outcome.quality, f"{entry.name} on {instance}{quality}"


PAGE = standings
