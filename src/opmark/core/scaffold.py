"""Write new extensions from templates (jinja2); the files pass the contract tests unchanged."""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import UnavailableError, UsageError
from opmark.core.files import write_text
from opmark.core.registry import unknown_name
from opmark.core.shipped import checkout

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Place:
    """The files of a new extension: one in a `package` of the code, or `file` in a folder of its own.

    `beside` are the further files of that folder, each with its template.
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
    """Write the template for a `what` called `name`, and return its path.

    Code is written into the checkout that this runs from, a track into `leaderboards`, a submission into a new folder
    called `name`, or any of them into `output`. Raises `UsageError` for a bad name or an existing file,
    `UnavailableError` without a checkout.
    """
    if what not in PLACES:
        raise unknown_name("extension point", what, PLACES)
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} cannot be a name", hint="write it like my-name: lower-case letters, digits, hyphens"
        )
    path = output or _default_path(what, name, leaderboards)
    texts = {path.with_name(file): _render(template, name) for file, template in PLACES[what].beside}
    texts[path] = render(what, name)
    for file in (path, *texts):
        if file.exists():
            raise UsageError("the file exists already", where=str(file), hint="choose another name")
    for file, text in texts.items():
        write_text(file, text)
    return path


def render(what: str, name: str) -> str:
    """The text of the template for a `what` called `name`."""
    return _render(PLACES[what].template, name)


def _render(template: str, name: str) -> str:
    import jinja2

    # The templates are Python, YAML and Markdown, not HTML.
    environment = jinja2.Environment(  # noqa: S701
        loader=jinja2.PackageLoader("opmark.core"), undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    words = name.split("-")
    title = " ".join(words).capitalize()
    class_name = "".join(word.capitalize() for word in words)
    return environment.get_template(template).render(name=name, title=title, class_name=class_name)


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
            "extensions are files in OpMark's source, but this is an installed copy",
            hint="work in a checkout (pip install -e .), or write the file elsewhere with -o FILE",
        )
    return root / place.package / f"{name.replace('-', '_')}.py"
