"""The table of estimator × split × metric."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law
from tests.predictors.short_training import shorten

from opmark.core.files import json_text
from opmark.core.parallel.dask_map import OnDask
from opmark.core.parallel.task_map import MapProgress
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.judging.evidence import Evidence, by_kind
from opmark.predictors.judging.scores import TargetScores, evaluate, judge, judge_sides, split_sides
from opmark.predictors.judging.splits import NETWORKS_UNSEEN, SPLIT_NAMES
from opmark.predictors.model.metrics import METRICS

KERNELS = law.kernels("gemm", 70)
NET = law.graph("net", KERNELS[60:], weight_bytes=100 << 20)


def evidence() -> Evidence:
    return Evidence(
        target=law.TARGET,
        measurements=law.rows(70, ("gemm",)),
        hardware=law.HARDWARE,
        networks=[law.network(NET, share=0.5, role="held-out")],
        graphs={NET.id: NET},
    )


@pytest.mark.usefixtures("short")
def test_every_split_and_metric_is_there() -> None:
    scores = evaluate(evidence(), estimators=("lightgbm", "flops")).scores
    cells = {(score.estimator, score.split, score.metric): score for score in scores}
    splits = ("random", "shape-group", "frontier", "real-model", NETWORKS_UNSEEN)
    assert {(e, s, m) for e in ("lightgbm", "flops") for s in splits for m in METRICS} <= set(cells)
    assert cells["lightgbm", "real-model", "mape"].n == 10
    assert cells["lightgbm", NETWORKS_UNSEEN, "mape"].n == 1
    assert cells["lightgbm", "random", "coverage90"].value > 0.6
    assert ("flops", "random", "coverage90") not in cells
    for split in ("random", "shape-group", "real-model"):
        assert cells["lightgbm", split, "mape"].value < cells["flops", split, "mape"].value
    assert cells["lightgbm", NETWORKS_UNSEEN, "mape"].value < 0.15
    floor = cells["lightgbm", "random", "mape"].noise_floor
    assert floor == pytest.approx(0.01, rel=0.02)
    assert all(score.target == "onnxruntime-cpu-t1" for score in scores)


def test_kernels_of_unseen_networks_are_not_learned_from() -> None:
    found = judge(evidence(), "nearest", "real-model")
    assert found is not None
    # a neighbour of itself would be predicted exactly
    assert (np.abs(found.predicted_ns / found.measured_ns - 1) > 1e-6).all()
    assert by_kind(found)["gemm"]["mape"] > 0


def test_hot_labels_alone_judge_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[Latencies] = []
    learner = ESTIMATORS.load("nearest")
    fit = type(learner).fit
    monkeypatch.setattr(
        type(learner), "fit", lambda own, inputs, labels: learned.append(labels) or fit(own, inputs, labels)
    )
    found = judge(evidence(), "nearest", "shape-group")
    assert found is not None
    assert learned
    assert all(np.isnan(labels.rotated_ns).all() and (labels.hot_ns > 0).all() for labels in learned)


def test_a_split_nobody_can_judge_is_left_out() -> None:
    alone = Evidence(target=law.TARGET, measurements=law.rows(30, ("gemm",)))
    assert {score.split for score in evaluate(alone).scores} == {"random", "shape-group", "frontier"}
    few = Evidence(target=law.TARGET, measurements=law.rows(6, ("gemm",)))
    assert evaluate(few).scores == ()


def test_networks_have_the_noise_floor_of_those_measured_again() -> None:
    trial = law.network(NET, share=0.5, role="training")
    again = replace(trial, latency_ns=1.04 * trial.latency_ns)
    found = evaluate(replace(evidence(), network_retests=[(trial, again)]), estimators=("flops",))
    floors = {(score.estimator, score.split, score.metric): score.noise_floor for score in found.scores}
    assert floors["flops", NETWORKS_UNSEEN, "median"] == pytest.approx(0.04)
    assert floors["flops", NETWORKS_UNSEEN, "acc5"] == 1
    assert floors["flops", "random", "median"] == pytest.approx(0.01, rel=0.02)
    known = evaluate(evidence(), estimators=("flops",), splits=(NETWORKS_UNSEEN,))
    assert {score.noise_floor for score in known.scores} == {None}


def test_a_cluster_gives_the_same_bytes(forked_cluster: None) -> None:
    asked = ((("flops", "roofline"), SPLIT_NAMES), (("lightgbm",), ("random",)))
    steps = list[MapProgress]()
    with OnDask("local:2") as cluster:
        cluster.client.run(shorten)
        for estimators, splits in asked:
            here = evaluate(evidence(), estimators=estimators, splits=splits)
            there = evaluate(evidence(), estimators=estimators, splits=splits, place=cluster, progress=steps.append)
            assert json_text(there.scores) == json_text(here.scores), "what --json prints"
            assert predicted(there) == predicted(here)
    assert (steps[-1].total, steps[-1].left_s) == (1, 0)
    assert (10, 10, 0) in [(step.done, step.total, step.left_s) for step in steps]


def predicted(found: TargetScores) -> dict[tuple[str, str], bytes]:
    """All predictions behind the scores, to the last bit."""
    return {part: judged.predicted_ns.tobytes() for part, judged in found.judged.items()}


def test_every_shape_group_judges_once() -> None:
    found = judge(evidence(), "nearest", "shape-group")
    assert found is not None
    assert sorted(found.measured_ns) == sorted(row.latency_hot_ns or 0 for row in evidence().measurements)
    first = judge_sides(split_sides(evidence(), "shape-group"), ESTIMATORS.load("nearest"))
    assert first is not None
    assert len(first.kinds) < len(found.kinds)


def test_scores_have_intervals_over_families_and_the_floor_of_their_metric() -> None:
    trial = law.network(NET, share=0.5, role="training")
    other = law.graph("other", KERNELS[50:60])
    networks = [
        law.network(NET, share=0.5, role="held-out", family="resnet"),
        law.network(other, share=0.5, role="held-out", family="t5"),
        law.network(law.graph("third", KERNELS[:9]), share=0.5, family="resnet-small"),
    ]
    graphs = {NET.id: NET, other.id: other}
    both = replace(evidence(), networks=networks, graphs=graphs, network_retests=[(trial, trial)])
    found = evaluate(both, estimators=("roofline",))
    cells = {(score.split, score.metric): score for score in found.scores if score.estimator == "roofline"}
    for split, families in ((NETWORKS_UNSEEN, 2), ("random", None)):
        score = cells[split, "mape"]
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value <= score.high
        assert families is None or score.families == families
        assert cells[split, "kendall-tau"].low is None
    assert cells[NETWORKS_UNSEEN, "composition-mape"].noise_floor == cells[NETWORKS_UNSEEN, "mape"].noise_floor == 0
    assert found.relatives == {"resnet": ("resnet-small",)}
    assert found.left_out == ("third",)
