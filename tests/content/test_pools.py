"""The pools of the track `provisioning`: enough of them, of every kind, with goals that can be met."""

import json
import re
from pathlib import Path

from opmark.leaderboards.bounds.certificate import read_certificates
from opmark.leaderboards.making.drawn_network import drawn_families
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.pools import load_pool_recipe, pool_names
from opmark.leaderboards.scoring.track import load_track
from opmark.models.source import source_of

FOLDER = Path(__file__).resolve().parents[2] / "leaderboards"
TRACK = load_track(FOLDER, "provisioning")


def costs() -> dict[str, dict[str, int | None]]:
    """Entry -> problem -> cost, from the stored standings."""
    rows = json.loads((TRACK.folder / "standings.json").read_text(encoding="utf-8"))["rows"]
    return {row["name"]: {one["problem"]: one["cost"] for one in row["results"]} for row in rows}


def test_there_are_enough_pools_of_every_goal_and_both_splits() -> None:
    problems = TRACK.problems()
    assert {problem.name for problem in problems} == pool_names(TRACK.folder)
    assert len(problems) >= 40
    families = {
        split: {problem.provenance.model.partition("#")[0].partition("@")[0] for problem in TRACK.problems(split)}
        for split in ("public", "validation")
    }
    assert not families["public"] & families["validation"]
    assert {problem.objective for problem in problems} == {"cost", "rent", "latency", "throughput", "hypervolume"}
    assert all(problem.limits for problem in problems)
    fronts = [problem for problem in problems if problem.objective == "hypervolume"]
    assert len(fronts) >= 5
    assert {bool(problem.limits.period_ns) for problem in fronts} == {True, False}


def test_every_pool_was_solved_and_has_a_bound_below_the_best() -> None:
    for problem in TRACK.problems():
        known = problem.reference
        assert known is not None, problem.name
        assert 0 < known.bound_ns <= known.best_known_ns
        for device in problem.cluster.devices:
            if device.target:
                assert device.price_per_hour > 0
                assert device.target in problem.provenance.bundles or problem.provenance.family == "sailor"


def test_equal_types_win_on_some_pools_and_unequal_ones_on_others() -> None:
    found = costs()
    equal, best = found["equal-types"], found["opmark"]
    assert any(cost is not None and cost == best[name] for name, cost in equal.items())
    assert any(cost is not None and best[name] and cost > 1.1 * best[name] for name, cost in equal.items())


def test_the_search_meets_every_goal_and_reaches_what_is_proved() -> None:
    found = costs()["opmark"]
    for problem in TRACK.problems():
        cost, known = found[problem.name], problem.reference
        assert cost is not None, problem.name
        assert known is not None
        if known.bound_ns >= known.best_known_ns * (1 - 1e-6):
            assert cost <= 1.01 * known.best_known_ns, problem.name


def test_the_search_is_never_worse_than_the_best_fleet_of_equal_types():
    found = costs()
    for name, cost in found["equal-types"].items():
        own = found["opmark"][name]
        assert own is not None, name
        assert cost is None or own <= cost, name


def test_fronts_are_answered_by_several_placers_with_several_placements():
    entries = TRACK.solutions()
    asked = [problem.name for problem in TRACK.problems() if problem.objective == "hypervolume"]
    answered = {
        entry: [rows[name] for name in asked if isinstance(rows.get(name), Solution)] for entry, rows in entries.items()
    }
    several = {entry for entry, found in answered.items() if sum(len(one.points) > 1 for one in found) >= 5}
    assert {"opmark", "equal-types", "sailor-stages", "melange"} <= several


def test_more_than_nine_pools_are_proved_and_their_certificates_were_decided_again():
    problems = {problem.name: problem for problem in TRACK.problems()}
    optimal = {
        name
        for name, problem in problems.items()
        if problem.reference and problem.reference.bound_ns >= problem.reference.best_known_ns * (1 - 1e-6)
    }
    assert len(optimal) > 9
    certificates = read_certificates(TRACK.folder)
    assert certificates
    for name, certificate in certificates.items():
        assert certificate.problem == problems[name].id
        assert certificate.decided_again, name
        assert certificate.bound_ns <= certificate.answer_ns


def test_hidden_pools_are_promised_and_of_families_that_no_other_split_has():
    assert re.fullmatch("[0-9a-f]{64}", TRACK.rules.hidden_seed_sha256)
    recipe = load_pool_recipe(TRACK.folder)
    assert recipe.hidden is not None
    assert recipe.hidden.count >= 10
    shown = {
        candidate.model.partition("#")[0].partition("@")[0]
        for candidate in recipe.candidates
        if not candidate.catalogue.startswith("training-")  # measured layers, of models that the zoo lacks
    }
    zoo = [model for model in recipe.hidden.models if model not in drawn_families()]
    assert len(zoo) >= 9
    assert not shown & recipe.hidden.models.keys()
    known = {source_of(model).family for model in shown if model not in drawn_families()}
    assert not {source_of(model).family for model in zoo} & known
    for catalogue in recipe.hidden.available:
        tables = load_catalogue(FOLDER, catalogue).tables.values()
        assert "measured" not in {table.provenance for table in tables}, "new predictors must not change them"


def test_the_search_leads_the_board() -> None:
    rows = json.loads((TRACK.folder / "standings.json").read_text(encoding="utf-8"))["rows"]
    assert [row["name"] for row in rows if row["rank"] == 1] == ["opmark"]
