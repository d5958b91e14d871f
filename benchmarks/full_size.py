"""Whole networks in the sizes that people run: what their predictor tells, beside what this machine takes.

    opmark bench run full-size
    opmark datasets build bench/journals/full-size.jsonl --version 0.0.1
    python benchmarks/full_size.py datasets/DEVICE/0.0.1 [--predictor DEVICE[/VERSION]] [--json FILE]

Releases hold networks of up to 80 ms on one thread; those of the suite take up to half a second. `--predictor` names
whose predictor answers, by default the newest of the release's device. An error is predicted over measured, less one;
the label's own standard error stands beside it.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import opmark
from opmark.core.measurements.measurement import USABLE
from opmark.core.shipped import shipped_content
from opmark.predictors.inputs.graphs import graphs_of
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import path_of
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel


def rows(folder: Path, predictor: str) -> Iterator[dict[str, Any]]:
    """One row per measured network, the fastest first within each target; `inside` is of the 90 % interval."""
    release = opmark.load_release(folder)
    for target in release.targets:
        measured = [one for one in release.network_measurements(target.name) if one.status in USABLE and one.latency_ns]
        graphs = graphs_of(measured, target.name, cache=None, warn=lambda line: print(line, file=sys.stderr))
        bundle = load(path_of(shipped_content(), f"{predictor or release.device}/{target.name}"))
        model = CostModel(bundle, missing=BYTES_MOVED, exact=True)
        for one in sorted(measured, key=lambda one: one.latency_ns or 0):
            if one.graph_id not in graphs or not one.latency_ns:
                continue
            told = model.network(graphs[one.graph_id])
            yield {
                "target": target.name,
                "network": one.network,
                "measured_ms": one.latency_ns / 1e6,
                "standard_error": one.standard_error,
                "predicted_ms": told.total_ns / 1e6,
                "error": told.total_ns / one.latency_ns - 1,
                "inside": told.low_ns <= one.latency_ns <= told.high_ns,
                "extrapolated": sum(row.total_ns for row in told.rows if row.extrapolated) / told.total_ns,
            }


def summary(own: list[dict[str, Any]]) -> str:
    """One line on the networks of a target."""
    errors = [abs(row["error"]) for row in own]
    tenth, twentieth = (100 * sum(error <= limit for error in errors) / len(errors) for limit in (0.1, 0.05))
    inside = 100 * sum(row["inside"] for row in own) / len(own)
    label = 100 * statistics.median(row["standard_error"] for row in own)
    return (
        f"{own[0]['target']}: {len(own)} networks of {own[0]['measured_ms']:.0f} to {own[-1]['measured_ms']:.0f} ms; "
        f"within ±10 % {tenth:.0f} %, within ±5 % {twentieth:.0f} %, "
        f"median error {100 * statistics.median(errors):.1f} %, "
        f"in the 90 % interval {inside:.0f} %; "
        f"standard error of a label {label:.1f} % in the median"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", type=Path, help="the folder of a release of the suite full-size")
    parser.add_argument("--predictor", default="", metavar="DEVICE[/VERSION]", help="whose predictor answers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    arguments = parser.parse_args()
    found = list(rows(arguments.release, arguments.predictor))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    for target in dict.fromkeys(row["target"] for row in found):
        own = [row for row in found if row["target"] == target]
        for row in own:
            print(
                f"{row['network']:24} {row['measured_ms']:7.1f} ms ± {100 * row['standard_error']:.1f} %   "
                f"predicted {row['predicted_ms']:7.1f} ms  {100 * row['error']:+6.1f} %"
                f"{'' if row['inside'] else '  outside the interval'}"
                f"{'  extrapolated %.0f %%' % (100 * row['extrapolated']) if row['extrapolated'] > 0 else ''}"
            )
        print(summary(own) + "\n")


if __name__ == "__main__":
    main()
