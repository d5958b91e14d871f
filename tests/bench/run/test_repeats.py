"""A share that is measured again, and the comparison of two journals."""

from dataclasses import replace
from pathlib import Path

import pytest

from opmark.bench.run.repeats import agreement, retest_suite
from opmark.bench.run.runner import run
from opmark.bench.suite.suite import Networks, NetworkSpec, Suite
from opmark.core.errors import ContentError
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.records import KernelTrial

RETESTED = Suite(
    name="twice",
    targets=("null-t1",),
    kernels=60,
    at_least=2,
    networks=Networks(
        training=tuple(
            NetworkSpec(model=f"light-{name}")
            for name in ("squeezenet", "shufflenet", "alexnet", "resnet50", "densenet121", "zfnet512", "vgg19")
        )
    ),
)


@pytest.fixture(scope="module")
def retested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("retest") / "twice.jsonl"
    run(RETESTED, journal=path)
    return path


def test_a_share_of_what_was_finished_first_is_chosen_the_same_way_every_time(retested: Path) -> None:
    found = read_journal(retested)
    usable = [trial for trial in found.trials if trial in found.labels]
    kernels = [trial for trial in usable if isinstance(found.trials[trial], KernelTrial)]
    networks = [trial for trial in usable if trial not in kernels]
    chosen = retest_suite(RETESTED, retested, share=0.1)
    assert chosen == retest_suite(RETESTED, retested, share=0.1)
    assert len(set(chosen.only) & set(kernels)) == round(0.1 * len(kernels))
    assert set(chosen.only) & set(kernels) <= set(kernels[: (len(kernels) + 1) // 2])
    # A tenth of seven networks would be one.
    assert set(chosen.only) - set(kernels) == set(networks[:4])
    assert chosen.id == RETESTED.id


def test_a_second_journal_agrees_with_the_first_as_far_as_the_backend_is_steady(retested: Path) -> None:
    again = retested.with_name("again.jsonl")
    summary = run(retest_suite(RETESTED, retested, share=0.2), journal=again)
    found = {(one.target, one.what): one for one in agreement(retested, again)}
    assert set(found) == {("null-t1", "kernels"), ("null-t1", "networks")}
    assert sum(one.rows for one in found.values()) <= summary.planned
    assert found["null-t1", "networks"].rows == 4
    for one in found.values():
        assert one.median <= one.p90 <= one.p95 <= one.largest < 0.05
        assert one.floor == pytest.approx(1.4826 * one.median / 2**0.5)
        assert one.covered is not None
        assert one.covered >= 0.8
    assert agreement(retested, retested)[0].largest == 0


def test_a_suite_that_changed_since_is_refused(retested: Path) -> None:
    with pytest.raises(ContentError, match="suite 'twice' with other content"):
        retest_suite(replace(RETESTED, kernels=61), retested)
