"""The look and the scripts that all pages of the site share."""

from collections.abc import Iterator
from functools import partial

from opmark.leaderboards.site.page import Document, Site
from opmark.pages.template import asset

_FILES = ("style.css", "sort.js", "zoom.js", "draw.js")


def look(site: Site) -> Iterator[Document]:
    """`assets/style.css` and the scripts beside it; they follow from the code alone."""
    del site
    for name in _FILES:
        yield Document(path=f"assets/{name}", make=partial(asset, name), source=None)


PAGE = look
