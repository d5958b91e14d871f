"""Look inside OpenVINO: what a network spends in nodes, beside its convolutions alone and added up (decision 0029).

    export OPMARK_OPENVINO=FOLDER                  # of onnxruntime-openvino
    python benchmarks/inside_openvino.py [NETWORK …] [--rounds 8] [--release DEVICE/VERSION] [--json]

OpenVINO's own library tells the nodes that it runs, and their times. Each distinct convolution of a network is called
alone and as a sum of five copies, in turns with the whole network, so that the state of the machine cancels. All
figures are shares of the network's time: `inside` is that of its convolutions and of its layout reorders; `alone` that
of calls of each convolution by itself, with `reorders` as its part; `added` that of one more copy in a sum.
Then it compares the verdicts on fusion: the plugin's, and the clock's in a release.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.bench.backends._onnx.model import stack
from opmark.bench.backends._onnx.openvino_library import (
    REORDER,
    CompiledModel,
    OpenVinoLibrary,
    PlannedNode,
    library,
    pieces_of,
    with_weights,
)
from opmark.bench.backends._onnx.sequence import sequence
from opmark.bench.backends.openvino import FOLDER
from opmark.bench.clock.scheduling import fifo, may_use_fifo, pin
from opmark.bench.fusion.operators import chain, shapes
from opmark.bench.fusion.pairs import PAIRS
from opmark.bench.fusion.worker import joined
from opmark.bench.worker.calls import call_in
from opmark.core.errors import OpMarkError
from opmark.core.kernels.call import OnnxNode
from opmark.core.kernels.fusion import FUSED, NOT_FUSED, pair_verdicts
from opmark.core.measurements.estimate import median
from opmark.core.workspace import Workspace
from opmark.datasets.release.finding import find
from opmark.models.resolve import graph_of, onnx_file

ROOT = Path(__file__).parents[1]
TARGET = "openvino-cpu-t1"
NETWORKS = ("light-inception-v1", "light-resnet50", "light-squeezenet")
_CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})
_COPIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Shares of a network's time; see the top of the file."""

    network: str
    convolutions: int
    network_ns: float
    inside: float
    inside_reorders: float
    alone: float
    reorders: float
    added: float


def main() -> None:
    """Print one line per network, then the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--release", default="amd-25-1-1-2vcpu-l3-32m/1.0.0")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    pin(1)
    found = library(os.environ.get(FOLDER, ""))
    rows = [inside(found, name, chosen.rounds) for name in chosen.networks]
    agreed = verdicts(found, chosen.release)
    if chosen.json:
        print(json.dumps({"networks": [_plain(row) for row in rows], "verdicts": agreed}, indent=1))
        return
    print(f"{'network':20} {'ms':>7} {'inside':>8} {'reorders':>9} {'alone':>8} {'reorders':>9} {'added':>8}")
    for row in rows:
        shares = (row.inside, row.inside_reorders, row.alone, row.reorders, row.added)
        widths = (8, 9, 8, 9, 8)
        text = " ".join(f"{share:{width}.1%}" for share, width in zip(shares, widths, strict=True))
        print(f"{row.network:20} {row.network_ns / 1e6:7.1f} {text}")
    print(json.dumps(agreed, indent=1))


def inside(found: OpenVinoLibrary, name: str, rounds: int) -> Inside:
    """Measure one network and each of its distinct convolutions."""
    whole = found.compiled(onnx_file(name).read_bytes(), threads=1)
    kernels = Counter(node.kernel for node in graph_of(name, TARGET).nodes if node.kernel.kind == "conv")
    alone = reorders = added = 0.0
    times_ns: list[float] = []
    for kernel, count in kernels.items():
        node = call_in("onnx", kernel)
        assert isinstance(node, OnnxNode)
        single, several = _compiled(found, node, 1), _compiled(found, node, _COPIES)
        network_ns, single_ns, several_ns = _in_turns((whole, single, several), rounds)
        share = _time_ns(single.nodes(), {REORDER}) / _time_ns(single.nodes(), _CONVOLUTIONS | {REORDER})
        alone += count * single_ns / network_ns
        reorders += count * single_ns / network_ns * share
        added += count * (several_ns - single_ns) / (_COPIES - 1) / network_ns
        times_ns.append(network_ns)
        single.close()
        several.close()
    nodes = whole.nodes()
    everything = _time_ns(nodes, {node.kind for node in nodes})
    row = Inside(
        network=name,
        convolutions=kernels.total(),
        network_ns=median(times_ns),
        inside=_time_ns(nodes, _CONVOLUTIONS) / everything,
        inside_reorders=_time_ns(nodes, {REORDER}) / everything,
        alone=alone,
        reorders=reorders,
        added=added,
    )
    whole.close()
    return row


def verdicts(found: OpenVinoLibrary, release: str) -> dict[str, Any]:
    """Compare the plugin's verdict on every pair with the clock's in `release`."""
    clock = {one.pair: one for one in pair_verdicts(find(release, Workspace(ROOT).datasets).fusions(TARGET))}
    counts: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    for name, pair in PAIRS.items():
        if name not in clock:
            continue
        told = set()
        for shape in shapes(pair.domain, "onnx"):
            try:
                nodes = [call_in("onnx", kernel) for kernel in chain(pair.operators, shape, "onnx")]
                model = sequence([node for node in nodes if isinstance(node, OnnxNode)]).model
                compiled = found.compiled(model, threads=1)
            except OpMarkError:
                continue
            compiled.call(3)
            told.add(FUSED if joined(pieces_of(compiled.nodes(), len(nodes)), pair.split) else NOT_FUSED)
            compiled.close()
        if len(told) != 1:
            counts["shapes differ"] += 1
            continue
        plugin, timed = told.pop(), clock[name].black_box
        counts[f"{timed} by the clock, {plugin} by the plugin"] += 1
        if {plugin, timed} == {FUSED, NOT_FUSED}:
            wrong[name] = plugin
    return {"pairs": dict(sorted(counts.items())), "contradicted": wrong}


def _compiled(found: OpenVinoLibrary, node: OnnxNode, copies: int) -> CompiledModel:
    made = stack(node, copies=copies, chain=False, rotated=False, added=copies > 1)
    return found.compiled(with_weights(made.model, made.constants), threads=1)


def _in_turns(models: Sequence[CompiledModel], rounds: int) -> list[float]:
    """The median time of a call of each model, which take turns."""
    burst = fifo if may_use_fifo() else nullcontext
    times: list[list[float]] = [[] for _ in models]
    for _ in range(rounds):
        with burst():
            for model, own in zip(models, times, strict=True):
                model.call()  # the one before has taken the cache
                own.extend(model.call())
    return [median(own) for own in times]


def _time_ns(nodes: Sequence[PlannedNode], kinds: "frozenset[str] | set[str]") -> float:
    return sum(node.time_ns for node in nodes if node.kind in kinds)


def _plain(row: Inside) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


if __name__ == "__main__":
    main()
