"""Pages are made again where what they follow from has changed, or where somebody has changed them."""

from pathlib import Path

import pytest

from opmark.leaderboards.site import made_pages
from opmark.leaderboards.site.made_pages import finished, is_current, source_of
from opmark.leaderboards.site.page import Document


def document(source: object = "a", text: str = "<p>hello</p>", path: str = "page.html") -> Document:
    return Document(path=path, make=lambda: text, source=source)


@pytest.mark.parametrize("path", ["page.html", "a/page.js", "style.css"])
def test_a_page_is_known_by_what_it_was_made_from(tmp_path: Path, path: str) -> None:
    made = document(path=path)
    file = tmp_path / "file"
    assert not is_current(file, made, source_of(made))
    file.write_bytes(finished(made, source_of(made)))
    assert is_current(file, made, source_of(made))
    assert not is_current(file, made, source_of(document(source="b", path=path)))
    assert file.read_text().startswith("<p>hello</p>\n")


def test_a_page_that_somebody_changed_is_made_again(tmp_path: Path) -> None:
    made = document(text="one\n\ntwo\n")
    source = source_of(made)
    file = tmp_path / "page.html"
    file.write_bytes(finished(made, source))
    assert is_current(file, made, source)
    for damage in (("one", "three"), ("text ", "text 0"), ("made", "mad")):
        file.write_bytes(finished(made, source).replace(damage[0].encode(), damage[1].encode()))
        assert not is_current(file, made, source)
    file.write_bytes(b"")
    assert not is_current(file, made, source)


def test_other_code_makes_other_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    before = source_of(document())
    monkeypatch.setattr(made_pages, "_code", lambda: "other")
    assert source_of(document()) != before
