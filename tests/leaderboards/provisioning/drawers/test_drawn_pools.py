"""Hidden pools: the same for a seed, worth solving, and impossible to look up."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from opmark.core.errors import ContentError
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.problem.fields import CostOrigin
from opmark.leaderboards.provisioning.drawers.drawn_pools import DRAWER, drawn_candidates
from opmark.leaderboards.provisioning.pools import GOALS, HiddenPools, load_pool_recipe
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.hidden import VARIABLE, need_hidden, seed_hash
from opmark.leaderboards.scoring.track import load_track

LEADERBOARDS = Path("leaderboards")
SEED = "a seed that nobody knows"
HIDDEN = {
    "count": 3,
    "models": {"opt-350@training": [4, 8]},
    "available": {"training-layers": {"a100": 2, "v100": 3}},
    "factors": {"budget": [1.5, 3.0], "front": [2.0, 3.0]},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "leaderboards" / "small"
    folder.mkdir(parents=True)
    for name in ("catalogues", "devices", "clusters", "layers"):
        (folder.parent / name).symlink_to((LEADERBOARDS / name).resolve())
    promise = f"hidden_seed_sha256: {seed_hash(SEED)}\n"
    (folder / "track.yaml").write_text(f"schema: 1\ntitle: Small\nversion: 1.0.0\n{promise}", encoding="utf-8")
    write(folder, HIDDEN)
    return Workspace(tmp_path)


def write(folder: Path, hidden: dict) -> None:
    row = {"model": "opt-350@training", "batch": 4, "catalogue": "training-layers", "available": {"a100": 2}}
    content = {"schema": 1, "candidates": [row | {"goal": "budget", "factor": 2.0}], "hidden": hidden}
    (folder / "pools.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def test_a_seed_decides_pools_that_tell_nothing(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    track = load_track(workspace.leaderboards, "small")
    monkeypatch.setenv(VARIABLE, SEED)
    found = need_hidden(track).problems()
    assert found == need_hidden(track).problems()
    assert [problem.name for problem in found] == ["hidden-1", "hidden-2", "hidden-3"]
    other = DRAWER.problems(track.folder, Sources(workspace=workspace), "another seed")
    assert not {problem.id for problem in found} & {problem.id for problem in other}
    for problem in found:
        assert problem.limits
        assert (problem.provenance, problem.reference, problem.cluster.name) == (CostOrigin(), None, "hidden")
        names = [item.name for item in (*problem.units, *problem.tensors, *problem.cluster.devices)]
        assert all(name[0] in "utd" and name[1:].isdecimal() for name in names)
        assert attempt(problem, "marginal-gain", budget_s=60.0).evaluation.cost > 0


def test_candidates_stay_inside_the_rules() -> None:
    part = load_pool_recipe(LEADERBOARDS / "provisioning").hidden
    assert part is not None
    found = list(drawn_candidates(replace(part, tight=0.5), "x"))
    assert len(found) > part.count
    assert {one.goal for one in found} == set(part.factors) == set(GOALS)
    for one in found:
        low, high = part.factors[one.goal]
        most = part.available[one.catalogue]
        assert low <= one.factor <= high
        assert len(one.available) >= 2
        assert all(1 <= count <= most[kind] for kind, count in one.available.items())
        assert one.memory_share == 0 or part.memory_shares[0] <= one.memory_share <= part.memory_shares[1]
    assert {bool(one.memory_share) for one in found} == {True, False}


def test_a_recipe_without_a_hidden_part_draws_nothing_and_one_that_nothing_meets_says_so(workspace: Workspace) -> None:
    folder, sources = workspace.leaderboards / "small", Sources(workspace=workspace)
    write(folder, HIDDEN | {"factors": {"deadline": [0.001, 0.002]}, "count": 1})
    with pytest.raises(ContentError, match="20 draws gave 0 pools"):
        DRAWER.problems(folder, sources, SEED)
    row = {"model": "m", "catalogue": "edge", "available": {"pi-4": 1}, "goal": "budget", "factor": 1.0}
    (folder / "pools.yaml").write_text(yaml.safe_dump({"schema": 1, "candidates": [row]}), encoding="utf-8")
    assert DRAWER.problems(folder, sources, SEED) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "hidden: count must be"),
        ({"available": {"edge": {"pi-4": 3}}}, "hidden.available.edge: two types"),
        ({"factors": {"cheap": [1.0, 2.0]}}, "hidden.factors: one of"),
        ({"factors": {"budget": [2.0, 1.0]}}, "hidden.factors.budget: two positive factors"),
        ({"tight": 1.5}, "hidden.tight"),
        ({"memory_shares": [0.9, 0.2]}, "hidden.memory_shares"),
    ],
)
def test_wrong_rules_are_refused_with_their_key(change: dict, message: str) -> None:
    values = {
        "count": 1,
        "models": {"m": ()},
        "available": {"edge": {"pi-4": 1, "jetson-nano": 1}},
        "factors": {"budget": (1.0, 2.0)},
    }
    assert HiddenPools(**values).problems() == []
    assert any(message in sentence for sentence in HiddenPools(**(values | change)).problems())
