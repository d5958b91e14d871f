"""Drawing kernels of one kind: floors of its operators, and what a greater count does to a draw."""

from collections import Counter

import pytest

from opmark.bench.suite.allocation import operator_of
from opmark.bench.suite.sampling import Sampler
from opmark.core.errors import UsageError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Choice, Setting
from opmark.kinds import KINDS

FLOOR = 8
FLOORS = {"batch": FLOOR, "local-response": FLOOR, "layer": FLOOR}


def norm(op: str, channels: int, side: int) -> Kernel:
    kind = KINDS.load("norm")
    more = {"window": 5} if op == "local-response" else {}
    return kind.kernel(kind.parameters(op=op, shape=(1, channels, side, side), axis=1, **more))


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    usual = [norm("batch", 16 * number, 14) for number in range(1, 40)]
    rare = [norm("local-response", 96, 27), norm("local-response", 256, 13)]
    return Sampler(kind=KINDS.load("norm"), setting=Setting(language="onnx"), seed="1", real=[*usual, *rare])


def test_an_operator_that_networks_seldom_have_gets_its_floor_within_the_count(sampler: Sampler) -> None:
    bare = Counter(map(operator_of, sampler.draw(60, 0.7)))
    drawn = sampler.draw(60, 0.7, FLOORS)
    found = Counter(map(operator_of, drawn))
    assert bare["local-response"] < FLOOR <= found["local-response"]
    assert len(drawn) == len({kernel.key for kernel in drawn}) == 60
    assert found["batch"] >= FLOOR
    assert drawn == sampler.draw(60, 0.7, FLOORS)


def test_floors_are_all_given_where_the_count_is_less_than_they_are(sampler: Sampler) -> None:
    found = Counter(map(operator_of, sampler.draw(3, 0.7, FLOORS)))
    assert found == {"batch": FLOOR, "local-response": FLOOR}
    assert sampler.draw(0, 0.7, FLOORS) == ()


@pytest.mark.parametrize("floors", [{}, FLOORS])
def test_a_greater_count_draws_the_same_kernels_and_further_ones(sampler: Sampler, floors: dict[str, int]) -> None:
    before: set[str] = set()
    for count in (5, 17, 18, 40, 41, 90, 150):
        keys = {kernel.key for kernel in sampler.draw(count, 0.7, floors)}
        assert len(keys) == max(count, 2 * FLOOR if floors else 0)
        assert before <= keys
        before = keys


def test_a_floor_takes_only_what_nobody_refuses(sampler: Sampler) -> None:
    first = {kernel.key for kernel in sampler.draw(60, 0.7, FLOORS) if operator_of(kernel) == "local-response"}
    hidden = Sampler(
        kind=sampler.kind, setting=sampler.setting, seed="1", real=sampler.real, excluded=frozenset(first)
    ).draw(60, 0.7, FLOORS)
    assert not first & {kernel.key for kernel in hidden}
    assert Counter(map(operator_of, hidden))["local-response"] >= FLOOR


def test_values_that_no_kernel_has_are_named() -> None:
    axes = {"stride": Choice(("kernel",))}
    setting = Setting(language="onnx", dtype="uint8")
    sampler = Sampler(kind=KINDS.load("conv-int8"), setting=setting, seed="1", axes=axes)
    with pytest.raises(UsageError, match="no kernel can be drawn with stride 'kernel'") as caught:
        sampler.draw(2, 0.0)
    assert caught.value.where == "kinds.conv-int8.space"
