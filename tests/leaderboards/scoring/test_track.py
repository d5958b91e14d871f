"""Tracks on disk: scored, stored, ranked again from stored answers, and shown on the site."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.core.errors import ContentError, NothingSelectedError, UnknownNameError
from opmark.core.files import write_text
from opmark.core.reading import read_json
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.robustness import robustness
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.splits import stored_standings
from opmark.leaderboards.scoring.track import Track, freeze_track, load_track, older_versions, track_names
from opmark.leaderboards.site.publishing import publish_tracks

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def track(tmp_path: Path) -> Track:
    folder = tmp_path / "latency"
    folder.mkdir()
    (folder / "track.yaml").write_text("schema: 1\ntitle: Latency\nversion: 1.0.0\nbudget_s: 5\n")
    save_problem(heft_canonical(), folder / "problems" / "canonical.json")
    return load_track(tmp_path, "latency")


def test_scoring_stores_answers_and_ranks_them_again_to_the_same_bytes(track: Track) -> None:
    found = score_track(track, ["heft", "random"])
    assert [(row.rank, row.name) for row in found.rows] == [(1, "heft"), (2, "random")]
    stored = (track.folder / "standings.json").read_bytes()
    assert track.write_standings(track.standings()).read_bytes() == stored
    assert sorted(path.name for path in track.folder.iterdir()) == [
        ".lock",
        "problems",
        "runs.json.gz",
        "solutions",
        "standings.json",
        "track.yaml",
    ]
    assert set(read_json(track.folder / "runs.json.gz")["runs"]) == {"heft", "random"}


def test_standings_that_were_edited_are_named(track: Track) -> None:
    score_track(track, ["heft", "random"])
    path = track.folder / "standings.json"
    found = stored_standings(track.folder)
    assert found is not None
    assert [(row.rank, row.name) for row in found.rows] == [(1, "heft"), (2, "random")]
    path.write_text(path.read_text().replace('"name": "random"', '"name": "rendom"'))
    with pytest.raises(ContentError, match=r"standings\.json: changed since it was written"):
        stored_standings(track.folder)


def test_standings_are_robust_where_costs_have_intervals(track: Track) -> None:
    score_track(track, ["heft", "random"])
    sure = read_json(track.folder / "standings.json")["rows"][0]
    assert not {"robust-quality", "spread"} & sure["metrics"].keys()
    assert "drawn" not in sure["results"][0]
    path = track.folder / "problems" / "canonical.json"
    doubtful = tuple(replace(unit, interval={"P1": (0.5, 2.0), "P2": (0.9, 1.1)}) for unit in heft_canonical().units)
    save_problem(replace(heft_canonical(), units=doubtful), path)
    standings = track.standings()
    stored = track.write_standings(standings).read_bytes()
    assert track.write_standings(track.standings()).read_bytes() == stored, "the same draws for the same solutions"
    for row in standings.rows:
        drawn = row.results[0].drawn
        assert drawn
        own = robustness(track.problems()[0], standings.evaluations[row.name, "canonical"].placement)
        assert (drawn.median, drawn.p95) == (own.median, own.p95)
        assert row.metrics["spread"] == pytest.approx(own.p95 / row.results[0].cost - 1)


def test_a_later_score_keeps_the_other_entries(track: Track) -> None:
    score_track(track, ["heft"])
    again = score_track(track, ["random"])
    assert {row.name for row in again.rows} == {"heft", "random"}


def test_a_damaged_answer_is_invalid_not_fatal(track: Track) -> None:
    score_track(track, ["heft", "random"])
    write_text(track.folder / "solutions" / "heft.json.gz", "{")
    track.store("lazy", "canonical", Solution(device={}))
    rows = {row.name: row for row in track.standings().rows}
    assert rows["heft"].results[0].reason == "not JSON: Expecting property name enclosed in double quotes"
    assert rows["lazy"].results[0].cost is None
    assert rows["random"].rank == 1


def test_a_frozen_track_keeps_its_scores_when_a_better_entry_comes(track: Track) -> None:
    score_track(track, ["heft", "random"])
    frozen = freeze_track(track)
    assert (frozen["canonical"].best_known_ns, frozen["canonical"].bound_ns) == (93, 41)
    stored = read_json(track.folder / "standings.json")["rows"][0]["results"][0]
    assert (stored["best_known"], stored["bound"]) == (93, 41), "they follow from the new references at once"
    assert freeze_track(track) == {}
    scores = {row.name: row.score for row in score_track(track, ["local-search"]).rows}
    assert scores["heft"] == 1.0
    assert 1.0 < scores["local-search"] <= 1.05, "a record, until the next version; how far depends on the processor"


def test_standings_follow_a_dearer_reference_that_is_replaced(track: Track) -> None:
    problem = track.problems()[0]
    save_problem(replace(problem, reference=ReferenceCosts(bound_ns=1, best_known_ns=186)), track.path_of("canonical"))
    assert score_track(track, ["heft"]).rows[0].score == 1.05
    assert freeze_track(track, again={"canonical"})["canonical"].best_known_ns < 186
    assert read_json(track.folder / "standings.json")["rows"][0]["score"] == 1.0
    assert track.write_standings(track.standings()).read_bytes() == (track.folder / "standings.json").read_bytes()


def test_a_problem_is_called_like_its_file(track: Track) -> None:
    (track.folder / "problems" / "canonical.json").rename(track.folder / "problems" / "other.json")
    with pytest.raises(ContentError, match="called 'canonical', not like its file"):
        track.problems()


def test_what_is_missing_is_said(track: Track, tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError, match="no entry has a stored solution"):
        track.standings()
    with pytest.raises(UnknownNameError) as caught:
        load_track(tmp_path, "latencies")
    assert caught.value.hint == "did you mean 'latency'?"
    (tmp_path / "latency" / "track.yaml").write_text("schema: 1\ntitle: x\nversion: 1.0.0\nbudget: 5\n")
    with pytest.raises(ContentError, match="budget: unknown key"):
        load_track(tmp_path, "latency")


def test_the_site_shows_every_track_with_answers(track: Track, tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError):
        publish_tracks(tmp_path, tmp_path / "site")
    score_track(track, ["heft", "random"])
    files = publish_tracks(tmp_path, tmp_path / "site")
    assert files[0] == tmp_path / "site" / "index.html"
    assert any("heft" in path.read_text() for path in files)


@pytest.mark.parametrize("name", track_names(ROOT / "leaderboards"))
def test_shipped_tracks_rank_to_their_stored_bytes(name: str, tmp_path: Path) -> None:
    shipped = load_track(ROOT / "leaderboards", name)
    assert shipped.problems()
    copy = Track(folder=tmp_path, rules=shipped.rules)
    assert shipped.solutions()
    standings = shipped.standings()
    written = copy.write_standings(standings).read_bytes()
    assert written == (shipped.folder / "standings.json").read_bytes()
    proved = {problem.name: bounds(problem) for problem in shipped.problems()}
    costs = [(row.name, result) for row in standings.rows for result in row.results if result.cost is not None]
    below = [
        (entry, result.problem, bound)
        for entry, result in costs
        for bound, value in proved[result.problem].items()
        if result.cost < value
    ]
    assert below == [], "no answer is better than any bound says it can be"
    assert len(costs) >= 0.8 * len(standings.rows) * len(proved), "hardly an entry has answers"


def test_an_older_version_is_read_ranked_and_scored_by_its_own_name(track: Track) -> None:
    score_track(track, ["heft"])
    older = track.folder / "versions" / "0.9.0"
    older.mkdir(parents=True)
    for name in ("track.yaml", "problems", "solutions", "runs.json.gz"):
        (track.folder / name).rename(older / name)
    (track.folder / "track.yaml").write_text("schema: 1\ntitle: Latency\nversion: 1.0.0\nbudget_s: 5\n")
    save_problem(replace(heft_canonical(), name="new"), track.folder / "problems" / "new.json")
    place = track.folder.parent
    assert track_names(place) == ("latency",)
    assert older_versions(track.folder) == ("0.9.0",)
    found = load_track(place, "latency@0.9.0")
    assert (found.name, found.leaderboards) == ("latency@0.9.0", place)
    assert [row.name for row in found.standings().rows] == ["heft"]
    assert [row.name for row in score_track(found, ["heft", "random"]).rows] == ["heft", "random"]
    assert [problem.name for problem in load_track(place, "latency").problems()] == ["new"]
    for wrong in ("latency@0.8.0", "other@0.9.0", "latency@"):
        with pytest.raises(UnknownNameError):
            load_track(place, wrong)
