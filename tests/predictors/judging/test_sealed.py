"""Sealed networks judge a predictor as it is, and a family that anybody learned from is refused."""

from dataclasses import replace

import pytest
from tests.datasets import sample
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.core.measurements.measurement import FAILED, HELD_OUT, SEALED, NetworkMeasurement
from opmark.datasets.release.building import build_from
from opmark.datasets.release.finding import find
from opmark.predictors.judging.evidence import evidence_of
from opmark.predictors.judging.sealed import NO_GRAPH, judge_sealed
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.training import train_on

KERNELS = law.kernels("gemm", 60)
GRAPHS = [law.graph(f"net{number}", KERNELS[8 * number : 8 * number + 8]) for number in range(5)]
BY_ID = {graph.id: graph for graph in GRAPHS}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(law.rows(60, ("gemm",)), law.TARGET, estimator="roofline", hardware=law.HARDWARE)


def rows() -> list[NetworkMeasurement]:
    return [law.network(graph, share=0.0, role=SEALED) for graph in GRAPHS]


def test_every_sealed_network_is_reported_in_its_order_with_an_interval_over_families(bundle: Bundle) -> None:
    found = judge_sealed(rows(), rows(), bundle, BY_ID)
    assert [one.network for one in found.networks] == [graph.name for graph in GRAPHS]
    assert found.predictor == bundle.manifest.id
    for one in found.networks:
        assert one.error is not None
        assert one.measured_ns is not None
        assert one.error == pytest.approx(one.predicted_ns / one.measured_ns - 1)
        # all of their kernels were measured for training, so that they are answered from the measurements
        assert one.exact_share == pytest.approx(1.0)
    score = {one.metric: one for one in found.scores}
    assert score["acc10"].split == SEALED
    assert score["acc10"].families == len(GRAPHS)
    assert score["acc10"].low is not None
    assert score["acc10"].value == sum(abs(one.error or 0) <= 0.1 for one in found.networks) / len(GRAPHS)
    assert "coverage90" in score


def test_a_network_that_failed_or_has_no_graph_is_reported_too(bundle: Bundle) -> None:
    failed = replace(rows()[0], status=FAILED, latency_ns=None, reason="out of memory")
    unknown = replace(rows()[1], graph_id="0123456789abcdef")
    found = judge_sealed([failed, unknown, rows()[2]], [], bundle, BY_ID)
    assert [one.reason for one in found.networks] == ["out of memory", NO_GRAPH, ""]
    assert [one.error is None for one in found.networks] == [True, True, False]
    assert {score.n for score in found.scores} == {1}
    assert judge_sealed([failed], [], bundle, BY_ID).scores == ()


def test_a_family_that_anybody_learned_from_or_looked_at_is_refused(bundle: Bundle) -> None:
    other = replace(rows()[0], role=HELD_OUT)
    with pytest.raises(ContentError, match="not sealed any more: net0"):
        judge_sealed(rows(), [*rows(), other], bundle, BY_ID)
    fitted = replace(bundle.manifest.constants, networks=("vit-base@bf16",))
    trained = replace(bundle, manifest=replace(bundle.manifest, constants=fitted))
    with pytest.raises(ContentError, match="not sealed any more: vit"):
        judge_sealed([replace(rows()[0], family="vit")], [], trained, BY_ID)
    # of the zoo's open families, whatever the release says
    with pytest.raises(ContentError, match="not sealed any more: resnet"):
        judge_sealed([replace(rows()[0], family="resnet")], [], bundle, BY_ID)


def test_nothing_else_reads_sealed_rows(tmp_path) -> None:
    networks = [sample.network("seen"), sample.network("unseen", role=HELD_OUT), sample.network("hidden", role=SEALED)]
    networks = [replace(one, graph_id=f"{number:016x}") for number, one in enumerate(networks)]
    build_from([sample.contents(None, networks)], tmp_path)
    release = find(sample.DEVICE, tmp_path)
    assert {one.network for one in release.network_measurements("onnxruntime-cpu-t1")} == {"seen", "unseen", "hidden"}
    evidence = evidence_of(release, "onnxruntime-cpu-t1", {})
    assert {one.network for one in evidence.networks} == {"seen", "unseen"}
    assert evidence.without_graph == ("seen", "unseen")
