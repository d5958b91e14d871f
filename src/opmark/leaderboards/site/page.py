"""What a page of the site is; one file of `opmark.leaderboards.site.pages` per page, its template beside it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from opmark.core.canonical import content_id
from opmark.core.registry import Registry
from opmark.leaderboards.site.board import Board
from opmark.leaderboards.site.showcase import Showcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One HTML file; `path` is relative to the site's folder, with forward slashes."""

    path: str
    html: str


class Page(Protocol):
    """Makes every document of its sort, for the whole site at once."""

    def __call__(self, shown: Showcase) -> Iterator[Document]:
        """The documents, none for a site that has nothing to show there."""


PAGES: Registry[Page] = Registry("opmark.leaderboards.site.pages", "PAGE", "page")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A file name for `name`: itself where that is safe, else with a piece of its hash so that two never meet."""
    safe = _UNSAFE.sub("-", name).strip("-.")
    return safe if safe and safe == name and safe != "index" else f"{safe or 'x'}-{content_id(name, length=6)}"


def board_path(board: Board) -> str:
    """Where a track's board is."""
    return f"{slug(board.name)}/index.html"


def entry_path(board: Board, entry: str) -> str:
    """Where an entry's page is."""
    return f"{slug(board.name)}/entries/{slug(entry)}.html"


def device_path(type_name: str) -> str:
    """Where a device type's page is."""
    return f"devices/{slug(type_name)}.html"


def predictor_path(name: str) -> str:
    """Where a predictor's page is."""
    return f"predictors/{slug(name.replace('/', '_'))}.html"


def anchor(instance: str) -> str:
    """Where on an entry's page an instance's schedule is."""
    return f"on-{slug(instance)}"


def instance_path(board: Board, instance: str) -> str:
    """Where an instance's page is."""
    return f"{slug(board.name)}/instances/{slug(instance)}.html"
