"""Labels of several journals: between them, nearer to the sure one, and less sure where they disagree."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.datasets import sample
from tests.datasets.journals import write_journal

from opmark.core.measurements.measurement import COARSE, DOUBTFUL, FAILED, OK
from opmark.datasets.release.building import build
from opmark.datasets.release.pooling import pooled, pooled_label
from opmark.datasets.release.release import load

LATENCIES = st.floats(min_value=1.0, max_value=1e9)
ERRORS = st.floats(min_value=0.002, max_value=0.3)


def row(latency_ns: float, error: float | None, **changes: Any) -> dict[str, Any]:
    """A coarse row of one kernel, whose rotated label takes twice as long."""
    return {
        "target": "t",
        "kind": "conv",
        "parameters": "{}",
        "status": COARSE,
        "reason": "",
        "latency_hot_ns": latency_ns,
        "latency_rotated_ns": 2 * latency_ns,
        "standard_error_hot": error,
        "standard_error_rotated": error,
        **changes,
    }


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(LATENCIES, ERRORS), min_size=1, max_size=6))
def test_a_pooled_label_lies_between_its_labels(labels: list[tuple[float, float]]) -> None:
    latencies, errors = zip(*labels, strict=True)
    latency_ns, error = pooled_label(latencies, errors)
    assert min(latencies) * (1 - 1e-9) <= latency_ns <= max(latencies) * (1 + 1e-9)
    assert error > 0
    assert pooled_label(latencies[::-1], errors[::-1]) == pytest.approx((latency_ns, error))


def test_two_labels_that_agree_are_surer_than_one() -> None:
    latency_ns, error = pooled_label([100.0, 100.0], [0.04, 0.04])
    assert latency_ns == pytest.approx(100.0)
    assert error == pytest.approx(math.hypot(0.04, 0.005) / math.sqrt(2))


def test_the_sure_label_decides_and_a_distant_one_makes_it_less_sure() -> None:
    latency_ns, error = pooled_label([100.0, 106.0], [0.01, 0.05])
    assert 100.0 < latency_ns < 101.0
    assert error < 0.02
    _, apart = pooled_label([100.0, 150.0], [0.01, 0.05])
    assert apart > 0.05


def test_nine_of_ten_pooled_labels_hold_the_truth() -> None:
    chance = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        errors = chance.uniform(0.01, 0.06, 3)
        latency_ns, error = pooled_label(np.exp(chance.normal(5.0, errors)).tolist(), errors.tolist())
        held += abs(math.log(latency_ns) - 5.0) <= 1.645 * error
    assert 0.86 <= held / 400 <= 0.97


def test_both_labels_and_the_status_follow() -> None:
    (found,) = pooled([row(100.0, 0.06, status=DOUBTFUL)], [row(102.0, 0.06, status=DOUBTFUL)])
    assert found["latency_hot_ns"] == pytest.approx(math.sqrt(100.0 * 102.0))
    assert found["latency_rotated_ns"] == pytest.approx(2 * math.sqrt(100.0 * 102.0))
    assert found["standard_error_hot"] < 0.05
    assert found["status"] == COARSE
    assert found["reason"] == "standard error of 4.3% over all trials"


@pytest.mark.parametrize(
    ("best", "repeat"),
    [
        (row(100.0, None, status=OK), row(150.0, None, status=OK)),
        (row(100.0, 0.03), row(150.0, 0.03, parameters="{'batch':2}")),
        (row(100.0, 0.03), row(150.0, 0.03, target="other")),
        (row(100.0, 0.03), row(150.0, 0.03, status=FAILED)),
        (row(100.0, 0.03, status=FAILED), row(150.0, 0.03)),
    ],
    ids=["no errors", "another kernel", "another target", "a failed repeat", "a refused row"],
)
def test_a_row_without_usable_repeats_stays_as_it_is(best: dict[str, Any], repeat: dict[str, Any]) -> None:
    assert pooled([best], [repeat]) == [best]


def test_a_release_tells_the_labels_of_all_journals(tmp_path: Path) -> None:
    kernels = sample.kernels(4)
    journals = [
        write_journal(tmp_path / f"{name}.jsonl", own, slower=slower)
        for name, own, slower in (("a", kernels, 1.0), ("b", kernels[:2], 1.02))
    ]
    release = load(build(journals, tmp_path / "datasets").path)
    rows = {one["kernel_key"]: one for one in release.kernels.to_dict("records")}
    repeats = {one["kernel_key"]: one for one in release.tables["kernel_repeats"].to_pylist()}
    assert len(repeats) == 2
    for one in release.measurements(sample.TARGET.name):
        own = rows[one.kernel.key]
        if one.kernel.key in repeats:
            both = sorted((own["latency_hot_ns"], repeats[one.kernel.key]["latency_hot_ns"]))
            assert both[0] < one.latency_hot_ns < both[1]
        else:
            assert one.latency_hot_ns == own["latency_hot_ns"]
