"""numba finds a place for what it compiled, or gets one that is this user's alone."""

import os
from pathlib import Path

import pytest

from opmark.leaderboards.problem import compile_cache
from opmark.leaderboards.problem.compile_cache import VARIABLE, settle_compile_cache


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Code and home that cannot be written (root may write anywhere, so access is asked of the test)."""
    monkeypatch.setenv(VARIABLE, "what is set in a test is taken back")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(compile_cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(compile_cache.os, "access", lambda _path, _mode: False)
    return tmp_path / "room"


@pytest.fixture
def room(nowhere: Path) -> Path:
    """Code of three files in the folders that are compiled."""
    for name in ("problem", "search", "simulator"):
        (nowhere / name).mkdir(parents=True)
        (nowhere / name / "loop.py").write_text(f"# {name}\n")
    return nowhere


def test_a_folder_of_this_user_alone_is_named(nowhere: Path, tmp_path: Path) -> None:
    settle_compile_cache(nowhere)
    folder = Path(os.environ[VARIABLE]).parent
    assert folder == tmp_path / f"opmark-numba-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    del os.environ[VARIABLE]
    settle_compile_cache(nowhere)
    assert Path(os.environ[VARIABLE]).parent == folder


@pytest.mark.parametrize("made_as", ["open to others", "a link", "a file"])
def test_what_others_may_have_put_there_is_not_used(nowhere: Path, tmp_path: Path, made_as: str) -> None:
    usual = tmp_path / f"opmark-numba-{os.getuid()}"
    if made_as == "a file":
        usual.touch()
    elif made_as == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        usual.symlink_to(tmp_path / "theirs")
    else:
        usual.mkdir()
        usual.chmod(0o777)
    settle_compile_cache(nowhere)
    folder = Path(os.environ[VARIABLE]).parent
    assert folder.is_dir()
    assert folder not in (usual, tmp_path / "theirs")


def test_a_folder_that_is_named_is_left_alone(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "mine")
    settle_compile_cache(nowhere)
    assert os.environ[VARIABLE] == "mine"


def test_the_folder_lies_in_the_cache_of_the_user(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_cache.os, "access", lambda path, _mode: Path(path) == tmp_path)
    settle_compile_cache(room)
    assert Path(os.environ[VARIABLE]).parent == tmp_path / "home" / "opmark" / "compiled"


@pytest.mark.parametrize("name", ["problem", "search", "simulator"])
def test_every_change_of_the_sources_names_another_folder(
    room: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def folder() -> str:
        monkeypatch.delenv(VARIABLE, raising=False)
        settle_compile_cache(room)
        return os.environ[VARIABLE]

    before = folder()
    assert folder() == before
    changed = room / name / "loop.py"
    at = changed.stat().st_mtime_ns
    changed.write_text(changed.read_text().upper())
    os.utime(changed, ns=(at, at))
    renamed = folder()
    assert renamed != before
    os.utime(changed, ns=(at + 1, at + 1))
    assert folder() not in (before, renamed)
