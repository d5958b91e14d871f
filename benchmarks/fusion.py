"""Apply OpMark's fusion rule to nn-Meter's published times, and compare the verdicts of nn-Meter and of a release.

The first table checks the rule: T₁ + T₂ − T₁₂ > ½·min(T₁, T₂) on the published means must give the published verdicts,
except those that nn-Meter's authors changed by hand. With the published standard deviations as an interval, the verdict
may be undecided. The second table lists, pair by pair, the verdicts on three phone runtimes and those of a release, by
graph and by clock. Runtimes fuse differently, so that only the first table checks the method.

    python benchmarks/fusion.py [--release DEVICE/VERSION] [--json]
"""

import argparse
import csv
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from opmark.core.kernels.fusion import (
    FUSED,
    NOT_FUSED,
    UNDECIDED,
    FusionMeasurement,
    decided,
    obeys,
    pair_verdicts,
    saving,
)
from opmark.datasets.release.finding import find, names

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "tests" / "core" / "kernels" / "published_fusion_rules.csv"
# The published times are in ms.
NS = 1e6
# nn-Meter's operator name: its name in OpMark's pairs. nn-Meter's `se` block is not a single operator.
OPERATORS = {"dense": "fc", "pooling": "maxpool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published verdict, and those of the rule on the same three times and on their interval."""

    backend: str
    pair: str
    verdict: str
    by_rule: str
    by_interval: str

    @property
    def ours(self) -> str:
        """The name of the pair in OpMark."""
        first, second = self.pair.split("_")
        return f"{OPERATORS.get(first, first)}+{OPERATORS.get(second, second)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One backend: the verdicts that the rule reproduces, those it does not, and those that the interval decides."""

    backend: str
    pairs: int
    same: int
    contradicted: tuple[str, ...]
    decided: int
    decided_same: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A pair that both measured: nn-Meter's verdicts by backend, and a target's verdicts by graph and by clock."""

    pair: str
    target: str
    published: dict[str, str]
    white_box: str
    black_box: str


def published() -> tuple[Published, ...]:
    """The published table."""
    lines = [line for line in PUBLISHED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return tuple(map(_row, csv.DictReader(lines)))


def _row(row: dict[str, str]) -> Published:
    first, second, block = (float(row[name]) * NS for name in ("first", "second", "block"))
    spread = 2 * NS * math.hypot(*(float(row[f"{name}_sd"]) for name in ("first", "second", "block")))
    half = spread / max(min(first, second), 1.0)  # one operator of a GPU's pair has a measured time of zero
    found = saving(first, second, block)
    return Published(
        backend=row["backend"],
        pair=row["pair"],
        verdict=FUSED if row["fused"] == "1" else NOT_FUSED,
        by_rule=FUSED if obeys(first, second, block) else NOT_FUSED,
        by_interval=decided(found - half, found + half),
    )


def replay(rows: Sequence[Published]) -> tuple[Replay, ...]:
    """Compare the rule with the published verdicts, backend by backend."""
    found = []
    for backend in dict.fromkeys(row.backend for row in rows):
        own = [row for row in rows if row.backend == backend]
        sure = [row for row in own if row.by_interval != UNDECIDED]
        found.append(
            Replay(
                backend=backend,
                pairs=len(own),
                same=sum(row.by_rule == row.verdict for row in own),
                contradicted=tuple(sorted(row.pair for row in own if row.by_rule != row.verdict)),
                decided=len(sure),
                decided_same=sum(row.by_interval == row.verdict for row in sure),
            )
        )
    return tuple(found)


def beside(rows: Sequence[Published], measured: Iterable[FusionMeasurement]) -> tuple[Beside, ...]:
    """The pairs that the release measured too."""
    told: dict[str, dict[str, str]] = {}
    for row in rows:
        told.setdefault(row.ours, {})[row.backend] = row.verdict
    return tuple(
        Beside(
            pair=item.pair,
            target=item.target,
            published=told[item.pair],
            white_box=item.white_box,
            black_box=item.black_box,
        )
        for item in pair_verdicts(measured)
        if item.pair in told
    )


def agreement(pairs: Sequence[Beside]) -> tuple[int, int]:
    """The number of equal verdicts, and of pairs on which nn-Meter's backends agree and the clock decides."""
    clear = [pair for pair in pairs if len(set(pair.published.values())) == 1 and pair.black_box != UNDECIDED]
    return sum(pair.black_box in pair.published.values() for pair in clear), len(clear)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--release", default="", help="DEVICE/VERSION or a folder; default: the newest with fusion rows"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = published()
    replayed = replay(rows)
    folder = ROOT / "datasets"
    pairs: tuple[Beside, ...] = ()
    for name in [options.release] if options.release else reversed(names(folder)):
        release = find(name, folder)
        pairs = tuple(pair for target in release.targets for pair in beside(rows, release.fusions(target.name)))
        if pairs:
            break
    same, clear = agreement(pairs)
    if options.json:
        found = {"replay": [asdict(one) for one in replayed], "pairs": [asdict(one) for one in pairs]}
        print(json.dumps({**found, "same": same, "clear": clear}, indent=2))
        return
    print(f"{'nn-Meter on':14}{'pairs':>7}{'same by the rule':>18}{'decided by interval':>21}{'of them the same':>18}")
    for one in replayed:
        print(f"{one.backend:14}{one.pairs:7}{one.same:18}{one.decided:21}{one.decided_same:18}")
        if one.contradicted:
            print(f"{'':14}changed by its authors: {', '.join(one.contradicted)}")
    if not pairs:
        print("no release here has fusion rows of these pairs: run opmark bench fusion, then opmark datasets build")
        return
    backends = list(dict.fromkeys(row.backend for row in rows))
    columns = "".join(f"{backend:>13}" for backend in backends)
    print(f"\n{'pair':22}{'target':22}{columns}{'our graph':>13}{'our clock':>13}")
    for pair in pairs:
        told = "".join(f"{pair.published.get(backend, '–'):>13}" for backend in backends)
        print(f"{pair.pair:22}{pair.target:22}{told}{pair.white_box:>13}{pair.black_box:>13}")
    print(f"where nn-Meter's three backends agree and our clock decides, {same} of {clear} verdicts are equal")


if __name__ == "__main__":
    main()
