"""Fill in the table of a release in both READMEs: its size, how well it repeats, how well it is predicted.

opmark predictors evaluate DEVICE --estimator lightgbm --split networks-unseen --split shape-group --json > figures.json
python docs/state_figures.py DEVICE figures.json
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from readme_translation import replace_part

from opmark.core.workspace import Workspace
from opmark.datasets.format import manifest
from opmark.datasets.format.manifest import ReleaseManifest
from opmark.datasets.release.finding import path_of

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
ESTIMATOR = "lightgbm"


def main(name: str, figures: Path) -> None:
    release = manifest.read(path_of(name, Workspace(ROOT).datasets))
    scores = json.loads(figures.read_text(encoding="utf-8"))
    replace_part(BEGIN, END, table(release, scores))


def table(release: ReleaseManifest, scores: Iterable[Mapping[str, Any]]) -> str:
    """One column per target; the rows that need no predictor come first."""
    known = {
        (score["target"], score["split"], score["metric"]): score for score in scores if score["estimator"] == ESTIMATOR
    }
    targets = [target.name for target in release.targets]
    rows = [
        *measured(release),
        (
            "networks of unseen families within ±10 %",
            [_count(known, one, "networks-unseen", "acc10") for one in targets],
        ),
        ("their median error", [_share(known, one, "networks-unseen", "median") for one in targets]),
        ("kernels of unseen shapes within ±10 %", [_share(known, one, "shape-group", "acc10") for one in targets]),
        ("their median error", [_share(known, one, "shape-group", "median") for one in targets]),
        (
            "90 % intervals hold, networks and kernels",
            [
                f"{_share(known, one, 'networks-unseen', 'coverage90')}, "
                f"{_share(known, one, 'shape-group', 'coverage90')}"
                for one in targets
            ],
        ),
    ]
    return "\n".join(
        [
            f"| {release.device} {release.version} | {' | '.join(targets)} |",
            f"|---|{'--:|' * len(targets)}",
            *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows),
        ]
    )


def measured(release: ReleaseManifest) -> list[tuple[str, Sequence[str]]]:
    """The rows that the release's manifest gives: names, and a cell per target."""
    figures = [release.statistics[target.name] for target in release.targets]
    return [
        ("kernels", [f"{one['kernels']:,}" for one in figures]),
        ("whole networks (families)", [f"{one['networks']:,} ({one['families']:,})" for one in figures]),
        (
            "kernels measured again later: median difference, 95 % within",
            [_again(one["retest"]) for one in figures],
        ),
    ]


def _again(retest: Mapping[str, float] | None) -> str:
    return f"{_percent(retest['median'], 1)}, {_percent(retest['p95'], 1)}" if retest else "–"


def _share(known: Mapping[tuple[str, str, str], Mapping[str, Any]], *key: str) -> str:
    score = known[key[0], key[1], key[2]]
    return _percent(score["value"], 1 if score["metric"] == "median" else 0)


def _count(known: Mapping[tuple[str, str, str], Mapping[str, Any]], *key: str) -> str:
    return f"{_share(known, *key)} of {known[key[0], key[1], key[2]]['n']:,}"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
