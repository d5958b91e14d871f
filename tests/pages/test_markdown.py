"""Cards become HTML; what others wrote stays text."""

from opmark.pages.markdown import markdown


def test_headings_tables_and_lists_are_html() -> None:
    made = markdown("---\nlicense: x\n---\n# Release\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n")
    assert "<h3>Release</h3>" in made
    assert '<div class="wide"><table>' in made
    assert "<li>one</li>" in made
    assert "license" not in made


def test_foreign_markup_is_shown_as_text() -> None:
    made = markdown("<script>alert(1)</script> <b>x</b> [a](javascript:alert(1))")
    assert "<script" not in made
    assert "<b>" not in made
    assert "href=" not in made


def test_an_empty_card_is_empty() -> None:
    assert markdown("") == ""
