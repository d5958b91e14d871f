"""Why a prediction is what it is."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.predictors import law

from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import load_suite
from opmark.core.errors import NothingSelectedError
from opmark.kinds import KINDS
from opmark.predictors.model.bundle import Bundle, load, save
from opmark.predictors.model.explain import COMPUTE, MEMORY, OVERHEAD, explain, write_suite
from opmark.predictors.model.training import train_on

BIG = KINDS.load("gemm").kernel(KINDS.load("gemm").parameters(m=2048, k=4096, n=4096))
VECTOR = KINDS.load("gemm").kernel(KINDS.load("gemm").parameters(m=1, k=4096, n=4096))
TINY = KINDS.load("softmax").kernel(KINDS.load("softmax").parameters(shape=(1, 8), axis=1))
GRAPH = law.graph("net", [*law.kernels("gemm", 6, 7), *law.kernels("softmax", 4, 7), BIG, VECTOR, TINY], free=2)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(law.rows(80, ("gemm", "softmax")), law.TARGET, hardware=law.HARDWARE)


def test_shares_add_up_and_kernels_are_bound_by_what_they_do_most(bundle: Bundle) -> None:
    found = explain(bundle, GRAPH)
    assert sum(row.share for row in found.rows) == pytest.approx(1)
    assert sum(row.total_ns for row in found.rows) == pytest.approx(found.prediction.total_ns)
    assert [row.share for row in found.rows] == sorted((row.share for row in found.rows), reverse=True)
    assert sum(share for _, share in found.by_kind) == pytest.approx(1)
    assert dict(found.by_kind).keys() == {"gemm", "softmax"}
    bound = {row.kernel: row.bound for row in found.rows}
    assert (bound[BIG], bound[VECTOR], bound[TINY]) == (COMPUTE, MEMORY, OVERHEAD)
    assert {name for name, _ in found.by_bound} <= {COMPUTE, MEMORY, OVERHEAD}


def test_the_interval_comes_apart_into_what_errs_together(bundle: Bundle) -> None:
    found = explain(bundle, GRAPH)
    parts = found.interval
    values = (parts.kinds, parts.groups, parts.kernels, parts.composition)
    assert sum(values) == pytest.approx(1)
    assert min(values) >= 0
    doubts = sum(row.doubt_share for row in found.rows)
    assert doubts == pytest.approx(1 - parts.composition)


def test_it_says_how_much_the_next_kernels_settle_and_when_the_sum_dominates(bundle: Bundle) -> None:
    few, all_of_them = (explain(bundle, GRAPH, suggestions=count) for count in (2, 100))
    assert 0 < few.settled_share < all_of_them.settled_share
    assert all_of_them.settled_share == pytest.approx(1 - all_of_them.interval.composition)
    assert few.narrower == pytest.approx(1 - math.sqrt(1 - few.settled_share))
    unsure = replace(bundle.constants, composition_deviation=5.0)
    vague = explain(replace(bundle, manifest=replace(bundle.manifest, constants=unsure)), GRAPH)
    assert vague.sum_dominates
    assert not few.sum_dominates
    assert vague.settled_share < few.settled_share


def test_what_is_extrapolated_is_said_and_asked_for_first(bundle: Bundle) -> None:
    found = explain(bundle, GRAPH, suggestions=5)
    beyond = [row for row in found.rows if row.extrapolated]
    assert BIG in {row.kernel for row in beyond}
    assert found.extrapolated_share == pytest.approx(sum(row.share for row in beyond))
    assert len(found.next_kernels) == 5
    assert found.next_kernels[0] == BIG


def test_the_suite_it_writes_is_one_that_bench_plans(bundle: Bundle, tmp_path: Path) -> None:
    found = explain(bundle, GRAPH, suggestions=4)
    path = tmp_path / "next.yaml"
    write_suite(path, found.next_kernels, target="null-t1", model="net")
    suite = load_suite(path)
    assert {trial.kernel for trial in plan(suite).kernels} == set(found.next_kernels)
    with pytest.raises(NothingSelectedError):
        write_suite(path, (), target="null-t1", model="net")


@pytest.mark.parametrize("name", ["my next suite", "a\nschema: 2", "\udcff", "nächste"])
def test_a_suite_in_any_file_can_be_read(bundle: Bundle, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.yaml"
    found = explain(bundle, GRAPH, suggestions=1)
    write_suite(path, found.next_kernels, target="null-t1", model=f"{name}.onnx")
    assert load_suite(path).name == "next"


def test_a_bundle_keeps_what_it_takes(bundle: Bundle, tmp_path: Path) -> None:
    save(bundle, tmp_path / "b")
    again = explain(load(tmp_path / "b"), GRAPH)
    assert [row.bound for row in again.rows] == [row.bound for row in explain(bundle, GRAPH).rows]
