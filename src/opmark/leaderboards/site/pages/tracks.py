"""The start page: every track with its leaders."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

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
        devices=_devices(site),
    )


def _devices(site: Site) -> list[dict[str, Any]]:
    """A row per device type: the sources of its costs, the number of instances that use it, and its predictors.

    Of predictors, the newest of each target are named, and the earlier ones counted.
    """
    used = site.devices_by_name()
    counts = Counter(card.device for card in site.predictors)
    return [
        {
            "name": name,
            "path": device_path(name),
            "words": words,
            "instances": len({(board.name, instance.name) for board, instance, _ in used.get(name, [])}),
            "predictors": [(card, predictor_path(card.name)) for card in newest],
            "earlier": counts[name] - len(newest),
        }
        for name, words in sorted(site.provenance().items(), key=lambda pair: pair[0].lower())
        for newest in [site.newest_predictors(name)]
    ]


PAGE = tracks
