"""How long a plan takes: at a recorded pace, and never longer than its budget."""

from dataclasses import replace

import pytest

from opmark.bench.clock.protocol import PROTOCOLS
from opmark.bench.suite.duration import PACES, duration
from opmark.bench.suite.plan import Plan, plan
from opmark.bench.suite.suite import KindSpec, Suite


@pytest.fixture(scope="module")
def planned() -> Plan:
    return plan(Suite(name="few", targets=("null-t1",), kernels=0, kinds={"gemm": KindSpec(count=36)}))


def test_every_quality_has_a_pace() -> None:
    assert set(PACES) == set(PROTOCOLS)


def test_a_plan_takes_its_kernels_at_the_recorded_pace(planned: Plan) -> None:
    assert len(planned.kernels) == 36
    found = duration(planned)
    assert (found.low_s, found.high_s, found.budgeted) == (pytest.approx(12), pytest.approx(24), False)
    assert "1.5 to 3 trials a second" in found.assumes
    quick = duration(replace(planned, suite=replace(planned.suite, quality="quick")))
    assert quick.high_s < found.low_s


def test_a_budget_ends_it(planned: Plan) -> None:
    found = duration(replace(planned, suite=replace(planned.suite, budget="15s")))
    assert (found.low_s, found.high_s, found.budgeted) == (pytest.approx(12), 15.0, True)
