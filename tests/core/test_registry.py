"""Extensions are files."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import MissingExtraError, UnknownNameError
from opmark.core.registry import Registry, install_hint, require, unknown_name


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[str]]:
    folder = tmp_path / "shapes_for_registry_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "round_one.py").write_text("SHAPE = 'circle'")
    (folder / "square.py").write_text("SHAPE = 'square'")
    (folder / "_shared.py").write_text("raise AssertionError('private modules are not extensions')")
    (folder / "exotic.py").write_text("import transformers_that_nobody_has")
    (folder / "broken.py").write_text("import opmark.no_such_room")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Registry("shapes_for_registry_test", "SHAPE", "shape")
    for name in [name for name in sys.modules if name.startswith("shapes_for_registry_test")]:
        del sys.modules[name]


def test_names_are_file_names_and_nothing_is_imported(shapes: Registry[str]) -> None:
    assert shapes.names() == ("broken", "exotic", "round-one", "square")
    assert "shapes_for_registry_test.square" not in sys.modules


def test_load(shapes: Registry[str]) -> None:
    assert shapes.load("round-one") == "circle"


def test_a_table_adds_extensions_and_private_folders_add_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "colours_for_registry_test"
    (folder / "_mixing").mkdir(parents=True)
    (folder / "_mixing" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("TABLE = {'dark-red': '#800000'}")
    (folder / "blue.py").write_text("COLOUR = '#0000ff'")
    monkeypatch.syspath_prepend(str(tmp_path))
    colours: Registry[str] = Registry("colours_for_registry_test", "COLOUR", "colour")
    assert colours.names() == ("blue", "dark-red")
    assert list(colours) == ["#0000ff", "#800000"]


def test_an_unknown_name_suggests_the_nearest(shapes: Registry[str]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        shapes.load("sqare")
    assert "no shape is called 'sqare'" in str(caught.value)
    assert caught.value.hint == "did you mean 'square'?"


def test_a_missing_dependency_says_what_to_install(shapes: Registry[str]) -> None:
    with pytest.raises(MissingExtraError) as caught:
        shapes.load("exotic")
    assert caught.value.exit_code == 4
    assert caught.value.hint == "pip install transformers_that_nobody_has"


def test_a_bug_in_opmark_is_not_a_missing_dependency(shapes: Registry[str]) -> None:
    with pytest.raises(ModuleNotFoundError):
        shapes.load("broken")


def test_extras_are_named() -> None:
    assert install_hint("transformers.models") == "pip install 'opmark[models]'"


def test_require() -> None:
    require("json")
    with pytest.raises(MissingExtraError, match="no_such_module"):
        require("no_such_module")


@given(st.text(min_size=1), st.sets(st.text(alphabet="abcdef", min_size=1)))
def test_the_hint_never_names_what_does_not_exist(name: str, known: set[str]) -> None:
    hint = unknown_name("thing", name, known).hint
    assert hint
    if hint.startswith("did you mean"):
        assert any(repr(choice) in hint for choice in known)


def test_of_many_names_only_the_likest_are_said() -> None:
    known = {f"network-{number}" for number in range(100)}
    hint = unknown_name("network", "zzz-5", known).hint or ""
    assert hint.startswith("100 are known, among them ")
    assert hint.count("network-") == 8
