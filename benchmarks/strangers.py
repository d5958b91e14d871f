"""Predict networks that OpMark was not made for, beside measured, and find misses that nobody is warned of.

Four groups: classes of `torch.nn`; functions of torch; architectures of transformers that the zoo does not hold,
with two layers each; architectures of timm (`pip install 'opmark[strangers]'`). Each is predicted for eager torch, one
thread, with work without a predictor going by its bytes, and run here. The predictor is that of this sort of machine if
one comes with OpMark. Predictions may be for another device, so a miss is a ratio to the median ratio of known networks.
A *silent miss* is off by a factor of five or more, outside its interval, and neither refused nor warned of; the exit code
is 1 if there is one. docs/guide/predictors.md shows what was found.

    python benchmarks/strangers.py [--group modules] [--only LSTM] [--seconds 0.5] [--device DEVICE] [--json FILE]
"""

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import strangers_cases
import torch

from opmark.core.errors import OpMarkError
from opmark.core.shipped import shipped_content
from opmark.models import zoo
from opmark.models.live_module import graph_of_module
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import path_of, stored_bundles
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.unmodelled import warnings_about
from opmark.studies.machine.facts import is_this_machine

TARGET = "torch-eager-t1"
KNOWN = ("resnet-small", "bert-tiny", "mobilenet-small", "encoder-small", "squeeze-small")
# A miss: off by this factor after the common scale.
MISS = 5.0
COLUMNS = ("name", "verdict", "measured_ms", "predicted_ms", "ratio", "inside", "share", "operators")


def processor_ns(module: torch.nn.Module, inputs: tuple[Any, ...], seconds: float) -> float:
    """The least processor time of several calls on one thread: other programs cannot add much to it."""
    with torch.inference_mode():
        module(*inputs)
        found, end = [], time.perf_counter() + seconds
        while len(found) < 3 or time.perf_counter() < end:
            begun = time.thread_time_ns()
            module(*inputs)
            found.append(time.thread_time_ns() - begun)
    return float(min(found))


def outcome(model: CostModel, name: str, build: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """One stranger, predicted and measured; a failure becomes its verdict."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS) | {"name": name}
    try:
        module, inputs = build()
        module.eval()
    except Exception as error:  # noqa: BLE001 (the package at hand may lack anything)
        return row | {"verdict": "absent", "operators": _sentence(error)}
    try:
        graph = graph_of_module(module, inputs, TARGET, name=name)
        found = model.network(graph)
    except OpMarkError as error:
        return row | {"verdict": "refused", "operators": _sentence(error)}
    except Exception as error:  # noqa: BLE001 (a finding, not an end)
        return row | {"verdict": "CRASHED" if _runs(module, inputs) else "does not run", "operators": _sentence(error)}
    try:
        CostModel(model.bundle).network(graph)
        refused = False
    except OpMarkError:
        refused = True
    verdict = "refused" if refused else "warned" if warnings_about(found.unmodelled) else "modelled"
    try:
        took_ns = processor_ns(module, inputs, seconds)
    except Exception as error:  # noqa: BLE001
        return row | {"verdict": f"{verdict}, does not run", "operators": _sentence(error)}
    return row | {
        "verdict": verdict,
        "measured_ms": took_ns / 1e6,
        "predicted_ms": found.total_ns / 1e6,
        "low_ms": found.low_ns / 1e6,
        "high_ms": found.high_ns / 1e6,
        "share": found.bytes_moved_share,
        "operators": " ".join(one.operator.removeprefix("aten.") for one in found.unmodelled),
    }


def _runs(module: torch.nn.Module, inputs: tuple[Any, ...]) -> bool:
    try:
        processor_ns(module, inputs, 0.0)
    except Exception:  # noqa: BLE001
        return False
    return True


def judged(rows: list[dict[str, Any]], scale: float) -> list[dict[str, Any]]:
    """The rows with their ratio to `scale`, and the silent misses marked."""
    for row in rows:
        if row["measured_ms"] is None:
            continue
        fair_ms = row["measured_ms"] / scale
        row["ratio"] = fair_ms / row["predicted_ms"]
        row["inside"] = row["low_ms"] <= fair_ms <= row["high_ms"]
        far = not 1 / MISS < row["ratio"] < MISS
        if row["verdict"] == "modelled" and far and not row["inside"]:
            row["verdict"] = "SILENT MISS"
    return rows


def known() -> Iterator[tuple[str, Callable[[], Any]]]:
    def build(name: str) -> Any:
        built = zoo.build(name)
        return built.module, built.inputs

    return ((name, lambda name=name: build(name)) for name in KNOWN)


def _sentence(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:140]


def _shown(row: dict[str, Any]) -> str:
    def number(value: Any, form: str) -> str:
        return "–" if value is None else format(value, form)

    inside = {None: "–", True: "inside", False: "outside"}[row["inside"]]
    return (
        f"{row['name']:32} {row['verdict']:12} {number(row['measured_ms'], '10.3f')} {number(row['predicted_ms'], '10.3f')} "
        f"{number(row['ratio'], '8.2f')} {inside:8} {number(row['share'], '6.0%')}  {row['operators'] or ''}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", action="append", choices=sorted(strangers_cases.GROUPS))
    parser.add_argument("--only", default="", help="a part of the names to try")
    parser.add_argument("--seconds", type=float, default=0.5, help="measuring time of each")
    parser.add_argument(
        "--device", default="", help="the device of the predictor; default: this machine's, if there is one"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    shipped = shipped_content()
    own = [one.device for one in stored_bundles(shipped) if one.target == TARGET and is_this_machine(one.device)]
    device = options.device or (own[-1] if own else "")
    model = CostModel(load(path_of(shipped, f"{device}/{TARGET}" if device else TARGET)), missing=BYTES_MOVED)
    print(f"predictor: {model.bundle.target}")
    every = [outcome(model, name, build, options.seconds) for name, build in known()]
    base = [row for row in every if row["measured_ms"] is not None]
    if not base:
        sys.exit(f"no known network runs here: {every[0]['operators']}")
    scale = statistics.median(row["measured_ms"] / row["predicted_ms"] for row in base)
    spread = [row["measured_ms"] / row["predicted_ms"] / scale for row in base]
    print(f"known networks take {scale:.2f} times the prediction here (ratios {min(spread):.2f} to {max(spread):.2f})")
    print(
        f"{'':32} {'verdict':12} {'measured':>10} {'predicted':>10} {'ratio':>8} {'interval':8} {'bytes':>6}  operators"
    )
    rows = []
    for group in options.group or strangers_cases.GROUPS:
        for name, build in strangers_cases.GROUPS[group]():
            if options.only in name:
                rows += judged([outcome(model, name, build, options.seconds)], scale)
                print(_shown(rows[-1]), flush=True)
    modelled = [row["ratio"] for row in rows if row["ratio"] and row["verdict"] in {"modelled", "SILENT MISS"}]
    if modelled:
        typical = math.exp(statistics.median(abs(math.log(ratio)) for ratio in modelled)) - 1
        print(f"{len(rows)} strangers, {len(modelled)} modelled with a median error of {typical:.0%}")
    silent = [row["name"] for row in rows if row["verdict"] in {"SILENT MISS", "CRASHED"}]
    print(f"silent misses and crashes: {', '.join(silent) or 'none'}")
    if options.json is not None:
        options.json.write_text(json.dumps({"scale": scale, "rows": rows}, indent=1))
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
