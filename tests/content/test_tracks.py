"""The tracks that come with OpMark: enough instances, of known origin, with something to win on each."""

import re
from collections import Counter
from pathlib import Path

import pytest

from opmark.core.checksums import checksum_fits
from opmark.core.errors import PlacementError
from opmark.core.hardware.cluster import PROVENANCES
from opmark.core.reading import read_json
from opmark.leaderboards.making.cluster_plan import load_plan
from opmark.leaderboards.making.device_table import load_table, table_names
from opmark.leaderboards.making.drawn_network import drawn_families
from opmark.leaderboards.making.recipe import load_recipe
from opmark.leaderboards.problem.files import load_problem
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import row_text
from opmark.leaderboards.scoring.score_formulas import has_headroom
from opmark.leaderboards.scoring.track import load_track, older_versions
from opmark.leaderboards.search.single import best_single_device
from opmark.models.source import source_of

FOLDER = Path(__file__).resolve().parents[2] / "leaderboards"
TRACKS = ("inference-latency", "pipeline-throughput", "training-step")
TEXTBOOK = {"heft-canonical", "peft-canonical"}


@pytest.mark.parametrize("name", TRACKS)
def test_a_track_has_enough_instances_of_both_splits_and_families_of_their_own(name: str) -> None:
    track = load_track(FOLDER, name)
    splits = {
        split: [item for item in track.problems(split) if item.name not in TEXTBOOK]
        for split in ("public", "validation")
    }
    assert sum(map(len, splits.values())) >= 25
    assert len(splits["validation"]) >= 8
    families = {
        split: {part for item in found for part in item.provenance.family.split("+")} for split, found in splits.items()
    }
    assert not families["public"] & families["validation"]
    sizes = {len(item.cluster.devices) for found in splits.values() for item in found}
    assert min(sizes) == 2
    assert max(sizes) >= 6
    assert max(sizes) <= 8


@pytest.mark.parametrize("name", TRACKS)
def test_every_instance_comes_from_the_recipe_and_says_where_its_costs_are_from(name: str) -> None:
    track = load_track(FOLDER, name)
    wanted = {candidate.title: candidate for candidate in load_recipe(track.folder).candidates}
    for path in track.problem_paths():
        problem = load_problem(path)
        if problem.name in TEXTBOOK:
            continue
        assert problem in track.problems(wanted[problem.name].split)
        known = problem.reference
        assert known is not None
        assert 0 < known.bound_ns <= known.best_known_ns
        assert problem.objective == (wanted[problem.name].objective or track.rules.objective)
        assert {device.target for device in problem.cluster.devices} == problem.provenance.bundles.keys()
        for device in problem.cluster.devices:
            assert problem.provenance.bundles[device.target].startswith(f"{device.provenance}: ")


@pytest.mark.parametrize("name", TRACKS)
def test_hidden_instances_are_promised_and_of_families_that_no_other_split_has(name: str) -> None:
    track = load_track(FOLDER, name)
    assert re.fullmatch("[0-9a-f]{64}", track.rules.hidden_seed_sha256)
    recipe = load_recipe(track.folder)
    assert recipe.hidden is not None
    assert recipe.hidden.count >= 10
    shown = {part for problem in track.problems() for part in problem.provenance.family.split("+")}
    zoo = [model for model in recipe.hidden.models if model not in drawn_families()]
    assert len(zoo) >= 9
    assert not {source_of(model).family for model in zoo} & shown
    for cluster in recipe.hidden.clusters:
        tables = load_plan(FOLDER, cluster).tables.values()
        assert "measured" not in {table.provenance for table in tables}, "new predictors must not change them"


def test_headroom_is_what_the_judges_saw() -> None:
    for name in TRACKS:
        path = min((FOLDER / name / "validation").iterdir())
        problem = load_problem(path)
        try:
            _, single = best_single_device(problem)
        except PlacementError:
            single = None
        assert problem.reference is not None
        assert has_headroom(problem.reference.best_known_ns, single)


def test_there_are_measured_imported_and_analytic_device_types() -> None:
    tables = {name: load_table(FOLDER, name) for name in table_names(FOLDER)}
    assert {table.provenance for table in tables.values()} == set(PROVENANCES)
    assert len(tables) >= 5


def test_the_instances_are_small_enough_to_clone() -> None:
    paths = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in paths) < 8e6
    assert len(paths) < 700


# Beside these, devices are rented in a track of pools.
ALL = (*TRACKS, "provisioning")
USED = {"replicas", "micro-batches", "prices", "unequal"}


def scored_problems(name: str) -> list[Problem]:
    track = load_track(FOLDER, name)
    results = read_json(track.folder / "standings.json")["rows"][0]["results"]
    scored = {result["problem"] for result in results if result["scored"]}
    return [problem for problem in track.problems() if problem.name in scored]


@pytest.mark.parametrize("name", TRACKS)
def test_most_scored_problems_stand_on_measurements_of_unequal_devices(name: str) -> None:
    problems = scored_problems(name)
    sources = [problem.costs_from for problem in problems]
    assert len(problems) >= 20
    assert sources.count("measured") >= len(problems) / 4
    assert sources.count("analytic") <= len(problems) / 3
    assert sum("unequal" in problem.features for problem in problems) >= 0.8 * len(problems)


def test_every_rule_that_the_tracks_use_has_five_scored_problems() -> None:
    counts = Counter(feature for name in ALL for problem in scored_problems(name) for feature in problem.features)
    assert counts.keys() == USED, "a rule without problems stands in the guide to further rules"
    assert min(counts.values()) >= 5
    text = (FOLDER.parent / "docs" / "guide" / "scores.md").read_text()
    assert not [word for word in ("`splits`", "`interference`", "`arrivals`") if word in text]


@pytest.mark.parametrize("name", TRACKS)
def test_older_versions_stay_readable_and_rank_to_their_stored_bytes(name: str) -> None:
    (version,) = older_versions(FOLDER / name)
    older = load_track(FOLDER, f"{name}@{version}")
    assert older.rules.version == version
    assert len(older.problems()) > 25
    stored = read_json(older.folder / "standings.json")
    stored["track"] = older.name
    assert row_text(older.standings().file()) == row_text(stored)


def test_damage_to_any_stored_file_of_a_track_shows() -> None:
    folders = [path.parent for path in FOLDER.rglob("track.yaml")]
    plain = [path for folder in folders for path in folder.glob("*.json")]
    assert {path.name for path in plain} >= {"standings.json", "bounds.json", "left-out.json"}
    assert [str(path) for path in plain if not checksum_fits(path.read_bytes())] == []
