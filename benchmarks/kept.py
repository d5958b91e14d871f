"""Print checksums that show whether a change of the code keeps predictions, training, standings and releases.

The SHA-256 sums cover the predictions of every bundle in `predictors/` for every graph in `bench/graphs/` (each field
that users see, in whole nanoseconds and to the last digit), predictors trained on one row in sixteen of each release,
and each track's standings, computed again from its stored solutions; every release is checked too. Run it before and
after a change, and compare.

    python benchmarks/kept.py [--only predictions|training|standings|releases]
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.kernels.graph import Graph
from opmark.datasets.release.release import load as load_release
from opmark.models.graphs.shipped import sized_graphs
from opmark.predictors.inputs.graphs import graphs_of
from opmark.predictors.model.bundle import load
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.training import train_on

ROOT = Path(__file__).parents[1]
PARTS = ("predictions", "training", "standings", "releases")
# One row in this many is used for training.
SHARE = 16


def named_graphs(folder: Path) -> Iterator[tuple[str, Graph]]:
    """Every stored graph with its network's name, sorted by name and file."""
    files = sorted(path.name.removesuffix(".json.gz") for path in folder.glob("*/*.json.gz"))
    for name in sorted({re.sub(r"(-(batch|size)\d+)*$", "", file) for file in files}):
        for graph in sized_graphs(name, folder):
            yield name, graph


def predictions() -> Iterator[str]:
    graphs = list(named_graphs(ROOT / "bench" / "graphs"))
    for manifest in sorted((ROOT / "predictors").glob("*/*/*/manifest.json")):
        model = CostModel(load(manifest.parent), missing=BYTES_MOVED)
        rounded, exact = hashlib.sha256(), hashlib.sha256()
        for name, graph in graphs:
            found = model.network(graph)
            rows = [
                [row.kernel.key, row.count, row.ns, row.low_ns, row.high_ns, row.extrapolated] for row in found.rows
            ]
            whole = [found.total_ns, found.low_ns, found.high_ns]
            shares = [found.coverage, found.bytes_moved_share, found.rotated_share]
            rounded.update(json.dumps([name, *map(round, whole), *map(round, found.node_ns)]).encode())
            exact.update(json.dumps([name, whole, shares, rows, found.node_ns.tolist(), found.note]).encode())
        yield f"{manifest.parent.relative_to(ROOT)}: {len(graphs)} graphs"
        yield f"  whole nanoseconds  {rounded.hexdigest()}"
        yield f"  every digit        {exact.hexdigest()}"


def training() -> Iterator[str]:
    for manifest in sorted((ROOT / "datasets").glob("*/*/manifest.json")):
        release = load_release(manifest.parent)
        for target in sorted(one.name for one in release.targets):
            rows = sorted(release.measurements(target), key=lambda row: row.kernel.key)[::SHARE]
            networks = release.network_measurements(target)
            graphs = graphs_of((one for one in networks if one.role == "training"), target, cache=None, warn=str)
            bundle = train_on(rows, release.target(target), networks=networks, graphs=graphs)
            content = {name: dict(kind.texts) for name, kind in bundle.kinds.items()}
            text = json.dumps([plain(bundle.manifest), content], sort_keys=True)
            yield f"{manifest.parent.relative_to(ROOT)}/{target}: {len(rows)} rows"
            yield f"  predictor          {hashlib.sha256(text.encode()).hexdigest()}"


def standings() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for room in ("bench", "datasets", "predictors"):
            (root / room).mkdir()
        shutil.copytree(ROOT / "leaderboards", root / "leaderboards")
        for track in sorted(path.parent.name for path in (root / "leaderboards").glob("*/track.yaml")):
            path = root / "leaderboards" / track / "standings.json"
            path.unlink()
            opmark("--workspace", str(root), "leaderboards", "standings", "--track", track)
            found, stored = path.read_bytes(), (ROOT / "leaderboards" / track / "standings.json").read_bytes()
            yield f"leaderboards/{track}: {hashlib.sha256(found).hexdigest()}"
            yield f"  same bytes: {'yes' if found == stored else 'no'}"


def releases() -> Iterator[str]:
    for manifest in sorted((ROOT / "datasets").glob("*/*/manifest.json")):
        opmark("datasets", "validate", str(manifest.parent))
        yield f"{manifest.parent.relative_to(ROOT)}: sound"


def opmark(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "opmark", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append")
    chosen = parser.parse_args().only or PARTS
    for part, lines in zip(PARTS, (predictions, training, standings, releases), strict=True):
        if part in chosen:
            for line in lines():
                print(line, flush=True)


if __name__ == "__main__":
    main()
