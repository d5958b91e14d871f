"""Foreign text cannot command a terminal, reorder a line or run a script."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.plain_text import json_lines, lines, one_line, web_address, without_colours

HOSTILE = {
    "\x1b[2J": "\\x1b[2J",
    "\x1b]0;title\x07": "\\x1b]0;title\\x07",
    "\x9b31m": "\\x9b31m",
    "a\rb": "a\\rb",
    "\x00\x08\x7f": "\\x00\\x08\\x7f",
    "\u202egnp.exe": "\\u202egnp.exe",
    "\u2066\u2069\u200f\u061c": "\\u2066\\u2069\\u200f\\u061c",
    "zero\u200bwidth\ufeff": "zero\\u200bwidth\\ufeff",
    "\u2028\u2029": "\\u2028\\u2029",
    "\U000e0041": "\\U000e0041",
    "half \ud83d": "half \\ud83d",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_commands_become_escapes(text: str) -> None:
    assert one_line(text) == lines(text) == HOSTILE[text]


def test_only_colours_are_removed() -> None:
    said = "Failed to export. \x1b[96mThis is step 1/3\x1b[0m of exporting \x1b[38;5;9m2 \x1b[2J"
    assert without_colours(said) == "Failed to export. This is step 1/3 of exporting 2 \x1b[2J"
    # what is left when a colour goes cannot be a command either
    assert one_line(without_colours("\x1b\x1b[0m[2J")) == "\\x1b[2J"


def test_a_name_has_one_line_and_a_text_may_have_several() -> None:
    assert one_line("a\nError: all\tfine") == "a\\nError: all\\tfine"
    assert lines("a\nb\tc") == "a\nb\tc"
    assert one_line("größe 数 – 3 µs ≤ \U0001f600 [bold]") == "größe 数 – 3 µs ≤ \U0001f600 [bold]"


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_nothing_but_what_can_be_seen_is_left(text: str) -> None:
    for character in one_line(text):
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        assert unicodedata.bidirectional(character) not in {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }
    one_line(text).encode()


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_json_means_the_same_afterwards(text: str) -> None:
    written = json_lines(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert json.loads(written) == {text: [text]}
    assert lines(written) == written


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)", " JavaScript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc",
        "//evil.example", "https:evil", "", "https://[", "https://a.example/\u202egnp", "relative",
    ],
)  # fmt: skip
def test_only_the_web_is_linked(text: str) -> None:
    assert web_address(text) == ""


def test_an_address_on_the_web_stays() -> None:
    assert web_address("https://arxiv.org/abs/2001.00001?x=1#s") == "https://arxiv.org/abs/2001.00001?x=1#s"
