"""Render templates with one style for all pages; style and script are inlined, so each page is one file."""

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from opmark.core.plain_text import lines, web_address
from opmark.core.units import format_bytes, format_count, format_duration, format_ns

if TYPE_CHECKING:
    import jinja2

# Templates find these files of the folder under these names.
_ASSETS = {"style": "style.css", "script": "sort.js", "zoom": "zoom.js", "draw": "draw.js"}


def render(template: str, **values: Any) -> str:
    """Render `template`, a path below the package such as `pages/bars.html.jinja`.

    Returns `Markup`, so that a template can include the result of another one. Undefined names are errors; everything
    but `Markup` is escaped.
    """
    from markupsafe import Markup

    return Markup(environment().get_template(template).render(**values))  # noqa: S704 (the template escaped)


@cache
def environment() -> "jinja2.Environment":
    """The template environment, with the filters `ns`, `bytes`, `count`, `seconds`, `percent`, `signed_percent`."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("opmark", package_path=""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_plain,
    )
    made.filters |= {
        "ns": format_ns,
        "bytes": format_bytes,
        "count": format_count,
        "seconds": format_duration,
        "percent": percent,
        "web_address": web_address,
        "signed_percent": signed_percent,
    }
    made.globals |= {name: asset(file) for name, file in _ASSETS.items()}
    return made


def _plain(value: Any) -> Any:
    """A value without control and bidirectional characters, where it is foreign text."""
    return lines(value) if type(value) is str else value


def asset(name: str) -> str:
    """The text of a file in this folder, as trusted markup."""
    from markupsafe import Markup

    return Markup((resources.files("opmark.pages") / name).read_text(encoding="utf-8"))  # noqa: S704


def percent(fraction: float | None, digits: int = 1) -> str:
    """`0.123` as `12.3 %`; a missing number as a dash."""
    return "–" if fraction is None else f"{100 * fraction:.{digits}f} %"


def signed_percent(fraction: float | None, digits: int = 1) -> str:
    """`0.123` as `+12.3 %`, with a true minus sign."""
    return "–" if fraction is None else f"{100 * fraction:+.{digits}f} %".replace("-", "−")


_DEFINED = re.compile(r"--([a-z0-9]+):\s*([^;]+);")
_USED = re.compile(r"var\(--([a-z0-9]+)\)")


def picture_sheet() -> str:
    """The rules of the style sheet that draw pictures, as trusted markup, with the light colours as literal values.

    Programs that show an SVG file by itself often know neither variables nor media queries.
    """
    from markupsafe import Markup

    sheet = asset("style.css")
    rules = "\n".join(
        rule
        for line in sheet.splitlines()
        for rule in re.findall(r"[^{}]+\{[^{}]*\}", line)
        if line.startswith(("svg ", ".c0", ".c5", ".transfer", ".arrow", ".memory", ".captions text", ".dash"))
    )
    return Markup(literal(rules))  # noqa: S704 (our own file)


def standalone(picture: str) -> str:
    """A picture as trusted markup, with literal colours instead of the variables of a page."""
    from markupsafe import Markup

    return Markup(literal(picture))  # noqa: S704 (it is markup already)


def literal(text: str) -> str:
    """`text` with the light value of every variable of the style sheet."""
    values = dict(_DEFINED.findall(asset("style.css").partition("}")[0]))
    return _USED.sub(lambda found: values[found[1]], text)
