"""The method on measurements that nobody here made: NeuSight's A100 tables (sitar-lab/NeuSight, MIT).

A subset of rows, so that tests stay fast; `benchmarks/external.py` learns from all of them and prints the gates.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.datasets.importing.foreign import facts_of
from opmark.datasets.importing.importer import IMPORTERS
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.features import features, hardware_of
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.estimator import Fitted

ROOT = Path(__file__).resolve().parents[3]
TABLES = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data")) / "neusight-a100"
A100 = hardware_of(facts_of("NVIDIA A100"))

pytestmark = pytest.mark.skipif(not TABLES.is_dir(), reason="OPMARK_EXTERNAL_DATA has no neusight-a100")


@cache
def read(part: str, name: str) -> tuple[tuple[Kernel, ...], np.ndarray]:
    found: dict[Kernel, float] = {}
    for entry in IMPORTERS.load("neusight").entries(TABLES / part / f"{name}.csv"):
        assert entry.kernel is not None
        found.setdefault(entry.kernel, entry.latency_ns)
    return tuple(found), np.array(list(found.values()))


@cache
def fitted(name: str, learn: int, estimator: str) -> Fitted:
    """An estimator that learned `learn` random rows of the training table."""
    kernels, hot = read("train", name)
    rows = shuffled(len(kernels))[:learn]
    return ESTIMATORS.load(estimator).fit(
        features([kernels[row] for row in rows], None, A100),
        Latencies(hot_ns=hot[rows], rotated_ns=np.full(learn, np.nan)),
    )


def shuffled(count: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(count)


def mape(name: str, learn: int, *, estimator: str = "lightgbm", real: bool = False) -> float:
    """On random held-out rows of the training table, or on the shapes of real transformers."""
    kernels, hot = read("train", name)
    rest = shuffled(len(kernels))[-500:]
    asked, measured = read("test", name) if real else ([kernels[row] for row in rest], hot[rest])
    predicted = fitted(name, learn, estimator).predict(features(asked, None, A100)).hot_ns
    return float(np.mean(np.abs(predicted / measured - 1)))


@pytest.mark.parametrize(("name", "limit"), [("linear", 0.075), ("bmm", 0.085), ("conv", 0.26)])
def test_a_thousand_rows_come_near_the_gates(name: str, limit: float) -> None:
    assert mape(name, 1000) < limit


@pytest.mark.parametrize("name", ["add", "gelu", "ln", "softmax"])
def test_a_few_hundred_rows_pass_the_gate_of_what_streams(name: str) -> None:
    assert mape(name, 300) < 0.035


@pytest.mark.parametrize(("name", "limit"), [("linear", 0.08), ("bmm", 0.15)])
def test_shapes_of_real_transformers_are_within_reach(name: str, limit: float) -> None:
    assert mape(name, 1000, real=True) < limit


def test_a_hundred_and_fifty_rows_are_useful_already_and_beat_a_plain_target() -> None:
    ours = mape("linear", 150)
    assert ours < 0.10
    assert ours < mape("linear", 150, estimator="lightgbm-raw")
    assert ours < mape("linear", 150, estimator="nn-meter-forest")
