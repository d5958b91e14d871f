"""Measure what a brief trial of columns saves and loses, and what further covariances gain and cost.

Learns float32 kernels of one kind of a release on one core. Prints, beside a whole trial: the time and the error on
held-out shape groups of a brief one, those of a whole one with the search for further covariances after it, and the
time of predictions with them. The lengths of a trial follow all rows. The errors on unseen groups are those of the same
learner when it knew nothing of one shape group in five.

    python benchmarks/learning.py [--release DEVICE/VERSION] [--target TARGET] [--kind KIND] [--json]
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from prediction import timed

from opmark.datasets.release.finding import find
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Inputs, dtype_code
from opmark.predictors.inputs.shape_groups import held_out_groups
from opmark.predictors.inputs.switches import element_types
from opmark.predictors.inputs.tables import tables
from opmark.predictors.learners.residual import TriedResidual, tried_residual
from opmark.predictors.learners.roofline import fit_roofline
from opmark.predictors.model.metrics import METRICS
from opmark.predictors.model.training import release_hardware

REPEATS = 5
_SEARCHES: Mapping[str, Callable[[Inputs, Floats, Floats | None], TriedResidual]] = {
    "whole": lambda inputs, target, weight: tried_residual(inputs, target, weight=weight),
    "brief": lambda inputs, target, weight: tried_residual(inputs, target, weight=weight, brief=True),
    "further": lambda inputs, target, weight: tried_residual(inputs, target, weight=weight).refined(),
}


def told(name: str, seconds: float, tried: TriedResidual, unseen: tuple[Floats, Floats]) -> dict[str, Any]:
    """One line of the table; `unseen` are the predictions and the targets of rows that were not learned from."""
    predicted, target = unseen
    return {
        "search": name,
        "seconds": seconds,
        "error": tried.error,
        "within_10": METRICS["acc10"](np.exp(tried.target), np.exp(tried.held_out)),
        "unseen_error": float(np.abs(predicted - target).mean()),
        "unseen_within_10": METRICS["acc10"](np.exp(target), np.exp(predicted)),
    }


def compared(release_name: str, target_name: str, kind: str) -> dict[str, Any]:
    """Learn the kind's float32 kernels in each way."""
    release = find(release_name, Path("datasets"))
    table = tables(release.measurements(target_name), release_hardware(release))[kind]
    rows = element_types(table.inputs) == dtype_code("float32")
    inputs, labels = table.inputs.take(rows), table.labels.take(rows)
    roofline = fit_roofline(inputs.flops, inputs.moved_bytes, labels.hot_ns)
    above = np.log(labels.hot_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))
    unseen = held_out_groups(inputs.kernels)
    processes, lines = {}, []
    for name, search in _SEARCHES.items():
        seconds, tried = timed(lambda search=search: search(inputs, above, labels.weight))
        known = search(inputs.take(~unseen), above[~unseen], labels.take(~unseen).weight)
        lines.append(told(name, seconds, tried, (known.fitted().predict(inputs.take(unseen)), above[unseen])))
        processes[name] = tried.process
    whole, further = processes["whole"], processes["further"]
    assert whole is not None
    assert further is not None
    points = whole.rows * whole.scale + whole.centre
    one_s, _ = timed(lambda: whole.predict(points), REPEATS)
    many_s, _ = timed(lambda: further.predict(points), REPEATS)
    return {
        "rows": len(inputs),
        "unseen": int(unseen.sum()),
        "searches": lines,
        "further_are_better": len(further.hyper) > len(whole.hyper),
        "prediction_ratio": many_s / one_s,
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
    print(f"{chosen.target}, {chosen.kind}, float32: {found['rows']:,} rows, {found['unseen']:,} of them unseen")
    whole_s = found["searches"][0]["seconds"]
    for line in found["searches"]:
        print(
            f"{line['search']:>7}: {line['seconds']:5.1f} s ({line['seconds'] / whole_s:.0%} of a whole trial), "
            f"error {line['error']:.4f} nats, {line['within_10']:.1%} within ±10 %; on unseen groups "
            f"{line['unseen_error']:.4f}, {line['unseen_within_10']:.1%}"
        )
    better = "are better and kept" if found["further_are_better"] else "are no better and dropped"
    print(f"further covariances {better}; predictions take {found['prediction_ratio']:.2f} times as long")


if __name__ == "__main__":
    main()
