"""Evaluate estimators on published measurements (NeuSight's tables of four GPUs), with a required error for each table.

The reader of `opmark datasets import` reads the tables. The split `random` holds out one kernel in five, by its key;
`real-model` trains on all random shapes and judges on shapes of real transformers. Errors are mean absolute
percentages. `--gpu all` judges every GPU; medians of the real-model split have limits of their own. `--derived` judges
the rule of bytes for kinds that a table lacks: softmax and layer norm at the rate of additions and GELU.

    python benchmarks/external.py [--data FOLDER] [--gpu a100 …] [--estimator lightgbm …] [--table bmm …]
        [--derived] [--json]

FOLDER holds `neusight-a100/` and the like; default: OPMARK_EXTERNAL_DATA, else ../shared/data.
"""

import argparse
import itertools
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
from opmark.kinds import work_of
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Inputs, features, hardware_of
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.roofline import fit_roofline
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
# Required median errors on shapes of real models, on every GPU.
MEDIAN_GATES = {("bmm", REAL): 0.06, ("linear", REAL): 0.05}
GPUS = {"a100": "NVIDIA A100", "v100": "Tesla V100", "t4": "Tesla T4", "p100": "Tesla P100"}
TABLES = ("linear", "bmm", "add", "gelu", "ln", "softmax", "conv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The result of one estimator on one table and split."""

    gpu: str
    table: str
    split: str
    estimator: str
    learned: int
    n: int
    mape: float
    median: float
    acc10: float
    gate: float | None
    median_gate: float | None
    seconds: float

    @property
    def missed(self) -> bool:
        """True if the line breaks a limit."""
        over = self.gate is not None and self.mape > self.gate
        return over or (self.median_gate is not None and self.median > self.median_gate)


def read(path: Path) -> tuple[list[Kernel], Floats]:
    """The distinct kernels of a table, each with the median of its latencies."""
    found: dict[Kernel, list[float]] = {}
    for entry in IMPORTERS.load("neusight").entries(path):
        if entry.kernel is not None:
            found.setdefault(entry.kernel, []).append(entry.latency_ns)
    return list(found), np.array([float(np.median(latencies)) for latencies in found.values()])


def judged(data: Path, gpu: str, table: str, estimator: str) -> list[Line]:
    """The results of one table of one GPU."""
    folder = data / f"neusight-{gpu}"
    hardware = hardware_of(facts_of(GPUS[gpu]))
    kernels, latency = read(folder / "train" / f"{table}.csv")
    inputs = features(kernels, None, hardware)
    held = np.array([int(kernel.key, 16) % 5 == 0 for kernel in kernels])
    lines = [_line(gpu, table, RANDOM, estimator, inputs.take(~held), latency[~held], inputs.take(held), latency[held])]
    real = folder / "test" / f"{table}.csv"
    if real.is_file():
        others, truth = read(real)
        lines.append(_line(gpu, table, REAL, estimator, inputs, latency, features(others, None, hardware), truth))
    return lines


def derived(data: Path, gpu: str) -> list[dict[str, object]]:
    """Median errors of the rule of bytes for kinds without matrix work, as if their own tables were missing."""
    folder = data / f"neusight-{gpu}"
    moved, latency = [], []
    for table in ("add", "gelu"):
        kernels, found = read(folder / "train" / f"{table}.csv")
        moved.append(np.array([float(work_of(kernel).moved_bytes) for kernel in kernels]))
        latency.append(found)
    known = np.concatenate(moved)
    rule = fit_roofline(np.zeros_like(known), known, np.concatenate(latency), ("bytes", "constant"))
    rows: list[dict[str, object]] = []
    for table, split in itertools.product(("softmax", "ln"), ("train", "test")):
        kernels, truth = read(folder / split / f"{table}.csv")
        asked = np.array([float(work_of(kernel).moved_bytes) for kernel in kernels])
        error = np.abs(rule.latency_ns(np.zeros_like(asked), asked) / truth - 1)
        rows.append({"gpu": gpu, "table": table, "split": split, "n": len(truth), "median": float(np.median(error))})
    return rows


def _line(
    gpu: str, table: str, split: str, estimator: str, known: Inputs, latency: Floats, asked: Inputs, truth: Floats
) -> Line:
    start = time.perf_counter()
    unknown = np.full(len(latency), np.nan)
    with single_thread():
        fitted = ESTIMATORS.load(estimator).fit(known, Latencies(hot_ns=latency, rotated_ns=unknown))
        found = all_metrics(truth, fitted.predict(asked).hot_ns)
    return Line(
        gpu=gpu,
        table=table,
        split=split,
        estimator=estimator,
        learned=len(known),
        n=len(truth),
        mape=found["mape"],
        median=found["median"],
        acc10=found["acc10"],
        gate=GATES.get((table, split)) if gpu == "a100" else None,
        median_gate=MEDIAN_GATES.get((table, split)),
        seconds=time.perf_counter() - start,
    )


def show(lines: Sequence[Line]) -> None:
    """Print the results as a table."""
    print(f"{'gpu':6}{'table':9}{'split':12}{'estimator':18}{'learned':>8}{'n':>7}{'MAPE':>8}{'median':>8}{'±10 %':>8}")
    for one in lines:
        limits = [] if one.gate is None else [f"≤ {one.gate:.1%}"]
        limits += [] if one.median_gate is None else [f"median ≤ {one.median_gate:.1%}"]
        verdict = f"{', '.join(limits)}: {'MISSED' if one.missed else 'reached'}" if limits else ""
        print(
            f"{one.gpu:6}{one.table:9}{one.split:12}{one.estimator:18}{one.learned:8,}{one.n:7,}{one.mape:8.1%}{one.median:8.1%}"
            f"{one.acc10:8.0%}  {verdict}"
        )


def main() -> None:
    """Print the results; the exit code is 1 if our estimator misses a required error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--gpu", nargs="+", default=["a100"], choices=[*GPUS, "all"])
    parser.add_argument("--estimator", nargs="+", default=["lightgbm"])
    parser.add_argument("--table", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--derived", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    gpus = list(GPUS) if "all" in arguments.gpu else arguments.gpu
    for gpu in gpus:
        if not (arguments.data / f"neusight-{gpu}").is_dir():
            sys.exit(f"{arguments.data / f'neusight-{gpu}'} is not there; see OPMARK_EXTERNAL_DATA")
    if arguments.derived:
        rules = [row for gpu in gpus for row in derived(arguments.data, gpu)]
        print(json.dumps(rules, indent=2) if arguments.json else "\n".join(map(str, rules)))
        return
    lines = [
        line
        for gpu in gpus
        for table in arguments.table
        for name in arguments.estimator
        for line in judged(arguments.data, gpu, table, name)
    ]
    if arguments.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        show(lines)
    if any(one.missed for one in lines if one.estimator == "lightgbm"):
        sys.exit(1)


if __name__ == "__main__":
    main()
