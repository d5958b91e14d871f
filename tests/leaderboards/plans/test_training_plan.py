"""Training plans: what a file says, and one sentence for each fault."""

import json
from pathlib import Path
from typing import Any

import pytest

from opmark.core.errors import ContentError
from opmark.leaderboards.plans.training_plan import load_plan

GROUP = [["V100-16", 4, "zone"]]


def content(stages: list[list[int]], chains: int = 1, **facts: Any) -> dict[str, Any]:
    pipeline = {
        "num_stages": len(stages),
        "layers_per_stage": stages,
        "tmp_per_stage": [[[GROUP, 2]] * chains for _ in stages],
        "dp": [chains] * len(stages),
    }
    return {"pipeline_list": [pipeline], "mbs": 2, "gbs": 24, "zone": "zone", **facts}


def written(folder: Path, document: Any) -> Path:
    path = folder / "plan.json"
    path.write_text(json.dumps(document))
    return path


def test_a_plan(tmp_path: Path) -> None:
    path = written(tmp_path, content([[0, 1], [2, 3, 4]], chains=3, real=1.5, red_grads=0.5, max_mem=7, colour="blue"))
    plan = load_plan(path)
    assert plan.stages == ((0, 1), (2, 3, 4))
    assert (plan.layers, plan.chains, plan.micro_batches) == (5, 3, 4)
    assert (plan.measured_s, plan.reduction_s, plan.measured_bytes) == (1.5, 0.5, 7)
    assert {(one.gpu, one.tensor_parallel, one.zone) for row in plan.replicas for one in row} == {
        ("V100-16", 2, "zone")
    }


def test_pipelines_with_equal_stages_are_further_replicas(tmp_path: Path) -> None:
    document = content([[0], [1]])
    document["pipeline_list"] *= 2
    assert load_plan(written(tmp_path, document)).chains == 2


def test_one_wrong_digit_of_tens_is_a_slip(tmp_path: Path) -> None:
    stages = [list(range(16)), [16, 17, 18, 29, 20], list(range(21, 34))]
    plan = load_plan(written(tmp_path, content(stages)))
    assert plan.stages[1] == (16, 17, 18, 19, 20)
    assert "29 between 18 and 20 is read as 19" in plan.notes[0]


@pytest.mark.parametrize(
    ("stages", "fault"),
    [
        ([[0, 1], [3]], "layer 2 is missing"),
        ([[1, 2]], "layer 0 is missing"),
        ([[0, 1], [1, 2]], "layer 1 stands twice"),
        ([[0, 0, 2]], "layer 0 stands twice"),
        ([[0, 2, 1]], "layer 1 is missing"),
        ([[0], []], "holds no layer"),
    ],
)
def test_layers_missing_or_twice(tmp_path: Path, stages: list[list[int]], fault: str) -> None:
    path = written(tmp_path, content(stages))
    with pytest.raises(ContentError, match=fault) as caught:
        load_plan(path)
    assert str(caught.value).startswith(f"{path}: pipeline_list.0.layers_per_stage.")


def _changed(key: str, value: Any) -> dict[str, Any]:
    document = content([[0], [1]])
    target = document["pipeline_list"][0] if key in document["pipeline_list"][0] else document
    target[key] = value
    return document


@pytest.mark.parametrize(
    ("key", "value", "where"),
    [
        ("mbs", "two", "mbs"),
        ("mbs", 0, "mbs"),
        ("gbs", None, "gbs"),
        ("gbs", 2**62, "gbs: makes "),
        ("red_grads", -0.5, "red_grads: must not be negative, not -0.5"),
        ("pipeline_list", [], "pipeline_list"),
        ("num_stages", 3, "layers_per_stage"),
        ("dp", [1, 2], "tmp_per_stage.1"),
        ("dp", [1], "dp"),
        ("layers_per_stage", [["a"], [1]], "layers_per_stage.0.0"),
        ("tmp_per_stage", [[[GROUP, 8]], [[GROUP, 2]]], "tmp_per_stage.0.0"),
        ("tmp_per_stage", [[[GROUP * 2, 2]], [[GROUP, 2]]], "tmp_per_stage.0.0"),
    ],
)
def test_wrong_fields(tmp_path: Path, key: str, value: Any, where: str) -> None:
    with pytest.raises(ContentError, match=r"plan\.json") as caught:
        load_plan(written(tmp_path, _changed(key, value)))
    assert where in str(caught.value)


def test_unequal_replicas_and_pipelines(tmp_path: Path) -> None:
    document = content([[0], [1]])
    document["pipeline_list"][0]["tmp_per_stage"][1] *= 2
    document["pipeline_list"][0]["dp"] = [1, 2]
    with pytest.raises(ContentError, match="same number of replicas"):
        load_plan(written(tmp_path, document))
    document = content([[0], [1]])
    document["pipeline_list"] += content([[0, 1]])["pipeline_list"]
    with pytest.raises(ContentError, match="unlike the first pipeline"):
        load_plan(written(tmp_path, document))
    with pytest.raises(ContentError, match="a mapping at the top"):
        load_plan(written(tmp_path, [1]))
