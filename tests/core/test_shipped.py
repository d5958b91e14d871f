"""A new workspace holds what was shipped, whole or not at all."""

import errno
from pathlib import Path
from typing import Any

import pytest

from opmark.core import shipped
from opmark.core.errors import OpMarkError, UnavailableError, UsageError
from opmark.core.shipped import checkout, create_workspace, shipped_content
from opmark.core.workspace import ROOMS, find_workspace

ROOT = Path(__file__).resolve().parents[2]


def names(folder: Path, pattern: str) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.glob(pattern)}


def test_a_checkout_ships_its_own_folders() -> None:
    assert checkout() == ROOT
    assert shipped_content().suites == ROOT / "bench" / "suites"


def test_a_workspace_has_all_rooms_and_the_suites(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    created = create_workspace(tmp_path / "deep" / "down")
    assert find_workspace(created.suites) == created
    assert names(created.root, "bench/suites/*") == names(ROOT, "bench/suites/*")
    assert names(created.root, "leaderboards/*/track.yaml") == names(ROOT, "leaderboards/*/track.yaml")
    assert {path.name for path in created.root.iterdir()} == set(ROOMS)


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    create_workspace(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="already holds bench/, datasets/, predictors/, leaderboards/"):
        create_workspace(tmp_path)


@pytest.mark.parametrize("folder", ["new/one", "old"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    (tmp_path / "old").mkdir()

    def full(*arguments: Any, **keywords: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(OpMarkError, match="cannot write: No space left"):
        create_workspace(tmp_path / folder)
    assert {path.name for path in tmp_path.rglob("*")} == {"old"}


def test_an_installation_uses_the_content_beside_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "opmark"
    package.mkdir(parents=True)
    monkeypatch.setattr(shipped, "_PACKAGE", package)
    assert checkout() is None
    with pytest.raises(UnavailableError, match="has no suites"):
        shipped_content()
    (package / "content" / "bench" / "suites").mkdir(parents=True)
    (package / "content" / "bench" / "suites" / "small.yaml").write_text("schema: 1\n")
    assert shipped_content().root == package / "content"
    created = create_workspace(tmp_path / "work")
    assert names(created.root, "bench/suites/*") == {"bench/suites/small.yaml"}
