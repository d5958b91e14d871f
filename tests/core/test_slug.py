"""No name of a file's content leaves the folder that it names a part of."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.core.schema import convert, json_schema
from opmark.core.slug import NAME, VERSION, Slug, SlugOrEmpty, Version, path_inside

HOSTILE = (
    "..", ".", "../x", "/etc/passwd", "a/b", "a\\b", "a\n", "\na", "a\x00", "a\x1b[31m", "", " ", "a b", ".hidden",
    "-o", "CON", "nul.txt", "Aux", "\u202egnp", "caf\u00e9", "\uff41", "a\u2044b", "a" * 161, "~", "$HOME", "a\r",
)  # fmt: skip


@dataclass(frozen=True)
class _Named:
    name: Slug
    version: Version = "1.0.0"
    provider: SlugOrEmpty = ""


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_is_refused_where_content_is_read(text: str, tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="name: expected at most 160 letters"):
        convert({"name": text}, _Named, where="file.json")
    with pytest.raises(ContentError):
        path_inside(tmp_path, "fine", text)


@pytest.mark.parametrize("text", ["1.0", "1.0.0\n", "../1.0.0", "1.0.0/..", "\u0661.0.0", "1.0.0.0", "1.0.0-rc1", ""])
def test_a_version_is_three_numbers(text: str) -> None:
    with pytest.raises(ContentError, match="version: expected a version like"):
        convert({"name": "a", "version": text}, _Named, where="file.json")
    assert not VERSION.accepts(text)


@pytest.mark.parametrize(
    "text", ["a", "resnet-50@int8-static", "console", "com10", "vgg-16+bert_b8-m40", "random-cells#7", "1.0", "A.b"]
)
def test_the_names_in_use_pass(text: str, tmp_path: Path) -> None:
    assert convert({"name": text, "provider": text}, _Named, where="").name == text
    assert path_inside(tmp_path, text).parent == tmp_path


@given(st.text(max_size=20))
def test_an_accepted_name_is_one_part_of_a_path(text: str) -> None:
    if NAME.accepts(text):
        assert Path("/root", text).resolve().parent == Path("/root")
        assert text.isascii()
        assert text.isprintable()


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "device").symlink_to(tmp_path)
    with pytest.raises(ContentError, match="a link leads out of the folder"):
        path_inside(inside, "device", "1.0.0")


def test_the_schema_of_a_file_states_the_pattern() -> None:
    described = json_schema(_Named, schema=1)["properties"]
    assert described["name"]["pattern"].startswith("^([A-Za-z0-9]")
    assert described["provider"]["pattern"].endswith("|)$")
