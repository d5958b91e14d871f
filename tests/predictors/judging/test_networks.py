"""Networks nobody sampled from, and the two halves of their error."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.measurements.measurement import NetworkMeasurement
from opmark.predictors.composition.constants import PLAIN_SUM
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.networks import class_errors, judge_networks, judge_op_counts, split_errors
from opmark.predictors.model.metrics import METRICS
from opmark.predictors.model.training import train_on

KERNELS = law.kernels("gemm", 80)
SEEN = [law.graph(f"seen{number}", KERNELS[10 * number : 10 * number + 10]) for number in range(4)]
UNSEEN = [law.graph("covered", KERNELS[40:60]), law.graph("uncovered", law.kernels("gemm", 20, 5))]
GRAPHS = {graph.id: graph for graph in (*SEEN, *UNSEEN)}
# What running in one piece costs between two kernels, and no kernel has.
GAP_NS = 2000.0


def networks() -> list[NetworkMeasurement]:
    return [
        law.network(graph, share=0.0, gap_ns=GAP_NS, role="training" if graph in SEEN else "held-out")
        for graph in (*SEEN, *UNSEEN)
    ]


def evidence() -> Evidence:
    return Evidence(
        target=law.TARGET,
        measurements=law.rows(80, ("gemm",), noise=0.002),
        hardware=law.HARDWARE,
        networks=networks(),
        graphs=GRAPHS,
    )


def test_the_sum_of_measured_kernels_is_known_where_they_were_measured() -> None:
    judged = judge_networks(evidence(), "lightgbm")
    assert judged is not None
    assert judged.kinds == ("covered", "uncovered")
    assert judged.kernel_sum_ns is not None
    assert np.isfinite(judged.kernel_sum_ns).tolist() == [True, False]
    errors = split_errors(judged)
    assert {name.removeprefix("kernel-sum-") for name in errors if name.startswith("kernel-sum-")} == set(METRICS)
    assert all(count == 1 for _, count in errors.values())
    # the gap was fitted on sums of measured kernels, so that little is left of it
    assert errors["composition-mape"][0] < 0.03
    assert errors["kernel-sum-mape"][0] < 0.25


def test_nn_meters_recipe_is_a_plain_sum() -> None:
    bundle = train_on(
        law.rows(40, ("gemm",)), law.TARGET, estimator="nn-meter-forest", networks=networks(), graphs=GRAPHS
    )
    assert bundle.constants == PLAIN_SUM
    assert bundle.constants.note == "a network is the plain sum of its kernels"
    judged = judge_networks(evidence(), "nn-meter-forest")
    assert judged is not None
    assert judged.kernel_sum_ns is not None
    hot = {row.kernel: row.latency_hot_ns or 0.0 for row in evidence().measurements}
    assert judged.kernel_sum_ns[0] == pytest.approx(sum(hot[node.kernel] for node in UNSEEN[0].costly))


def test_nothing_unseen_is_nothing_to_judge() -> None:
    alone = Evidence(target=law.TARGET, measurements=law.rows(20, ("gemm",)), hardware=law.HARDWARE)
    assert judge_networks(alone, "flops") is None


def test_counts_of_operators_are_the_baseline_without_kernels() -> None:
    judged = judge_op_counts(evidence())
    assert judged is not None
    assert judged.kinds == ("covered", "uncovered")
    assert (judged.predicted_ns > 0).all()
    # the law is a roofline, so that FLOPs and bytes of whole networks go a long way
    assert (np.abs(np.log(judged.predicted_ns / judged.measured_ns)) < 1).all()
    assert judge_op_counts(replace(evidence(), networks=networks()[3:])) is None


def test_classes_of_networks_are_told_apart_where_there_are_several() -> None:
    judged = judge_networks(evidence(), "flops")
    assert judged is not None
    assert judged.classes == ("float32", "float32")
    assert class_errors(judged) == {}
    errors = class_errors(replace(judged, classes=("float32", "training")))
    assert errors["median@float32"][1] == errors["composition-median@float32"][1] == 1
    assert errors["acc10@training"][1] == 1
    # no kernel of the second network was measured
    assert "composition-median@training" not in errors
