"""Draw the pictures of the READMEs and fill in their table from the workspace of a quickstart.

python docs/draw_readme.py quickstart
"""

import sys
from pathlib import Path

from readme_translation import replace_part

from opmark.core.files import write_text
from opmark.core.reading import read_json
from opmark.core.units import format_ns
from opmark.core.workspace import Workspace
from opmark.leaderboards.scoring.track import load_track
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.gantt import gantt
from opmark.pages.scatter import Point, scatter
from opmark.studies.quickstart.contest import TRACK

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- demo: begin -->", "<!-- demo: end -->"


def main(folder: Path) -> None:
    found = read_json(folder / "quickstart.json")
    points = [
        Point(
            label=network["name"],
            measured=network["measured_ns"],
            predicted=network["predicted_ns"],
            group=network["target"],
            low=network["low_ns"],
            high=network["high_ns"],
        )
        for network in found["networks"]
    ]
    images = ROOT / "docs" / "images"
    title = "Networks outside the training data: predicted against measured latency"
    write_text(images / "networks.svg", scatter(points, radius=4.5, title=title, alone=True))
    track = load_track(Workspace(folder).leaderboards, TRACK)
    (problem,) = track.problems()
    standings = track.standings()
    best = standings.rows[0].name
    timeline = timeline_of(problem, standings.evaluations[best, problem.name])
    picture = gantt(timeline.bars, lanes=timeline.lanes, title=f"{problem.name}, placed by {best}", alone=True)
    write_text(images / "schedule.svg", picture)
    replace_part(BEGIN, END, table(found))


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
    main(Path(sys.argv[1]))
