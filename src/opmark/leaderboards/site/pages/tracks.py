"""The start page: every track with its leaders."""

from collections.abc import Iterator
from functools import partial

from opmark.leaderboards.site.page import Document, Site, board_path, device_path, predictor_path
from opmark.pages.template import render


def tracks(site: Site) -> Iterator[Document]:
    """`index.html`."""
    yield Document(path="index.html", make=partial(_html, site), source=site.source_of(*site.boards))


def _html(site: Site) -> str:
    rows = [(board, board_path(board), [entry for entry in board.entries if entry.rank == 1]) for board in site.boards]
    return render(
        "leaderboards/site/pages/tracks.html.jinja",
        title="Placement leaderboards",
        up="",
        scripts=("sort",),
        rows=rows,
        devices=[(name, device_path(name), words) for name, words in site.provenance().items()],
        predictors=[(card, predictor_path(card.name)) for card in site.predictors],
    )


PAGE = tracks
