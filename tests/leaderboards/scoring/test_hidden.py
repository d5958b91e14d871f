"""Hidden instances: always the same for a seed, worth solving, and impossible to look up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical
from tests.leaderboards.scoring.test_selection import RECIPE, TRACK, workspace

from opmark.core.errors import ContentError, UsageError
from opmark.core.reading import read_json
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.making.recipe import load_recipe
from opmark.leaderboards.problem.checks import findings
from opmark.leaderboards.problem.fields import CostOrigin
from opmark.leaderboards.scoring.hidden import (
    VARIABLE,
    drawn_problems,
    has_something_to_win,
    hidden_problems,
    hidden_track,
    need_hidden,
    seed_hash,
)
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.selection import make_track
from opmark.leaderboards.scoring.track import REFERENCES, freeze_track, load_track, read_references
from opmark.leaderboards.search.single import best_single_device

__all__ = ["workspace"]
SEED = "a seed that nobody knows"
HIDDEN = """
hidden:
  count: 4
  models: {random-pyramids: [], random-towers: []}
  clusters: [pair]
  pairs: 0.3
  tight: 1.0
  memory_shares: [0.5, 0.9]
"""


@pytest.fixture
def hiding(workspace: Workspace) -> Workspace:
    folder = workspace.leaderboards / "made"
    (folder / "track.yaml").write_text(f"{TRACK}budget_s: 1\nhidden_seed_sha256: {seed_hash(SEED)}\n")
    (folder / "recipe.yaml").write_text(RECIPE + HIDDEN)
    return workspace


def test_a_seed_decides_instances_that_tell_nothing(hiding: Workspace) -> None:
    recipe = load_recipe(hiding.leaderboards / "made")
    assert recipe.hidden is not None
    one, same, other = (
        drawn_problems(recipe, recipe.hidden, Sources(workspace=hiding), "latency", seed) for seed in ("a", "a", "b")
    )
    assert one == same
    assert not {problem.id for problem in one} & {problem.id for problem in other}
    assert [problem.name for problem in one] == ["hidden-1", "hidden-2", "hidden-3", "hidden-4"]
    shares = set()
    for problem in one:
        assert findings(problem) == []
        assert (problem.provenance, problem.reference, problem.cluster.name) == (CostOrigin(), None, "hidden")
        names = [item.name for item in (*problem.units, *problem.tensors, *problem.cluster.devices)]
        assert all(name[0] in "utd" and name[1:].isdecimal() for name in names)
        assert {unit.kind for unit in problem.units} == {""}
        assert has_something_to_win(problem, 0.01)
        shares |= {device.memory_bytes for device in problem.cluster.devices}
    assert len(shares) > len(one), "memories are drawn"


def test_the_seed_is_the_one_that_was_promised(hiding: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    track = load_track(hiding.leaderboards, "made")
    assert hidden_track(track) is None
    monkeypatch.setenv(VARIABLE, SEED + "!")
    with pytest.raises(ContentError, match="not the seed that this track committed to"):
        need_hidden(track)
    monkeypatch.setenv(VARIABLE, SEED)
    assert [problem.name for problem in need_hidden(track).problems()] == [f"hidden-{n}" for n in range(1, 5)]
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UsageError, match="are not known here"):
        need_hidden(track)


def test_hidden_answers_are_scored_and_frozen_without_a_problem_in_a_file(
    hiding: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(make_track(hiding, "made"))
    track = load_track(hiding.leaderboards, "made")
    monkeypatch.setenv(VARIABLE, SEED)
    half = need_hidden(track)
    score_track(half, ["heft", "best-single-device"])
    assert freeze_track(half).keys() == {problem.name for problem in half.given}
    again = need_hidden(track)
    for before, after in zip(half.given, again.given, strict=True):
        assert after == replace(before, reference=after.reference)
        assert after.reference is not None
        assert 0 < after.reference.bound_ns <= after.reference.best_known_ns
    assert freeze_track(again) == {}
    assert again.standings().rows[0].score == 1.0
    files = {path.name for path in (track.folder / "hidden").rglob("*") if path.is_file()}
    assert files == {
        ".lock",
        REFERENCES,
        "runs.json.gz",
        "standings.json",
        "heft.json.gz",
        "best-single-device.json.gz",
    }
    written = read_json(track.folder / "hidden" / REFERENCES)
    assert written["references"].keys() == {problem.id for problem in half.given}
    assert read_references(track.folder / "none.json") == {}


def test_a_recipe_that_leaves_nothing_to_win_says_so(hiding: Workspace) -> None:
    recipe = replace(load_recipe(hiding.leaderboards / "made"), headroom_at_least=1e9)
    assert recipe.hidden is not None
    part = replace(recipe.hidden, count=1, clusters=("far",), tight=0.0, models={"random-towers": ()}, pairs=0.0)
    with pytest.raises(ContentError, match="20 draws gave 0 instances with something to win, not 1"):
        drawn_problems(recipe, part, Sources(workspace=hiding), "latency", "a")


def test_a_wrong_hidden_part_names_every_fault(hiding: Workspace) -> None:
    path: Path = hiding.leaderboards / "made" / "recipe.yaml"
    path.write_text(
        RECIPE + "hidden: {count: 0, models: {}, clusters: [], pairs: 2, contiguous: -1, memory_shares: [0.5, 0.1]}\n"
    )
    with pytest.raises(ContentError) as caught:
        load_recipe(path.parent)
    for part in (
        "count must be from 1 to 10,000, and models and clusters not empty",
        "pairs: must be from 0 to 1, not 2",
        "contiguous",
        "memory_shares",
    ):
        assert part in str(caught.value)


def test_a_disguise_changes_names_and_order_but_no_cost() -> None:
    generator = np.random.default_rng(5)
    for problem in (heft_canonical(), peft_canonical()):
        same = disguise(problem, "other", generator, rescale=0)
        assert not {unit.name for unit in same.units} & {unit.name for unit in problem.units}
        assert best_single_device(same)[1] == best_single_device(problem)[1]
        rescaled = disguise(problem, "other", generator)
        ratio = best_single_device(rescaled)[1] / best_single_device(problem)[1]
        assert 0.9 <= ratio <= 1.1
    first, again = (hidden_problems((heft_canonical(), peft_canonical()), "seed") for _ in range(2))
    assert first == again
    assert first != hidden_problems((heft_canonical(), peft_canonical()), "another")
