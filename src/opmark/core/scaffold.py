"""New extensions from templates: files that pass the contract tests as they are, for someone to rewrite."""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import UnavailableError, UsageError
from opmark.core.files import write_text
from opmark.core.registry import unknown_name
from opmark.core.shipped import checkout

_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an extension goes: a folder of the code (`package`), or a file of its own folder in a content room.

    `beside` are further files of that folder, each with its template.
    """

    template: str
    package: str = ""
    file: str = ""
    beside: tuple[tuple[str, str], ...] = ()


PLACES: Mapping[str, Place] = {
    "kind": Place("kind.py.jinja", package="src/opmark/kinds"),
    "placer": Place("placer.py.jinja", package="src/opmark/leaderboards/placers"),
    "estimator": Place("estimator.py.jinja", package="src/opmark/predictors/estimators"),
    "track": Place("track.yaml.jinja", file="track.yaml"),
    "submission": Place(
        "submission.yaml.jinja",
        file="submission.yaml",
        beside=(("placer.py", "submission.py.jinja"), ("README.md", "submission.md.jinja")),
    ),
}


def write_extension(what: str, name: str, *, leaderboards: Path | None = None, output: Path | None = None) -> Path:
    """Write the template for a `what` called `name` and give its path.

    Code goes into the checkout this runs from, a track into `leaderboards`, a submission into a folder of its name
    here, or any to `output`. Raises `UsageError` for a bad name or a file that exists, `UnavailableError` where there
    is no checkout.
    """
    if what not in PLACES:
        raise unknown_name("extension point", what, PLACES)
    if not _NAME.match(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} cannot be a name", hint="write it like my-name: lower-case letters, digits, hyphens"
        )
    path = output or _default_path(what, name, leaderboards)
    if path.exists():
        raise UsageError("exists already", where=str(path), hint="choose another name")
    others = [(path.with_name(file), template) for file, template in PLACES[what].beside]
    for other, _ in others:
        if other.exists():
            raise UsageError("exists already", where=str(other), hint="choose another name")
    for other, template in others:
        write_text(other, _filled(template, name))
    write_text(path, render(what, name))
    return path


def render(what: str, name: str) -> str:
    """The template's text for an extension called `name`."""
    return _filled(PLACES[what].template, name)


def _filled(template: str, name: str) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    words = name.split("-")
    values = {
        "name": name,
        "title": " ".join(words).capitalize(),
        "class": "".join(word.capitalize() for word in words),
    }
    for key, value in values.items():
        text = text.replace(f"{{{{ {key} }}}}", value)
    return text


def _default_path(what: str, name: str, leaderboards: Path | None) -> Path:
    place = PLACES[what]
    if what == "submission":
        return Path(name) / place.file
    if place.file:
        if leaderboards is None:
            raise UsageError("a track needs a workspace", hint="run `opmark init DIR` first")
        return leaderboards / name / place.file
    root = checkout()
    if root is None:
        raise UnavailableError(
            "extensions are files of OpMark's source, and this is an installed copy",
            hint="work in a checkout (pip install -e .), or write the file elsewhere with -o FILE",
        )
    return root / place.package / f"{name.replace('-', '_')}.py"
