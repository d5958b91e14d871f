"""The measured time of networks, kind by kind."""

from dataclasses import replace

import pytest
from tests.predictors import law

from opmark.core.errors import NothingSelectedError
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.time_by_kind import time_by_kind
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import train_on


def moved(elements: int) -> Kernel:
    kind = KINDS.load("bytes-moved")
    return kind.kernel(kind.parameters(read_bytes=4 * elements, written_bytes=4 * elements))


COVERED = law.graph("covered", [*law.kernels("gemm", 6), *law.kernels("softmax", 3)], free=1)
MYSTERY = law.graph("mystery", [*law.kernels("softmax", 4), moved(1 << 20)])


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(law.rows(40, ("gemm", "softmax")), law.TARGET, hardware=law.HARDWARE)


def evidence(*graphs) -> Evidence:
    return Evidence(
        target=law.TARGET,
        measurements=(),
        networks=[law.network(graph, share=0.0) for graph in graphs],
        graphs={graph.id: graph for graph in graphs},
    )


def test_networks_weigh_what_was_measured(bundle: Bundle) -> None:
    both = evidence(COVERED, MYSTERY)
    found = time_by_kind(both, bundle)
    assert (found.target, found.networks) == (law.TARGET.name, 2)
    assert sum(share for _, share in found.by_kind) + found.between == pytest.approx(1)
    assert [share for _, share in found.by_kind] == sorted((share for _, share in found.by_kind), reverse=True)
    model = CostModel(bundle, missing="bytes-moved")
    alone = model.network(MYSTERY)
    (own,) = [row.total_ns / alone.total_ns for row in alone.rows if row.kernel.kind == "bytes-moved"]
    first, second = (network.latency_ns or 0.0 for network in both.networks)
    assert found.measured_ns == pytest.approx(first + second)
    assert found.bytes_moved == pytest.approx(own * second / (first + second))
    assert found.worst == ("mystery", pytest.approx(own))
    assert found.bytes_moved < own
    assert not time_by_kind(evidence(MYSTERY), bundle).met


def test_a_catalogue_that_covers_everything_meets_the_target(bundle: Bundle) -> None:
    found = time_by_kind(evidence(COVERED), bundle)
    assert (found.bytes_moved, found.met) == (0.0, True)
    assert {kind for kind, _ in found.by_kind} == {"gemm", "softmax"}


def test_without_a_measured_network_there_is_nothing_to_divide(bundle: Bundle) -> None:
    failed = [replace(law.network(COVERED, share=0.0), status="failed", latency_ns=None)]
    with pytest.raises(NothingSelectedError, match="no network was measured"):
        time_by_kind(replace(evidence(COVERED), networks=failed), bundle)
