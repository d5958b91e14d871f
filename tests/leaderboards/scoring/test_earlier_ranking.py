"""A ranking from earlier costs is that of the track, and anything that changed is simulated again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.site.test_exhibition import NAMES, problem

from opmark.core.errors import NothingSelectedError
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.earlier_ranking import rank_from_earlier
from opmark.leaderboards.scoring.track import Rules, Track


def unsure(name: str, low: float = 0.8) -> Problem:
    """A diamond whose times have intervals."""
    made = problem(name)
    units = tuple(replace(unit, interval={"a": (low, 1.3)}) for unit in made.units)
    return replace(made, units=units)


@pytest.fixture
def track(tmp_path: Path) -> Track:
    """Two diamonds, one with intervals, and two entries, one of which lacks an answer."""
    made = Track(folder=tmp_path / "tiny", rules=Rules(title="Tiny", version="1.0.0"))
    for one in (problem("sure"), unsure("unsure")):
        save_problem(one, made.folder / "problems" / f"{one.name}.json")
    for name in ("sure", "unsure"):
        made.store("single", name, Solution(device=dict.fromkeys(NAMES, "a")))
    made.store("other", "unsure", Solution(device=dict.fromkeys(NAMES, "b")))
    return made


def costs_are_wrong(folder: Path, problem_name: str) -> None:
    """Write other costs for a problem into the file of earlier ones, so that using them shows."""
    from opmark.core.files import json_text, write_sealed
    from opmark.core.reading import read_json

    (path,) = folder.iterdir()
    content = {key: value for key, value in read_json(path).items() if key != "sha256"}
    known = content["problems"][problem_name]
    known["costs"] = dict.fromkeys(known["costs"], 1)
    write_sealed(path, json_text(content))


def test_the_ranking_is_that_of_the_track_to_the_byte(track: Track, tmp_path: Path) -> None:
    expected = track.write_standings(track.standings()).read_bytes()
    for _ in range(2):
        found = rank_from_earlier(track, tmp_path / "cache")
        assert track.write_standings(found).read_bytes() == expected


def test_known_problems_are_not_simulated(track: Track, tmp_path: Path) -> None:
    rank_from_earlier(track, tmp_path / "cache")
    costs_are_wrong(tmp_path / "cache", "unsure")
    found = rank_from_earlier(track, tmp_path / "cache")
    assert {one.cost for row in found.rows for one in row.results if one.problem == "unsure"} == {1}


@pytest.mark.parametrize(
    "change",
    [
        lambda track: track.store("other", "unsure", Solution(device={**dict.fromkeys(NAMES, "b"), "stem": "a"})),
        lambda track: save_problem(unsure("unsure", 0.5), track.folder / "problems" / "unsure.json"),
        lambda track: track.store("third", "unsure", Solution(device=dict.fromkeys(NAMES, "a"))),
        lambda track: track.store("other", "unsure", None),
    ],
    ids=["another answer", "another interval", "another entry", "a removed answer"],
)
def test_what_changed_is_simulated_again(track: Track, tmp_path: Path, change: Callable[[Track], object]) -> None:
    rank_from_earlier(track, tmp_path / "cache")
    costs_are_wrong(tmp_path / "cache", "unsure")
    change(track)
    assert rank_from_earlier(track, tmp_path / "cache").file() == track.standings().file()


def test_damage_to_earlier_costs_is_no_harm(track: Track, tmp_path: Path) -> None:
    rank_from_earlier(track, tmp_path / "cache")
    (path,) = (tmp_path / "cache").iterdir()
    path.write_bytes(path.read_bytes().replace(b"sure", b"pure", 1))
    assert rank_from_earlier(track, tmp_path / "cache").file() == track.standings().file()


def test_an_unreadable_entry_is_named(track: Track, tmp_path: Path) -> None:
    (track.folder / "solutions" / "other.json.gz").write_bytes(b"no archive")
    found = rank_from_earlier(track, tmp_path / "cache")
    assert found.file() == track.standings().file()


def test_a_track_without_entries_has_no_ranking(track: Track, tmp_path: Path) -> None:
    for path in (track.folder / "solutions").iterdir():
        path.unlink()
    with pytest.raises(NothingSelectedError):
        rank_from_earlier(track, tmp_path / "cache")
