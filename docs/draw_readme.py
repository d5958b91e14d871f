"""Draw the pictures of the READMEs from the content of the repository; fill in their table from a quickstart.

python docs/draw_readme.py             # the pictures
python docs/draw_readme.py quickstart  # the table too, from the workspace of that quickstart
"""

import sys
from pathlib import Path

from readme_translation import replace_part

from opmark.core.files import write_text
from opmark.core.measurements.measurement import HELD_OUT, USABLE
from opmark.core.reading import read_json
from opmark.core.units import format_ns
from opmark.core.workspace import Workspace
from opmark.datasets.release.finding import find
from opmark.leaderboards.scoring.track import load_track
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.gantt import gantt
from opmark.pages.scatter import Point, scatter
from opmark.predictors.inputs.graphs import graphs_of
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import find_bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel

ROOT = Path(__file__).parent.parent
HERE = Workspace(ROOT)
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- demo: begin -->", "<!-- demo: end -->"
DEVICE = "amd-26-2-1-2vcpu-l3-32m"
TRACK, PROBLEM, PLACER = "inference-latency", "inception-epyc-both", "opmark"
# The band around a perfect prediction; points beyond the second have their names beside them.
BAND, FAR = 0.1, 0.15


def main(quickstart: Path | None) -> None:
    title = "Networks of families that no predictor learned from: predicted against measured latency"
    picture = scatter(unseen_networks(), radius=4.0, bands=(BAND,), title=title, alone=True, named_beyond=FAR)
    write_text(IMAGES / "networks.svg", picture)
    write_text(IMAGES / "schedule.svg", schedule())
    if quickstart is not None:
        replace_part(BEGIN, END, table(read_json(quickstart / "quickstart.json")))


def unseen_networks() -> list[Point]:
    """The held-out networks of the newest release, predicted by the newest predictors."""
    release = find(DEVICE, HERE.datasets)
    points = []
    for target in release.targets:
        model = CostModel(load(find_bundle(HERE, target.name, device=DEVICE)), missing=BYTES_MOVED)
        rows = [
            row
            for row in release.network_measurements(target.name)
            if row.role == HELD_OUT and row.status in USABLE and row.latency_ns
        ]
        graphs = graphs_of(rows, target.name, cache=HERE.cache, warn=print)
        for row in rows:
            if row.graph_id not in graphs:
                continue
            found = model.network(graphs[row.graph_id])
            points.append(
                Point(
                    label=row.network,
                    measured=row.latency_ns,
                    predicted=found.total_ns,
                    group=target.name,
                    low=found.low_ns,
                    high=found.high_ns,
                )
            )
    return points


def schedule() -> str:
    """The stored answer of a placer to a problem of a track."""
    track = load_track(HERE.leaderboards, TRACK)
    problem = next(one for one in track.problems() if one.name == PROBLEM)
    solution = track.solutions()[PLACER][PROBLEM]
    assert not isinstance(solution, str), solution
    timeline = timeline_of(problem, evaluate(problem, solution))
    title = f"{PROBLEM} of the track {TRACK}, placed by {PLACER}"
    return gantt(timeline.bars, lanes=timeline.lanes, title=title, alone=True)


def table(found: dict) -> str:
    rows = ["| network | target | predicted | measured | error |", "|---|---|--:|--:|--:|"]
    rows += [
        f"| {one['name']} | {one['target']} | {format_ns(one['predicted_ns'])} | {format_ns(one['measured_ns'])} "
        f"| {100 * one['error']:+.1f} % |"
        for one in found["networks"]
    ]
    summary = f"(median error {100 * found['median_error']:.1f} %, largest {100 * found['max_error']:.1f} %)"
    return "\n".join([*rows, "", summary])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
