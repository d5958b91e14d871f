"""The method on measurements that nobody here made: NeuSight's A100 tables (sitar-lab/NeuSight, MIT).

Kernels are described in our kinds; only the estimator and the features are at work.
"""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from opmark.core.kernel import Kernel
from opmark.predictors.estimator import Latencies
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.features import features
from opmark.predictors.hardware import Hardware

ROOT = Path(__file__).resolve().parents[2]
TABLES = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data")) / "neusight-a100"
A100 = Hardware(vector_bytes=512, cache_bytes=(192 << 10, 40 << 20))

pytestmark = pytest.mark.skipif(not TABLES.is_dir(), reason="OPMARK_EXTERNAL_DATA has no neusight-a100")


def read(part: str, name: str) -> tuple[list[Kernel], np.ndarray]:
    kernels, latencies = [], []
    with (TABLES / part / f"{name}.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            size = {key.lower(): int(float(row[key])) for key in ("B", "M", "N", "K")}
            kernels.append(_kernel(name, size))
            latencies.append(float(row["Latency"]) * 1e6)
    return kernels, np.array(latencies)


def _kernel(name: str, size: dict[str, int]) -> Kernel:
    if name == "linear":
        return Kernel.of("gemm", {"m": size["b"] * size["m"], "n": size["n"], "k": size["k"]})
    batch = (size["b"],)
    return Kernel.of("matmul", {"batch_a": batch, "batch_b": batch, **{key: size[key] for key in ("m", "n", "k")}})


def mape(name: str, learn: int) -> tuple[float, float]:
    """On random held-out rows of the training table, and on the shapes of real transformers."""
    kernels, hot = read("train", name)
    order = np.random.default_rng(0).permutation(len(kernels))
    rows, rest = order[:learn], order[-500:]
    fitted = ESTIMATORS.load("lightgbm").fit(
        features([kernels[row] for row in rows], None, A100),
        Latencies(hot_ns=hot[rows], rotated_ns=np.full(learn, np.nan)),
    )
    errors = []
    for asked, measured in (([kernels[row] for row in rest], hot[rest]), read("test", name)):
        predicted = fitted.predict(features(asked, None, A100)).hot_ns
        errors.append(float(np.mean(np.abs(predicted / measured - 1))))
    return errors[0], errors[1]


@pytest.mark.parametrize(("name", "random_limit", "real_limit"), [("linear", 0.075, 0.08), ("bmm", 0.085, 0.15)])
def test_a_thousand_rows_come_near_the_gates(name: str, random_limit: float, real_limit: float) -> None:
    random_error, real_error = mape(name, 1000)
    assert random_error < random_limit
    assert real_error < real_limit


def test_a_hundred_and_fifty_rows_are_useful_already() -> None:
    random_error, real_error = mape("linear", 150)
    assert random_error < 0.10
    assert real_error < 0.15
