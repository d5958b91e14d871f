"""The estimated time of a plan."""

from dataclasses import replace

import pytest

from opmark.bench.clock.protocol import PROTOCOLS
from opmark.bench.suite.duration import PACE_OF_GPU, PACE_OF_NETWORKS, PACES, estimated_duration
from opmark.bench.suite.plan import Plan, plan
from opmark.bench.suite.suite import KindSpec, Networks, Suite
from opmark.core.hardware.target import Target


@pytest.fixture(scope="module")
def few() -> Plan:
    return plan(Suite(name="few", targets=("null-t1",), kernels=0, kinds={"gemm": KindSpec(count=36)}))


def test_every_quality_has_a_pace() -> None:
    assert set(PACES) == set(PROTOCOLS)


def test_a_plan_takes_its_kernels_at_the_recorded_pace(few: Plan) -> None:
    assert len(few.kernels) == 36
    found = estimated_duration(few)
    assert (found.low_s, found.high_s, found.budgeted) == (pytest.approx(36 / 5.4), pytest.approx(36 / 3.2), False)
    assert "3.2 to 5.4 trials a second" in found.assumes
    quick = estimated_duration(replace(few, suite=replace(few.suite, quality="quick")))
    assert quick.high_s < found.low_s


def test_a_budget_ends_it(few: Plan) -> None:
    found = estimated_duration(replace(few, suite=replace(few.suite, budget="10s")))
    assert (found.low_s, found.high_s, found.budgeted) == (pytest.approx(36 / 5.4), 10.0, True)


def test_a_gpu_has_a_pace_of_its_own(few: Plan) -> None:
    gpu = Target(device="nvidia-h200", backend="torch-cuda", version="2.11")
    found = estimated_duration(replace(few, targets=(gpu,)))
    assert found.high_s == pytest.approx(36 / PACE_OF_GPU.slow_per_s)
    assert "on one GPU; " in found.assumes


def test_whole_networks_alone_are_slower_than_kernels() -> None:
    networks = Networks(training=("light-alexnet", "light-zfnet512"))
    planned = plan(Suite(name="whole", targets=("null-t1",), networks=networks))
    assert (len(planned.kernels), len(planned.networks)) == (0, 2)
    found = estimated_duration(planned)
    assert found.low_s == pytest.approx(2 / PACE_OF_NETWORKS.fast_per_s)
    assert found.high_s == pytest.approx(2 / PACE_OF_NETWORKS.slow_per_s)
    assert "networks a second" in found.assumes
    assert PACE_OF_NETWORKS.fast_per_s <= PACES["full"].fast_per_s
