"""Predict networks that OpMark was not made for, beside measured, and find misses that nobody is warned of.

Four groups: classes of `torch.nn`; functions of torch; architectures of transformers that the zoo does not hold,
with two layers each; architectures of timm (`pip install 'opmark[strangers]'`). Each is predicted for eager torch, one
thread, with work without a predictor going by its bytes, and run here. The predictor is that of this sort of machine if
one comes with OpMark. Every network is looked at in `--passes` at different moments, beside the sentinels and in a
process with the allocator's settings of releases, and told at the calm state of the predictor's release. Known networks
are measured too: the median ratio to their released latencies, or to their predictions where there are none, is the
scale of all. A *silent miss* is off by a factor of five or more, outside its interval, and neither refused nor warned of;
the exit code is 1 if there is one. docs/guide/predictors.md shows what was found. With `--kept`, looks are kept in a file
and an interrupted run goes on.

    python benchmarks/strangers.py [--group modules] [--only LSTM] [--passes 2] [--kept FILE]
        [--device DEVICE] [--json FILE]
"""

import argparse
import json
import math
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import strangers_cases
import strangers_measuring as measuring
import torch

from opmark.core.errors import OpMarkError
from opmark.core.shipped import shipped_content
from opmark.models import zoo
from opmark.models.live_module import graph_of_module
from opmark.models.resolve import graph_of
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import path_of, stored_bundles
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.manifest import read_manifest
from opmark.predictors.model.unmodelled import warnings_about
from opmark.studies.machine.facts import is_this_machine

TARGET = "torch-eager-t1"
# Networks of 1 to 100 ms whose latencies the releases hold.
KNOWN = (
    *("resnet-small", "bert-tiny", "mobilenet-small", "squeeze-small", "mobilenet-v2", "deit-tiny", "regnet-x-800mf"),
    *("roberta-mini", "convnext-mini", "mistral-mini", "swin-mini"),
)
# A miss: off by this factor after the common scale.
MISS = 5.0
# Strangers between two looks at known networks.
EVERY = 3
MODELLED, SILENT = "modelled", "SILENT MISS"
COLUMNS = ("name", "group", "verdict", "measured_ms", "error", "predicted_ms", "low_ms", "high_ms", "ratio", "inside")


def predicted(model: CostModel, name: str, module: torch.nn.Module, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """The prediction of one stranger with its verdict; a failure becomes its verdict."""
    try:
        graph = graph_of_module(module, inputs, TARGET, name=name)
        found = model.network(graph)
    except OpMarkError as error:
        return {"verdict": "refused", "operators": _sentence(error)}
    except Exception as error:  # noqa: BLE001 (a finding, not an end)
        return {"verdict": "CRASHED", "operators": _sentence(error)}
    try:
        CostModel(model.bundle).network(graph)
        refused = False
    except OpMarkError:
        refused = True
    return {
        "verdict": "refused" if refused else "warned" if warnings_about(found.unmodelled) else MODELLED,
        "predicted_ms": found.total_ns / 1e6,
        "low_ms": found.low_ns / 1e6,
        "high_ms": found.high_ns / 1e6,
        "share": found.bytes_moved_share,
        "operators": " ".join(one.operator.removeprefix("aten.") for one in found.unmodelled),
    }


def visited(
    model: CostModel, looks: measuring.Looks, build: Callable[[], Any], row: dict[str, Any], number: int
) -> dict[str, Any]:
    """The row of one stranger after the pass `number`: predicted in the first one, looked at in each."""
    name = row["name"]
    if row["verdict"] and (row["predicted_ms"] is None or len(looks.blocks[name]) > number):
        return row
    try:
        module, inputs = build()
        module.eval()
    except Exception as error:  # noqa: BLE001 (the package at hand may lack anything)
        return row | {"verdict": "absent", "operators": _sentence(error)}
    if not row["verdict"]:
        row = row | predicted(model, name, module, inputs)
    if len(looks.blocks[name]) > number or (row["verdict"] == "refused" and row["predicted_ms"] is None):
        return row
    try:
        looks.look(name, module, inputs)
    except Exception as error:  # noqa: BLE001
        verdict = "does not run" if row["verdict"] == "CRASHED" else f"{row['verdict']}, does not run"
        return row | {"verdict": verdict, "operators": _sentence(error)}
    return row


class Known:
    """Known networks: the time that each should take in ns by name, and looks at them between those at strangers."""

    def __init__(self, model: CostModel, released_ns: dict[tuple[str, int, int | None], float]) -> None:
        self.built = {name: zoo.build(name) for name in KNOWN}
        self.expected_ns: dict[str, float] = {}
        for name, one in self.built.items():
            shape = one.inputs[0].shape
            released = released_ns.get((name, shape[0], shape[-1]))
            self.expected_ns[name] = released or model.network(graph_of(name, TARGET)).total_ns

    def look(self, looks: measuring.Looks, place: int) -> None:
        """Look at every one before the first stranger, and at one of them after every third."""
        names = KNOWN if place == 0 else KNOWN[place // EVERY % len(KNOWN) :][:1] if place % EVERY == 0 else ()
        for name in names:
            looks.look(name, self.built[name].module.eval(), self.built[name].inputs)


def judged(row: dict[str, Any], label: Any, scale: float) -> dict[str, Any]:
    """The row with its measured time on the predictor's scale, and a silent miss marked."""
    if label is None or row["predicted_ms"] is None:
        return row
    row["measured_ms"], row["error"] = label.latency_ns / scale / 1e6, label.standard_error
    row["ratio"] = row["measured_ms"] / row["predicted_ms"]
    row["inside"] = row["low_ms"] <= row["measured_ms"] <= row["high_ms"]
    far = not 1 / MISS < row["ratio"] < MISS
    if row["verdict"] == MODELLED and far and not row["inside"]:
        row["verdict"] = SILENT
    return row


def _sentence(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:140]


def _shown(row: dict[str, Any]) -> str:
    def number(value: Any, form: str) -> str:
        return "–" if value is None else format(value, form)

    inside = {None: "–", True: "inside", False: "outside"}[row["inside"]]
    return (
        f"{row['name']:32} {row['verdict']:12} {number(row['measured_ms'], '10.3f')} {number(row['error'], '6.1%')} "
        f"{number(row['predicted_ms'], '10.3f')} {number(row['ratio'], '8.2f')} {inside:8} "
        f"{number(_factor(row), '6.2f')} {number(row['share'], '6.0%')}  {row['operators'] or ''}"
    )


def _factor(row: dict[str, Any]) -> float | None:
    """The factor that the interval reaches on either side, on average."""
    return math.sqrt(row["high_ms"] / row["low_ms"]) if row["low_ms"] else None


def _summary(group: str, rows: list[dict[str, Any]]) -> str:
    every = [row for row in rows if row["group"] == group]
    own = [row for row in every if row["ratio"] and row["verdict"] in {MODELLED, SILENT}]
    if not own:
        return f"{group}: {len(every)} strangers, none modelled"
    typical = math.exp(statistics.median(abs(math.log(row["ratio"])) for row in own)) - 1
    width = statistics.median(_factor(row) or math.inf for row in own)
    inside = sum(row["inside"] for row in own)
    return (
        f"{group}: {len(every)} strangers, {len(own)} modelled with a median error of {typical:.0%}, {inside} inside "
        f"their intervals of ÷× {width:.2f} at the median"
    )


def cases(groups: list[str] | None, only: str) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """The group, name and builder of every wanted stranger."""
    for group in groups or strangers_cases.GROUPS:
        yield from ((group, name, build) for name, build in strangers_cases.GROUPS[group]() if only in name)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", action="append", choices=sorted(strangers_cases.GROUPS))
    parser.add_argument("--only", default="", help="a part of the names to try")
    parser.add_argument("--passes", type=int, default=2, help="looks at each, at different moments")
    parser.add_argument("--kept", type=Path, help="a file of looks, read and continued")
    parser.add_argument(
        "--device", default="", help="the device of the predictor; default: this machine's, if there is one"
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> int:
    options = _options()
    content = shipped_content()
    own = [one.device for one in stored_bundles(content) if one.target == TARGET and is_this_machine(one.device)]
    device = options.device or (own[-1] if own else "")
    folder = path_of(content, f"{device}/{TARGET}" if device else TARGET)
    origin, target = read_manifest(folder).origin, read_manifest(folder).target
    measuring.become_measuring_process(target)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    model = CostModel(load(folder), missing=BYTES_MOVED)
    looks = measuring.Looks(options.kept)
    here = is_this_machine(origin.device)
    calm = measuring.calm_readings(content, origin, TARGET) if here else {}
    between = Known(model, measuring.released_ns(content, origin, TARGET) if here else {})
    rows: dict[str, dict[str, Any]] = {}
    for number in range(options.passes):
        place = 0
        for group, name, build in cases(options.group, options.only):
            blank = dict.fromkeys((*COLUMNS, "share", "operators")) | {"name": name, "group": group}
            if len(looks.blocks[name]) <= number:
                between.look(looks, place)
                place += 1
            rows[name] = visited(model, looks, build, rows.get(name, blank), number)
            print(f"pass {number + 1} of {options.passes}: {name}", file=sys.stderr, flush=True)
    expected = between.expected_ns
    return report(model, looks.labels(calm), expected, list(rows.values()), told=bool(calm), json_file=options.json)


def report(
    model: CostModel,
    labels: dict[str, Any],
    expected: dict[str, float],
    rows: list[dict[str, Any]],
    *,
    told: bool,
    json_file: Path | None,
) -> int:
    """Print the table and what follows from it; 1 if there is a silent miss or a crash."""
    ratios = [labels[name].latency_ns / ns for name, ns in expected.items() if name in labels]
    if not ratios:
        sys.exit("no known network runs here")
    scale = statistics.median(ratios)
    print(f"predictor: {model.bundle.target}; times {'at the calm state of its release' if told else 'as they came'}")
    print(f"known networks take {scale:.2f} times as long as they should ({min(ratios):.2f} to {max(ratios):.2f})")
    print(
        f"{'':32} {'verdict':12} {'measured':>10} {'error':>6} {'predicted':>10} {'ratio':>8} {'interval':8} {'÷×':>6} "
        f"{'bytes':>6}  operators"
    )
    for row in rows:
        print(_shown(judged(row, labels.get(row["name"]), scale)))
    for group in dict.fromkeys(row["group"] for row in rows):
        print(_summary(group, rows))
    silent = [row["name"] for row in rows if row["verdict"] in {SILENT, "CRASHED"}]
    print(f"silent misses and crashes: {', '.join(silent) or 'none'}")
    if json_file is not None:
        json_file.write_text(json.dumps({"scale": scale, "rows": rows}, indent=1))
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
