"""Measure what a brief trial of columns saves and loses, and what a second covariance gains and costs.

Learns float32 kernels of one kind of a release on one core. Prints, beside a whole trial: the time and the error on
held-out shape groups of a brief one, those of the search for a second covariance, and the time of predictions with it.

    python benchmarks/learning.py [--release DEVICE/VERSION] [--target TARGET] [--kind KIND] [--json]
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from prediction import timed

from opmark.datasets.release.finding import find
from opmark.predictors.inputs.arrays import single_thread
from opmark.predictors.inputs.features import dtype_code
from opmark.predictors.inputs.switches import element_types
from opmark.predictors.inputs.tables import tables
from opmark.predictors.learners.residual import TriedResidual, tried_residual
from opmark.predictors.learners.roofline import fit_roofline
from opmark.predictors.model.metrics import METRICS
from opmark.predictors.model.training import release_hardware

REPEATS = 5


def told(name: str, seconds: float, tried: TriedResidual) -> dict[str, Any]:
    """One line of the table."""
    return {
        "search": name,
        "seconds": seconds,
        "error": tried.error,
        "within_10": METRICS["acc10"](np.exp(tried.target), np.exp(tried.held_out)),
    }


def compared(release_name: str, target_name: str, kind: str) -> dict[str, Any]:
    """Learn the kind's float32 kernels in each way."""
    release = find(release_name, Path("datasets"))
    table = tables(release.measurements(target_name), release_hardware(release))[kind]
    rows = element_types(table.inputs) == dtype_code("float32")
    inputs, labels = table.inputs.take(rows), table.labels.take(rows)
    roofline = fit_roofline(inputs.flops, inputs.moved_bytes, labels.hot_ns)
    above = np.log(labels.hot_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))
    whole_s, whole = timed(lambda: tried_residual(inputs, above, weight=labels.weight))
    brief_s, brief = timed(lambda: tried_residual(inputs, above, weight=labels.weight, brief=True))
    second_s, second = timed(whole.refined)
    assert whole.process is not None
    points = whole.process.rows * whole.process.scale + whole.process.centre
    one_s, _ = timed(lambda: whole.process.predict(points), REPEATS)
    two_s, _ = timed(lambda: second.process.predict(points), REPEATS)
    return {
        "rows": len(inputs),
        "searches": [told("whole", whole_s, whole), told("brief", brief_s, brief), told("second", second_s, second)],
        "second_is_better": second is not whole,
        "prediction_ratio": two_s / one_s,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the searches and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", default="amd-25-17-1-2vcpu-l3-32m/1.13.0")
    parser.add_argument("--target", default="torch-eager-t1")
    parser.add_argument("--kind", default="reduce")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    with single_thread():
        found = compared(chosen.release, chosen.target, chosen.kind)
    if chosen.json:
        print(json.dumps(found))
        return
    print(f"{chosen.target}, {chosen.kind}, float32: {found['rows']:,} rows")
    whole_s = found["searches"][0]["seconds"]
    for line in found["searches"]:
        print(
            f"{line['search']:>7}: {line['seconds']:5.1f} s ({line['seconds'] / whole_s:.0%} of a whole trial), "
            f"error {line['error']:.4f} nats, {line['within_10']:.1%} within ±10 %"
        )
    better = "is better and kept" if found["second_is_better"] else "is no better and dropped"
    print(f"the second covariance {better}; predictions take {found['prediction_ratio']:.2f} times as long")


if __name__ == "__main__":
    main()
