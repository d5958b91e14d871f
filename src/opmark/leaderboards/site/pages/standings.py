"""A track's board: the ranking, and every entry on every instance."""

from collections.abc import Iterator

from opmark.leaderboards.site.board import Board, Entry, format_cost
from opmark.leaderboards.site.page import Document, board_path, entry_path, instance_path
from opmark.leaderboards.site.ranking import ranking
from opmark.leaderboards.site.showcase import Showcase
from opmark.pages.profile_curve import Profiled, profile_curve
from opmark.pages.template import render


def standings(shown: Showcase) -> Iterator[Document]:
    """`<track>/index.html` of every track."""
    for board in shown.boards:
        links = {entry.name: _relative(board, entry_path(board, entry.name)) for entry in board.entries}
        html = render(
            "leaderboards/site/pages/standings.html.jinja",
            title=board.title,
            board=board,
            ranking=ranking(board, links=links),
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
        yield Document(path=board_path(board), html=html)


def _profiled(board: Board, entry: Entry) -> Profiled:
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


def _cell(entry: Entry, instance: str, unit: str) -> tuple[str, float | None, float | None, str]:
    """Text, sort key, quality for the shade, tooltip."""
    outcome = entry.outcome(instance)
    if outcome is None:
        return "", None, None, f"{entry.name} was not tried on {instance}"
    if outcome.cost is None:
        return "invalid", None, None, outcome.reason
    quality = "" if outcome.quality is None else f", quality {outcome.quality:.3f}"
    return format_cost(outcome.cost, unit), outcome.cost, outcome.quality, f"{entry.name} on {instance}{quality}"


PAGE = standings
