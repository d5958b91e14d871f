from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.leaderboards.provisioning.offers import MS, short_branch

from opmark.core.errors import ContentError, UnknownNameError
from opmark.core.workspace import Workspace
from opmark.leaderboards.problem.fields import Tensor
from opmark.leaderboards.problem.files import load_problem
from opmark.leaderboards.provisioning.pools import GOALS, PoolCandidate, load_pool_recipe, make_pools, pool_of
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.track import load_track

LEADERBOARDS = Path("leaderboards")


def candidate(**changes):
    values = {
        "model": "job",
        "catalogue": "small",
        "available": {"fast": 2, "slow": 3},
        "goal": "budget",
        "factor": 1.5,
    }
    return PoolCandidate(**(values | changes))


def test_a_pool_holds_its_goal_in_ns_and_money():
    job = short_branch()  # 15 ms of work on the fast type, which costs 3 an hour
    assert pool_of(candidate(), job).limits.price_per_hour == 4.5
    deadline = pool_of(candidate(goal="deadline", factor=0.8), job)
    assert deadline.limits.latency_ns == 12 * MS
    assert (deadline.objective, deadline.unit, deadline.replication) == ("cost", "$", False)
    demand = pool_of(candidate(goal="demand", factor=2.0), job)
    assert demand.limits.period_ns == 7.5 * MS
    assert (demand.objective, demand.replication) == ("rent", True)
    assert len(demand.cluster.devices) == 5


def test_inputs_and_outputs_live_on_a_storage_that_runs_nothing():
    job = short_branch()
    whole = replace(job.whole, tensors=(*job.whole.tensors, Tensor(name="in", size_bytes=9, consumers=("a",))))
    problem = pool_of(candidate(), replace(job, whole=whole))
    assert problem.host == "storage"
    assert (problem.arrays.run_ns[:, -1] < 0).all()
    assert attempt(problem, "opmark", budget_s=2).evaluation.cost > 0


def test_a_type_that_the_catalogue_lacks_is_named():
    with pytest.raises(UnknownNameError, match="faast"):
        pool_of(candidate(available={"faast": 1}), short_branch())


def test_memory_can_force_several_devices():
    job = short_branch()
    held = replace(
        job.whole,
        weights={f"w{unit.name}": 1000 for unit in job.whole.units},
        units=tuple(replace(unit, weights=(f"w{unit.name}",)) for unit in job.whole.units),
        tensors=tuple(
            Tensor(name=one.name, size_bytes=1, producer=one.producer, consumers=one.consumers)
            for one in job.whole.tensors
        ),
    )
    problem = pool_of(candidate(factor=4.0, memory_share=0.6), replace(job, whole=held))
    found = attempt(problem, "opmark", budget_s=2)
    assert len(set(found.evaluation.placement.device.tolist())) >= 2


@pytest.mark.parametrize("goal", GOALS)
def test_every_goal_can_come_with_little_memory(goal):
    job = short_branch()
    held = replace(
        job.whole,
        weights={f"w{unit.name}": 1000 for unit in job.whole.units},
        units=tuple(replace(unit, weights=(f"w{unit.name}",)) for unit in job.whole.units),
    )
    roomy, tight = (
        pool_of(candidate(goal=goal, factor=4.0, memory_share=share), replace(job, whole=held)) for share in (0.0, 0.6)
    )
    assert tight.cluster.devices[0].memory_bytes < roomy.cluster.devices[0].memory_bytes
    assert tight.limits == roomy.limits


def test_the_shipped_recipe_asks_every_kind_of_question():
    recipe = load_pool_recipe(LEADERBOARDS / "provisioning")
    assert {one.goal for one in recipe.candidates} == set(GOALS)
    assert {one.split for one in recipe.candidates} == {"public", "validation"}
    assert any(one.memory_share for one in recipe.candidates)
    assert any("@training" in one.model for one in recipe.candidates)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal": "cheap"}, "goal: one of"),
        ({"factor": 0}, "factor: must be positive"),
        ({"available": {}}, "available: at least one type"),
        ({"available": {"pi-4": 10**12}}, "at most 64 together"),
        ({"batch": -1}, "batch: must be from 0 to"),
        ({"units_at_most": -1}, "units_at_most: must be from 0 to"),
        ({"memory_share": -0.5}, "memory_share: must be from 0 to"),
        ({"split": "secret"}, "split: one of"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_key(tmp_path, change, message):
    row = {"model": "m", "catalogue": "edge", "available": {"pi-4": 1}, "goal": "budget", "factor": 1.0} | change
    (tmp_path / "pools.yaml").write_text(yaml.safe_dump({"schema": 1, "candidates": [row]}), encoding="utf-8")
    with pytest.raises(ContentError) as raised:
        load_pool_recipe(tmp_path)
    assert message in raised.value.message


def test_pools_are_made_kept_and_left_out(tmp_path):
    for folder in ("catalogues", "devices", "clusters", "layers"):
        (tmp_path / "leaderboards").mkdir(exist_ok=True)
        (tmp_path / "leaderboards" / folder).symlink_to((LEADERBOARDS / folder).resolve())
    folder = tmp_path / "leaderboards" / "small"
    folder.mkdir()
    (folder / "track.yaml").write_text("schema: 1\ntitle: Small\nversion: 1.0.0\n", encoding="utf-8")
    base = {"model": "opt-350@training", "batch": 4, "catalogue": "training-layers", "available": {"a100": 2}}
    rows = [base | {"goal": "budget", "factor": 2.0}, base | {"goal": "deadline", "factor": 0.01}]
    (folder / "pools.yaml").write_text(
        yaml.safe_dump({"schema": 1, "candidates": rows, "judge_s": 1.0}), encoding="utf-8"
    )
    workspace = Workspace(tmp_path)
    first, second = make_pools(workspace, "small")
    assert (first.status, second.status) == ("made", "left out")
    track = load_track(workspace.leaderboards, "small")
    assert [problem.name for problem in track.problems()] == [first.name]
    assert load_problem(track.path_of(first.name)).limits.price_per_hour == pytest.approx(2 * 3.673385)
    assert next(iter(make_pools(workspace, "small"))).status == "kept"
