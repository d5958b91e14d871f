"""Write the static site: every page of every track, each whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from opmark.core.errors import NothingSelectedError
from opmark.core.files import write_text
from opmark.leaderboards.site.board import Board
from opmark.leaderboards.site.page import PAGES
from opmark.leaderboards.site.predictor_card import PredictorCard
from opmark.leaderboards.site.showcase import Showcase


def publish(folder: Path, boards: Sequence[Board], predictors: Sequence[PredictorCard] = ()) -> tuple[Path, ...]:
    """Write the site of `boards` into `folder` and return the files, `index.html` first.

    All pages are made before the first is written. Raises `NothingSelectedError` without a board.
    """
    if not boards:
        raise NothingSelectedError("there is no board to publish", hint="run `opmark leaderboards score` first")
    shown = Showcase(boards=tuple(boards), predictors=tuple(predictors))
    documents = sorted(
        (document for page in PAGES for document in page(shown)),
        key=lambda document: (document.path.count("/"), document.path),
    )
    for document in documents:
        write_text(folder / document.path, document.html)
    return tuple(folder / document.path for document in documents)
