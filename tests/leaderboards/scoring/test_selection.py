"""A track made from its recipe: candidates are kept or left out, and an interrupted run continues."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.leaderboards.making.test_cluster_plan import LINKS, PLAN
from tests.leaderboards.making.test_device_table import ANALYTIC, EFFICIENCY

from opmark.cli.main import cli
from opmark.core.checksums import with_checksum
from opmark.core.errors import ContentError
from opmark.core.reading import read_text
from opmark.core.workspace import ROOMS, Workspace
from opmark.leaderboards.making.instances import Sources, needed_bytes, problem_of
from opmark.leaderboards.making.recipe import Candidate, load_recipe, recipe_names
from opmark.leaderboards.problem.files import load_problem, problem_text, save_problem
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.selection import make_track
from opmark.leaderboards.scoring.track import freeze_track, load_track

MEASURED = """
schema: 1
title: A measured device
provenance: measured
source: measured by somebody
runtime: torch-eager-t1
memory_bytes: 1000000
bundle: acme-1/1.0.0/torch-eager-t1
"""
SLOW = PLAN.replace("type: fast", "type: slow")
RECIPE = """
schema: 1
seed: 3
units_at_most: 20
judge_s: 0.2
judges: [heft, m-topo]
candidates:
  - {models: ["random-towers#1"], cluster: pair, memory_share: 0.5}
  - {models: ["random-cells#1", "random-towers#2"], cluster: pair, memory_share: 2.0, split: validation}
  - {models: ["random-towers#1"], cluster: far, memory_share: 2.0}
  - {models: ["random-towers#1"], cluster: measured}
"""
TRACK = "schema: 1\ntitle: Made\nversion: 1.0.0\n"
KEPT = "random-towers-1-pair-m50"
BOTH = "random-cells-1+random-towers-2-pair-m200"
LEFT = "random-towers-1-far-m200"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_in(tmp_path)


def workspace_in(root: Path) -> Workspace:
    """A workspace with devices, clusters and the recipe of a track that is not made yet."""
    for room in ROOMS:
        (root / room).mkdir(parents=True)
    folder = root / "leaderboards"
    links = f"{LINKS}  slow: {{latency_ns: 1000000000, bandwidth_bytes_per_s: 1000.0, source: a very long wire}}\n"
    for name, text in {
        "devices/made.yaml": ANALYTIC.replace("memory_bytes: 1000", "memory_bytes: 1000000000000"),
        "devices/measured.yaml": MEASURED,
        "devices/efficiency/made-up.yaml": EFFICIENCY,
        "clusters/pair.yaml": PLAN,
        "clusters/far.yaml": SLOW,
        "clusters/measured.yaml": PLAN.replace("one: made", "one: measured"),
        "clusters/links.yaml": links,
        "made/track.yaml": TRACK,
        "made/recipe.yaml": RECIPE,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Workspace(root)


def test_a_recipe_makes_a_track_once_and_says_why_something_is_missing(workspace: Workspace) -> None:
    steps = {step.name: step for step in make_track(workspace, "made")}
    waiting = "random-towers-1-measured"
    assert {name: step.status for name, step in steps.items()} == {
        KEPT: "made",
        BOTH: "made",
        LEFT: "left out",
        waiting: "waits",
    }
    assert "acme-1" in steps[waiting].reason
    folder = workspace.leaderboards / "made"
    problem = load_problem(folder / "problems" / f"{KEPT}.json.gz")
    assert len(problem.units) <= 20
    assert problem.reference is not None
    assert problem.reference.bound_ns <= problem.reference.best_known_ns
    assert problem.provenance.bundles["made/torch-cuda-t1"] == "analytic: its data sheet"
    assert (folder / "validation" / f"{BOTH}.json.gz").is_file()
    assert json.loads((folder / "left-out.json").read_text())["left_out"].keys() == {LEFT}
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json*") if path.name != "left-out.json"}
    again = {step.name: step.status for step in make_track(workspace, "made")}
    assert again == {KEPT: "kept", BOTH: "kept", LEFT: "left out", waiting: "waits"}
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_what_changes_is_made_anew(workspace: Workspace) -> None:
    list(make_track(workspace, "made"))
    path = workspace.leaderboards / "devices" / "efficiency" / "made-up.yaml"
    path.write_text(EFFICIENCY.replace("compute: 0.5", "compute: 0.4"))
    found = CliRunner().invoke(
        cli, ["--workspace", str(workspace.root), "leaderboards", "make-track", "made", "--json"]
    )
    assert found.exit_code == 0, found.stderr
    statuses = {row["name"]: row["status"] for row in json.loads(found.stdout)}
    assert statuses[KEPT] == statuses[BOTH] == "made"
    assert f"{LEFT}: left out (the best single device" in found.stderr


def test_shares_of_memory_are_of_what_everything_on_one_device_takes(workspace: Workspace) -> None:
    recipe = load_recipe(workspace.leaderboards / "made")
    sources = Sources(workspace=workspace)
    plain = problem_of(Candidate(models=("random-towers#1",), cluster="pair"), recipe, sources, "latency")
    tight = problem_of(recipe.candidates[0], recipe, sources, "latency")
    need = needed_bytes(plain)
    assert need["one"] > sum(plain.weights.values())
    found = {device.name: device.memory_bytes for device in tight.cluster.devices}
    assert found == {"host": 10**12, "one": need["one"] // 2, "two": need["two"] // 2}


def test_the_text_of_a_problem_is_read_back_as_the_same(workspace: Workspace) -> None:
    list(make_track(workspace, "made"))
    path = workspace.leaderboards / "made" / "problems" / f"{KEPT}.json.gz"
    problem = load_problem(path)
    assert with_checksum(problem_text(problem)) == read_text(path)
    assert len(read_text(path).splitlines()) > len(problem.units) + len(problem.tensors)


def test_a_better_stored_answer_becomes_the_reference_of_an_instance_of_the_recipe(workspace: Workspace) -> None:
    list(make_track(workspace, "made"))
    track = load_track(workspace.leaderboards, "made")
    score_track(track, ["local-search"], budget_s=0.5)
    best = {result.problem: result.cost for row in track.standings().rows for result in row.results}
    for problem in track.problems():
        assert problem.reference is not None
        dear = replace(problem, reference=replace(problem.reference, best_known_ns=best[problem.name] + 1))
        save_problem(dear, track.path_of(problem.name))
    assert freeze_track(track) == {}
    frozen = freeze_track(track, again=recipe_names(track.folder) - {BOTH})
    assert {name: one.best_known_ns for name, one in frozen.items()} == {KEPT: best[KEPT]}


def test_a_wrong_recipe_names_every_fault(workspace: Workspace) -> None:
    path = workspace.leaderboards / "made" / "recipe.yaml"
    extra = "  - {models: [], cluster: pair, split: secret, name: x}\n"
    extra += "  - {models: [a], cluster: pair, name: x, objective: speed, memory_mode: much}\n"
    path.write_text(RECIPE + extra)
    with pytest.raises(ContentError) as caught:
        load_recipe(path.parent)
    for part in (
        "'x' appears twice",
        "x: models and a cluster are needed, or a plan",
        "x.split: one of public, validation",
        "x.objective: one of cost, hypervolume, latency, rent, serving, throughput, not 'speed'",
        "x.memory_mode: one of liveness, sum, stash, not 'much'",
    ):
        assert part in str(caught.value)


def test_a_candidate_with_arrivals_serves_requests(workspace: Workspace) -> None:
    recipe = load_recipe(workspace.leaderboards / "made")
    candidate = Candidate(
        models=("random-cells#1", "random-towers#2"), cluster="pair", arrivals="bursty", load=0.5, units_at_most=200
    )
    assert candidate.title == "random-cells-1+random-towers-2-pair-bursty"
    made = problem_of(candidate, recipe, Sources(workspace=workspace), "serving")
    assert made.objective == "serving"
    assert [stream.units[0][:2] for stream in made.arrivals] == ["0/", "1/"]
    assert {len(stream.arrival_ns) for stream in made.arrivals} == {100}
    assert made == problem_of(candidate, recipe, Sources(workspace=workspace), "serving"), (
        "the same seed, the same trace"
    )


def test_a_candidate_may_have_an_objective_of_its_own(workspace: Workspace) -> None:
    recipe = load_recipe(workspace.leaderboards / "made")
    candidate = Candidate(
        models=("random-towers#1",), cluster="pair", objective="latency", memory_mode="stash", micro_batches=4
    )
    assert candidate.title == "random-towers-1-pair-mb4"
    made = problem_of(candidate, recipe, Sources(workspace=workspace), "throughput")
    assert (made.objective, made.memory_mode, made.micro_batches) == ("latency", "stash", 4)
    plain = problem_of(replace(candidate, objective=""), recipe, Sources(workspace=workspace), "throughput")
    assert plain.objective == "throughput"
