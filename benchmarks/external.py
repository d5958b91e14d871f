"""Evaluate estimators on published measurements (NeuSight's A100 tables), with a required error for each table.

The reader of `opmark datasets import` reads the tables. The split `random` holds out one kernel in five, by its key;
`real-model` trains on all random shapes and judges on shapes of real transformers. Errors are mean absolute
percentages.

    python benchmarks/external.py [--data FOLDER] [--estimator lightgbm …] [--table bmm …] [--json]

FOLDER holds `neusight-a100/`; default: OPMARK_EXTERNAL_DATA, else ../shared/data.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.datasets.importing.foreign import facts_of
from opmark.datasets.importing.importer import IMPORTERS
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Inputs, features, hardware_of
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.model.metrics import all_metrics

DATA = Path(os.environ.get("OPMARK_EXTERNAL_DATA", "../shared/data"))
RANDOM, REAL = "random", "real-model"
GATES = {
    ("bmm", RANDOM): 0.045,
    ("linear", RANDOM): 0.06,
    ("add", RANDOM): 0.035,
    ("gelu", RANDOM): 0.035,
    ("ln", RANDOM): 0.035,
    ("softmax", RANDOM): 0.035,
    ("conv", RANDOM): 0.20,
    ("bmm", REAL): 0.08,
    ("linear", REAL): 0.08,
}
TABLES = ("linear", "bmm", "add", "gelu", "ln", "softmax", "conv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The result of one estimator on one table and split."""

    table: str
    split: str
    estimator: str
    learned: int
    n: int
    mape: float
    median: float
    acc10: float
    gate: float | None
    seconds: float


def read(path: Path) -> tuple[list[Kernel], Floats]:
    """The distinct kernels of a table, each with the median of its latencies."""
    found: dict[Kernel, list[float]] = {}
    for entry in IMPORTERS.load("neusight").entries(path):
        if entry.kernel is not None:
            found.setdefault(entry.kernel, []).append(entry.latency_ns)
    return list(found), np.array([float(np.median(latencies)) for latencies in found.values()])


def judged(folder: Path, table: str, estimator: str) -> list[Line]:
    """The results of one table."""
    hardware = hardware_of(facts_of("NVIDIA A100"))
    kernels, latency = read(folder / "train" / f"{table}.csv")
    inputs = features(kernels, None, hardware)
    held = np.array([int(kernel.key, 16) % 5 == 0 for kernel in kernels])
    lines = [_line(table, RANDOM, estimator, inputs.take(~held), latency[~held], inputs.take(held), latency[held])]
    real = folder / "test" / f"{table}.csv"
    if real.is_file():
        others, truth = read(real)
        lines.append(_line(table, REAL, estimator, inputs, latency, features(others, None, hardware), truth))
    return lines


def _line(table: str, split: str, estimator: str, known: Inputs, latency: Floats, asked: Inputs, truth: Floats) -> Line:
    start = time.perf_counter()
    unknown = np.full(len(latency), np.nan)
    with single_thread():
        fitted = ESTIMATORS.load(estimator).fit(known, Latencies(hot_ns=latency, rotated_ns=unknown))
        found = all_metrics(truth, fitted.predict(asked).hot_ns)
    return Line(
        table=table,
        split=split,
        estimator=estimator,
        learned=len(known),
        n=len(truth),
        mape=found["mape"],
        median=found["median"],
        acc10=found["acc10"],
        gate=GATES.get((table, split)),
        seconds=time.perf_counter() - start,
    )


def show(lines: Sequence[Line]) -> None:
    """Print the results as a table."""
    print(f"{'table':9}{'split':12}{'estimator':18}{'learned':>8}{'n':>7}{'MAPE':>8}{'median':>8}{'±10 %':>8}  gate")
    for one in lines:
        verdict = "" if one.gate is None else f"≤ {one.gate:.1%}: {'reached' if one.mape <= one.gate else 'MISSED'}"
        print(
            f"{one.table:9}{one.split:12}{one.estimator:18}{one.learned:8,}{one.n:7,}{one.mape:8.1%}{one.median:8.1%}"
            f"{one.acc10:8.0%}  {verdict}"
        )


def main() -> None:
    """Print the results; the exit code is 1 if our estimator misses a required error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--estimator", nargs="+", default=["lightgbm"])
    parser.add_argument("--table", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.data / "neusight-a100"
    if not folder.is_dir():
        sys.exit(f"{folder} is not there; see OPMARK_EXTERNAL_DATA")
    lines = [line for table in arguments.table for name in arguments.estimator for line in judged(folder, table, name)]
    if arguments.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        show(lines)
    if any(one.gate is not None and one.mape > one.gate for one in lines if one.estimator == "lightgbm"):
        sys.exit(1)


if __name__ == "__main__":
    main()
