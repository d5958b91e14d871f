"""What an earlier site has shown is not simulated again, and shows the same."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.site.test_exhibition import NAMES, problem

from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.track import Rules, Track
from opmark.leaderboards.site import known_answers
from opmark.leaderboards.site.known_answers import shown_answers


@pytest.fixture
def track(tmp_path: Path) -> Track:
    """One diamond and two answers to it, one of which nobody can run."""
    made = Track(folder=tmp_path / "tiny", rules=Rules(title="Tiny", version="1.0.0", description="One diamond."))
    save_problem(problem(), made.folder / "problems" / "diamond.json")
    made.store("single", "diamond", Solution(device=dict.fromkeys(NAMES, "a")))
    made.store("lost", "diamond", None)
    return made


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The problems of all answers that are simulated."""
    names: list[str] = []
    evaluate = known_answers.evaluate

    def counted(given, solution):  # type: ignore[no-untyped-def]
        names.append(given.name)
        return evaluate(given, solution)

    monkeypatch.setattr(known_answers, "evaluate", counted)
    return names


def test_a_second_look_simulates_nothing_and_finds_the_same(track: Track, tmp_path: Path, simulated: list[str]) -> None:
    first = shown_answers(track, tmp_path / "cache")
    assert simulated == ["diamond"]
    again = shown_answers(track, tmp_path / "cache")
    assert simulated == ["diamond"]
    assert again == first
    assert [row.name for row in first[0].rows] == ["single", "lost"]
    assert list(first[1]) == [("single", "diamond")]


def test_the_ranking_is_that_of_the_track(track: Track, tmp_path: Path) -> None:
    shown, _ = shown_answers(track, tmp_path / "cache")
    assert shown == track.standings()


def test_a_new_answer_is_simulated(track: Track, tmp_path: Path, simulated: list[str]) -> None:
    shown_answers(track, tmp_path / "cache")
    track.store("lost", "diamond", Solution(device=dict.fromkeys(NAMES, "b")))
    standings, _ = shown_answers(track, tmp_path / "cache")
    assert simulated == ["diamond", "diamond"]
    assert all(result.cost for row in standings.rows for result in row.results)


def test_draws_that_the_standings_tell_are_not_made_again(
    track: Track, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsure = problem("unsure")
    units = tuple(replace(unit, interval={"a": (0.8, 1.3)}) for unit in unsure.units)
    save_problem(replace(unsure, units=units), track.folder / "problems" / "unsure.json")
    track.store("single", "unsure", Solution(device=dict.fromkeys(NAMES, "a")))
    track.store("lost", "unsure", Solution(device=dict.fromkeys(NAMES, "b")))
    ranked = track.rank()
    track.store("lost", "unsure", Solution(device={**dict.fromkeys(NAMES, "b"), "stem": "a"}))
    drawn: list[str] = []
    draw = known_answers.drawn_costs

    def counted(problems, names, outcomes):  # type: ignore[no-untyped-def]
        drawn.extend(name for name in names if problems[0].name == "unsure")
        return draw(problems, names, outcomes)

    monkeypatch.setattr(known_answers, "drawn_costs", counted)
    shown, _ = shown_answers(track, None)
    assert drawn == ["lost"], "its answer is another one than that of the standings"
    assert shown == track.standings()
    told = {(row.name, result.problem): result.drawn for row in ranked.rows for result in row.results}
    again = {(row.name, result.problem): result.drawn for row in shown.rows for result in row.results}
    assert told["single", "unsure"] == again["single", "unsure"]
    assert told["lost", "unsure"] != again["lost", "unsure"]


def test_a_damaged_cache_is_made_again(track: Track, tmp_path: Path, simulated: list[str]) -> None:
    first = shown_answers(track, tmp_path / "cache")
    (path,) = (tmp_path / "cache").iterdir()
    path.write_bytes(b"no archive")
    assert shown_answers(track, tmp_path / "cache") == first
    assert len(simulated) == 2


def test_equal_answers_are_simulated_once(track: Track, tmp_path: Path, simulated: list[str]) -> None:
    track.store("lost", "diamond", Solution(device=dict.fromkeys(NAMES, "a")))
    standings, timelines = shown_answers(track, tmp_path / "cache")
    assert simulated == ["diamond"]
    assert timelines["single", "diamond"] == timelines["lost", "diamond"]
    assert standings == track.standings()
