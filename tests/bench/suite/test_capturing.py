"""The progress of planning: every network is told before its graph is captured."""

from pathlib import Path

import pytest

from opmark.bench.clock.machine import processors
from opmark.bench.suite.capturing import Capture, CaptureCount, PlanProgress, capture_ahead, nobody
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Networks, NetworkSpec, Prior, Suite
from opmark.models.resolve import graph_of, is_captured

SUITE = Suite(
    name="s",
    targets=("null-a-t1", "null-b-t1"),
    quality="quick",
    kinds={"gemm": KindSpec(count=4)},
    prior=Prior(networks=("light-shufflenet",)),
    networks=Networks(training=("light-shufflenet",), held_out=("light-alexnet",)),
    exclude=("light-squeezenet",),
)


def test_every_network_of_every_target_is_told_once(tmp_path: Path) -> None:
    told: list[PlanProgress] = []
    assert plan(SUITE, cache=tmp_path, progress=told.append) == plan(SUITE, cache=tmp_path)
    assert [(now.done, now.total) for now in told if "capturing" in now.doing] == [(number, 6) for number in range(6)]
    networks = ("light-shufflenet", "light-alexnet", "light-squeezenet")
    assert [now.doing for now in told] == [
        f"{what} for {target}"
        for target in SUITE.targets
        for what in (*(f"capturing {name}" for name in networks), "drawing kernels")
    ]
    assert [told[0].left_s is None, told[-1].left_s] == [True, 0.0]


def test_the_time_left_follows_the_pace() -> None:
    told: list[PlanProgress] = []
    count = CaptureCount(told.append)
    count.total = 4
    for name in "abc":
        count.capturing(name, "t")
    spent = 2.0
    count._begun -= spent
    count.drawing("t")
    assert (told[-1].done, told[-1].total) == (3, 4)
    assert told[-1].left_s is not None
    assert spent / 3 <= told[-1].left_s < spent


@pytest.mark.skipif(processors() < 2, reason="one processor captures one graph after another")
def test_processes_capture_what_is_missing(tmp_path: Path) -> None:
    target = "onnxruntime-cpu-t1"
    # Sizes of their own: the graph of the usual one may be shipped.
    rand, plain = (NetworkSpec(model=f"{name}-tiny", dimensions={"size": 40}) for name in ("rand-wire", "plain"))
    needs = [
        Capture(spec=rand, target=target),
        Capture(spec=plain, target=target, exports=True),
        Capture(spec=NetworkSpec(model="no-such-network"), target=target),
    ]
    told: list[PlanProgress] = []
    capture_ahead(needs, tmp_path, told.append, fewest=1)
    assert {now.doing for now in told} == {f"capturing {spec.model} for {target}" for spec in (rand, plain)}
    assert all(is_captured(spec.model, target, cache=tmp_path, dimensions=spec.dimensions) for spec in (rand, plain))
    # Names may differ: the runtime makes up those of what it inserts.
    found, again = (
        graph_of(plain.model, target, cache=folder, dimensions=plain.dimensions)
        for folder in (tmp_path, tmp_path / "other")
    )
    assert found.id == again.id


def test_nothing_is_started_for_graphs_that_are_there_or_few(tmp_path: Path) -> None:
    needs = [Capture(spec=NetworkSpec(model="light-shufflenet"), target="onnxruntime-cpu-t1")]
    capture_ahead(needs, tmp_path, nobody)
    assert not list(tmp_path.iterdir())
