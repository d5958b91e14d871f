"""The interface of a page of the site, the content that pages show, and the paths of their files.

Each page is one file of `opmark.leaderboards.site.pages`, with its template beside it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

from opmark.core.canonical import content_id, plain
from opmark.core.registry import Registry
from opmark.leaderboards.fidelity.figures import FidelityFigures
from opmark.leaderboards.site.board import Board, BoardDevice, Instance
from opmark.leaderboards.site.predictor_card import PredictorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The content of the whole site: the boards of its tracks, and the predictors behind their costs.

    `fidelity` compares the simulator with executed placements, per track and device.
    """

    boards: tuple[Board, ...]
    predictors: tuple[PredictorCard, ...] = ()
    fidelity: tuple[FidelityFigures, ...] = ()

    def source_of(self, *boards: Board) -> str:
        """A hash of everything that a page of `boards` can show; a schedule counts by its identity."""
        return content_id(repr([[_facts(board) for board in boards], plain(self.predictors), plain(self.fidelity)]))

    def device_types(self) -> tuple[str, ...]:
        """All device types that an instance uses or that a predictor covers."""
        used = {device.type for _, _, device in self.devices()}
        return tuple(sorted(used | {card.device for card in self.predictors}))

    def devices(self) -> list[tuple[Board, Instance, BoardDevice]]:
        """Every device of every instance."""
        return [
            (board, instance, device)
            for board in self.boards
            for instance in board.instances
            for device in instance.machines
        ]

    def predictor_of(self, device: BoardDevice) -> PredictorCard | None:
        """The predictor that the problem names by id; otherwise the newest one of that device and target."""
        words = device.bundle.split()
        own = [card for card in self.predictors if is_build(card, device)]
        later = [card for card in self.predictors if f"{card.device}/{card.target}" in words]
        found = own or later
        return found[-1] if found else None

    def newest_predictors(self, device: str) -> list[PredictorCard]:
        """The newest predictor of each target of a device."""
        return list({card.target: card for card in self.predictors if card.device == device}.values())

    def names_of(self, device: BoardDevice) -> tuple[str, ...]:
        """The type that a problem calls a device, and the measured device behind its costs where that has another."""
        card = self.predictor_of(device)
        return (device.type,) if card is None else tuple(dict.fromkeys((device.type, card.device)))

    def devices_by_name(self) -> dict[str, list[tuple[Board, Instance, BoardDevice]]]:
        """The devices of all instances under every name of theirs (`names_of`)."""
        found: dict[str, list[tuple[Board, Instance, BoardDevice]]] = {}
        for board, instance, device in self.devices():
            for name in self.names_of(device):
                found.setdefault(name, []).append((board, instance, device))
        return found

    def provenance(self) -> dict[str, tuple[str, ...]]:
        """The sources of costs by device type; empty for a type that no instance uses."""
        found: dict[str, set[str]] = {name: set() for name in self.device_types()}
        for _, _, device in self.devices():
            for name in self.names_of(device):
                found[name].add(device.provenance)
        return {name: tuple(sorted(words)) for name, words in found.items()}


def _facts(board: Board) -> dict[str, Any]:
    """A board as JSON types, with the identities of its schedules in their place."""
    entries = [
        {
            **{part.name: plain(getattr(entry, part.name)) for part in fields(entry) if part.name != "outcomes"},
            "outcomes": [
                [getattr(one, part.name) for part in fields(one) if part.name != "timeline"]
                + [one.timeline.identity if one.timeline else ""]
                for one in entry.outcomes
            ],
        }
        for entry in board.entries
    ]
    others = {part.name: plain(getattr(board, part.name)) for part in fields(board) if part.name != "entries"}
    return {**others, "entries": entries}


def is_build(card: PredictorCard, device: BoardDevice) -> bool:
    """True where the costs of a device come from this exact build of a predictor."""
    return bool(card.id) and card.id in device.bundle.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file; `path` is relative to the site's folder, with forward slashes.

    `make` gives its text. `source` is what the text follows from beside the code, as dataclasses and JSON types.
    """

    path: str
    make: Callable[[], str]
    source: Any


class Page(Protocol):
    """Makes all documents of one type for the whole site."""

    def __call__(self, site: Site) -> Iterator[Document]:
        """The documents; none where the site has nothing to show on them."""


PAGES: Registry[Page] = Registry("opmark.leaderboards.site.pages", "PAGE", "page")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A file name for `name`: the name itself where it is safe, else with a part of its hash, so that all differ."""
    safe = _UNSAFE.sub("-", name).strip("-.")
    return safe if safe and safe == name and safe != "index" else f"{safe or 'x'}-{content_id(name, length=6)}"


def board_path(board: Board) -> str:
    """The path of a track's board."""
    return f"{slug(board.name)}/index.html"


def entry_path(board: Board, entry: str) -> str:
    """The path of an entry's page."""
    return f"{slug(board.name)}/entries/{slug(entry)}.html"


def device_path(type_name: str) -> str:
    """The path of a device type's page."""
    return f"devices/{slug(type_name)}.html"


def predictor_path(name: str) -> str:
    """The path of a predictor's page."""
    return f"predictors/{slug(name.replace('/', '_'))}.html"


def anchor(instance: str) -> str:
    """The anchor of an instance's schedule on an entry's page."""
    return f"on-{slug(instance)}"


def instance_path(board: Board, instance: str) -> str:
    """The path of an instance's page."""
    return f"{slug(board.name)}/instances/{slug(instance)}.html"


def schedules_path(board: Board, instance: str) -> str:
    """The path of the schedules of all entries on an instance."""
    return f"{slug(board.name)}/schedules/{slug(instance)}.js"
