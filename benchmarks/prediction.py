"""Measure how fast predictors train and predict, on one core.

Prints the measured times and the required ones: BERT-base and ResNet-50 with the bundle loaded, 100,000 kernels in one
call, the same kernels in one call each, and training on 10,000 rows of all kinds. The bundle is trained on invented
latencies of kernels drawn from every kind's space, since speed does not depend on the values; `--bundle` gives a real
one for the first two.

    python benchmarks/prediction.py [--rows 10000] [--kernels 100000] [--bundle FOLDER] [--json]
"""

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Setting
from opmark.core.measurements.measurement import OK, Measurement
from opmark.kinds import KINDS, work_of
from opmark.models.resolve import graph_of
from opmark.predictors.model.bundle import Bundle, load
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.training import train_on

TARGET = Target(device="made-up", backend="onnxruntime", provider="cpu", version="1")
NETWORKS = ("bert-base", "light-resnet50")
NETWORK_LIMIT_S, KERNELS_LIMIT_S, TRAINING_LIMIT_S = 0.050, 5.0, 60.0
# The number of kernels in the loop: it is slow, and its pace does not depend on the number.
LOOPED = 500


def drawn(count: int) -> list[Kernel]:
    """`count` distinct kernels, with an equal number of each kind where its space allows."""
    kinds = [kind for kind in KINDS if kind.space and "onnx" in kind.languages]
    found: dict[Kernel, None] = {}
    source = random.Random(0)
    for kind in kinds:
        wanted, tries = -(-count // len(kinds)), 0
        before = len(found)
        while len(found) - before < wanted and tries < 6 * wanted:
            tries += 1
            parameters = kind.draw({name: axis.at(source.random()) for name, axis in kind.space.items()}, SETTING)
            if parameters is not None:
                found.setdefault(kind.kernel(parameters))
    kernels = list(found)
    source.shuffle(kernels)
    return kernels[:count]


SETTING = Setting(language="onnx")


def row(kernel: Kernel) -> Measurement:
    """An invented measurement: a roofline, an efficiency that depends on the size, and 2 % noise."""
    work, noise = work_of(kernel), random.Random(kernel.key).gauss(0, 0.02)
    fill = 1 - 0.5 * math.exp(-work.flops / 2e7)
    hot_ns = (500 + work.flops / 60 / fill + work.moved_bytes / 12) * math.exp(noise)
    return Measurement(
        kernel=kernel,
        work=work,
        target=TARGET.name,
        status=OK,
        latency_hot_ns=hot_ns,
        latency_rotated_ns=hot_ns + work.moved_bytes / 15,
    )


def timed(call: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The median CPU time of `repeats` runs in seconds, and the last result."""
    times, result = [], None
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return statistics.median(times), result


def graphs() -> dict[str, Graph]:
    """The graphs of the networks on ONNX Runtime."""
    return {name: graph_of(name, "onnxruntime-cpu-t1") for name in NETWORKS}


def network_lines(bundle: Bundle, found: dict[str, Graph]) -> list[dict[str, Any]]:
    """Seconds per network: with an empty cache of kernels, and with a filled one."""
    lines = []
    for name, graph in found.items():
        CostModel(bundle, missing=BYTES_MOVED).network(graph)  # the first use of a bundle parses its trees
        fresh, _ = timed(lambda graph=graph: CostModel(bundle, missing=BYTES_MOVED).network(graph), 9)
        model = CostModel(bundle, missing=BYTES_MOVED)
        model.network(graph)
        again, _ = timed(lambda model=model, graph=graph: model.network(graph), 9)
        lines += [
            {"what": f"{name}, {len(graph.nodes)} nodes", "seconds": fresh, "limit_s": NETWORK_LIMIT_S},
            {"what": f"{name}, asked again", "seconds": again, "limit_s": NETWORK_LIMIT_S},
        ]
    return lines


def kernel_lines(bundle: Bundle, kernels: Sequence[Kernel]) -> list[dict[str, Any]]:
    """Seconds for all kernels in one call, and in one call per kernel."""
    whole, _ = timed(lambda: CostModel(bundle, missing=BYTES_MOVED).kernels(kernels))
    some = kernels[:LOOPED]
    model = CostModel(bundle, missing=BYTES_MOVED)
    each, _ = timed(lambda: [model.kernels([kernel]) for kernel in some])
    loop = each / len(some) * len(kernels)
    return [
        {"what": f"{len(kernels):,} kernels in one call", "seconds": whole, "limit_s": KERNELS_LIMIT_S},
        {"what": f"the same, a call each (from {len(some)})", "seconds": loop, "limit_s": None},
        {"what": "one call is faster by", "ratio": loop / whole},
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--kernels", type=int, default=100_000)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    kernels = drawn(arguments.kernels + arguments.rows)
    rows = [row(kernel) for kernel in kernels[: arguments.rows]]
    found = graphs()
    seconds, bundle = timed(lambda: train_on(rows, TARGET))
    lines = [
        {
            "what": f"training {len(rows):,} rows of {len(bundle.kinds)} kinds",
            "seconds": seconds,
            "limit_s": TRAINING_LIMIT_S,
        }
    ]
    lines += kernel_lines(bundle, kernels[arguments.rows :])
    lines += network_lines(load(arguments.bundle) if arguments.bundle else bundle, found)
    if arguments.json:
        print(json.dumps(lines, indent=2))
        return
    for line in lines:
        if "ratio" in line:
            print(f"{line['what']:45} {line['ratio']:8.1f}×")
            continue
        limit = line["limit_s"]
        verdict = "" if limit is None else f"asked ≤ {limit:g} s: {'reached' if line['seconds'] <= limit else 'missed'}"
        print(f"{line['what']:45} {line['seconds']:8.3f} s  {verdict}")


if __name__ == "__main__":
    main()
