"""The entrance: every track, and who leads it."""

from collections.abc import Iterator

from opmark.leaderboards.site.page import Document, board_path, device_path, predictor_path
from opmark.leaderboards.site.showcase import Showcase
from opmark.pages.template import render


def tracks(shown: Showcase) -> Iterator[Document]:
    """`index.html`."""
    rows = [(board, board_path(board), [entry for entry in board.entries if entry.rank == 1]) for board in shown.boards]
    yield Document(
        path="index.html",
        html=render(
            "leaderboards/site/pages/tracks.html.jinja",
            title="Placement leaderboards",
            rows=rows,
            devices=[(name, device_path(name), words) for name, words in shown.provenance().items()],
            predictors=[(card, predictor_path(card.name)) for card in shown.predictors],
        ),
    )


PAGE = tracks
