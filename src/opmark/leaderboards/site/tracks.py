"""The entrance: every track, and who leads it."""

from collections.abc import Iterator, Sequence

from opmark.leaderboards.board import Board
from opmark.leaderboards.page import Document, board_path
from opmark.leaderboards.pictures.template import render


def tracks(boards: Sequence[Board]) -> Iterator[Document]:
    """`index.html`."""
    rows = [(board, board_path(board), [entry for entry in board.entries if entry.rank == 1]) for board in boards]
    yield Document(path="index.html", html=render("site/tracks.html.jinja", title="Placement leaderboards", rows=rows))


PAGE = tracks
