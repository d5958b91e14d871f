"""What is compiled is compiled once, and its folder belongs to one state of the sources."""

import os
from pathlib import Path

import pytest

from opmark.leaderboards.problem.compile_cache import UNCOMPILED_VARIABLE, VARIABLE
from opmark.leaderboards.search import compilation
from opmark.leaderboards.search.compilation import compile_once, is_compiled
from opmark.leaderboards.search.placer import PLACERS


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """An empty folder for compiled code; every preparation of a placer leaves a note."""
    prepared: list[str] = []
    monkeypatch.setenv(VARIABLE, str(tmp_path / "compiled"))
    monkeypatch.setattr(type(PLACERS.load("opmark")), "prepare", lambda _self: prepared.append("opmark"))
    return prepared


def test_a_second_call_compiles_nothing(empty: list[str]) -> None:
    assert not is_compiled()
    compile_once()
    assert is_compiled()
    compile_once()
    assert empty == ["opmark"]


def test_plain_python_compiles_nothing(empty: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNCOMPILED_VARIABLE, "1")
    compile_once()
    assert empty == []
    assert not is_compiled()


def test_a_failed_preparation_leaves_nothing_that_looks_ready(
    empty: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(type(PLACERS.load("opmark")), "prepare", fail)
    with pytest.raises(RuntimeError):
        compile_once()
    assert not is_compiled()


def test_code_of_versions_long_gone_is_removed(empty: list[str], tmp_path: Path) -> None:
    for name, age_s in (("old", compilation.KEPT_S + 60), ("other", 0.0)):
        ready = tmp_path / name / "ready"
        ready.parent.mkdir()
        ready.touch()
        os.utime(ready, (ready.stat().st_mtime - age_s,) * 2)
    compile_once()
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "other").exists()
