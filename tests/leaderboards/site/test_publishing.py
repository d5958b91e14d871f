"""A site that stands is not made again; a change of its content, of its code or of a page makes it anew."""

from pathlib import Path

import pytest
from tests.leaderboards.site.test_exhibition import NAMES, problem

from opmark.core.files import write_json
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.track import Track, load_track
from opmark.leaderboards.site import exhibition, publishing
from opmark.leaderboards.site.publishing import publish_tracks


@pytest.fixture
def track(tmp_path: Path) -> Track:
    """A track with one diamond and one answer, in a workspace of its own."""
    folder = tmp_path / "leaderboards" / "tiny"
    write_json(folder / "track.yaml", {"schema": 1, "title": "Tiny", "version": "1.0.0"})
    save_problem(problem(), folder / "problems" / "diamond.json")
    made = load_track(folder.parent, "tiny")
    made.store("single", "diamond", Solution(device=dict.fromkeys(NAMES, "a")))
    return made


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of all sites whose boards are made."""
    folders: list[Path] = []
    publish = exhibition.publish_boards

    def counted(leaderboards, folder, progress):  # type: ignore[no-untyped-def]
        folders.append(folder)
        return publish(leaderboards, folder, progress)

    monkeypatch.setattr(exhibition, "publish_boards", counted)
    return folders


def test_a_site_that_stands_is_not_made_again(track: Track, tmp_path: Path, made: list[Path]) -> None:
    site = tmp_path / "site"
    steps: list[tuple[str, int, int]] = []
    first = publish_tracks(track.leaderboards, site, lambda *step: steps.append(step))
    assert publish_tracks(track.leaderboards, site) == first
    assert made == [site]
    assert first[0] == site / "index.html"
    assert ("tiny", 1, 1) in steps
    assert ("pages", len(first), len(first)) in steps
    other = publish_tracks(track.leaderboards, tmp_path / "other")
    assert len(other) == len(first)
    assert made == [site, tmp_path / "other"]


def test_a_new_answer_makes_it_anew(track: Track, tmp_path: Path, made: list[Path]) -> None:
    site = tmp_path / "site"
    publish_tracks(track.leaderboards, site)
    track.store("other", "diamond", Solution(device=dict.fromkeys(NAMES, "b")))
    publish_tracks(track.leaderboards, site)
    assert made == [site, site]
    assert "other" in (site / "tiny" / "index.html").read_text()


def test_a_changed_or_lost_page_is_made_again(track: Track, tmp_path: Path, made: list[Path]) -> None:
    site = tmp_path / "site"
    files = publish_tracks(track.leaderboards, site)
    before = [path.read_bytes() for path in files]
    files[1].write_text("changed")
    files[2].unlink()
    publish_tracks(track.leaderboards, site)
    assert [path.read_bytes() for path in files] == before
    assert made == [site, site]


def test_a_damaged_record_does_no_harm(track: Track, tmp_path: Path, made: list[Path]) -> None:
    site = tmp_path / "site"
    publish_tracks(track.leaderboards, site)
    (record,) = (tmp_path / ".cache" / "site").glob("written-*.json")
    for content in ("no JSON", "[]", '{"source": ""}'):
        record.write_text(content)
        publish_tracks(track.leaderboards, site)
    assert len(made) == 4


def test_other_code_makes_another_site(track: Track, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = publishing.content_of(track.leaderboards)
    assert publishing.content_of(track.leaderboards) == before
    (tmp_path / "code").mkdir()
    monkeypatch.setattr(publishing.opmark, "__file__", str(tmp_path / "code" / "__init__.py"))
    assert publishing.content_of(track.leaderboards) != before
