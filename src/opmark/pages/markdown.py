"""Markdown as HTML, for cards of data: headings one level down, wide tables that scroll, and no foreign markup."""

import re

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def markdown(text: str) -> str:
    """The HTML of `text` without its front matter; HTML and scripts inside it are shown as text."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(_FRONT_MATTER.sub("", text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    made: str = parser.renderer.render(tokens, parser.options, {})
    made = made.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return Markup(made)  # noqa: S704 (the parser escaped all foreign text)
