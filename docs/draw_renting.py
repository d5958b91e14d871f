"""Search the worked example of the guide "Which hardware should I rent?", write its table, and draw its figure.

python docs/draw_renting.py [--keep]

The answers are stored with their placements in docs/guide/renting-example.json. A test simulates them again and
compares the figures with the guide's table, so the example stays true or the test fails.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from opmark.core.errors import PlacementError
from opmark.core.files import write_json, write_text
from opmark.core.reading import read_json
from opmark.core.units import NS_PER_S, format_ns
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.provisioning.answer import Answer, answer_of
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.fleet import Fleet, all_fleets
from opmark.leaderboards.provisioning.job import Job, job_of
from opmark.leaderboards.search.placer import PLACERS
from opmark.pages.axis import log_fraction, log_ticks
from opmark.pages.template import asset

ROOT = Path(__file__).parent.parent
GUIDE, STORED = ROOT / "docs" / "guide" / "renting.md", ROOT / "docs" / "guide" / "renting-example.json"
FIGURE = ROOT / "docs" / "images" / "renting.svg"
BEGIN, END = "<!-- example: begin -->", "<!-- example: end -->"
MODEL, BATCH, CATALOGUE, TYPES, DEVICES_AT_MOST = "resnet-50", 8, "cloud-gpus", ("a100", "v100", "t4"), 6
# The placer of every fleet: its stages and replicas are optimal by its own estimate, and it needs no clock.
PLACER, BUDGET_S = "pipedream", 60.0
WIDTH, HEIGHT = 560, 380
LEFT, RIGHT, TOP, BOTTOM = 72, 16, 16, 44


def example_job() -> Job:
    """The network of the example on every type of its catalogue."""
    workspace = Workspace(ROOT)
    catalogue = load_catalogue(workspace.leaderboards, CATALOGUE).only(TYPES)
    return job_of(MODEL, catalogue, Sources(workspace=workspace), batch=BATCH)


def search(job: Job) -> list[Answer]:
    """The answer of every fleet."""
    found = []
    available = {kind: offer.available for kind, offer in job.catalogue.offers.items()}
    for fleet in all_fleets(available, DEVICES_AT_MOST):
        problem = job.problem(fleet, objective="throughput")
        with suppress(PlacementError):
            solution = PLACERS.load(PLACER).place(problem, budget_s=BUDGET_S, seed=0)
            found.append(answer_of(job, fleet, solution, objective="throughput"))
    return found


def front(answers: Sequence[Answer]) -> list[Answer]:
    """The answers that no other one beats in both time per sample and money per hour, fastest first."""
    found: list[Answer] = []
    for answer in sorted(answers, key=lambda one: (-one.samples_per_second, one.price_per_hour)):
        if not found or answer.price_per_hour < found[-1].price_per_hour:
            found.append(answer)
    return found


def stored(job: Job, answers: Sequence[Answer]) -> dict[str, Any]:
    """The fronts of all fleets and of equal ones, with their placements."""
    fronts = {"all": front(answers), "equal": front([one for one in answers if one.fleet.equal])}
    rows = {name: [_row(job, answer) for answer in found] for name, found in fronts.items()}
    return {"model": MODEL, "batch": BATCH, "catalogue": CATALOGUE, "fronts": rows}


def _row(job: Job, answer: Answer) -> dict[str, Any]:
    problem = job.problem(answer.fleet, objective="throughput")
    solution = solution_of(problem, answer.placement)
    return {
        "devices": dict(answer.fleet.items()),
        "samples_per_second": answer.samples_per_second,
        "price_per_hour": answer.price_per_hour,
        "device": dict(solution.device),
        "replicas": None if solution.replicas is None else {key: list(row) for key, row in solution.replicas.items()},
    }


def simulated(job: Job, row: dict[str, Any]) -> Answer:
    """A stored answer, simulated again. Raises `PlacementError` where it is no longer valid."""
    replicas = row["replicas"] and {key: tuple(names) for key, names in row["replicas"].items()}
    solution = Solution(device=row["device"], replicas=replicas)
    return answer_of(job, Fleet.of(row["devices"]), solution, objective="throughput")


def table(example: dict[str, Any]) -> str:
    """The figures as the guide shows them: for the rate of each equal fleet, the cheapest fleet of any types."""
    head = "| samples per second | equal types | $ per hour | any types | $ per hour | saved |"
    lines = [head, "|--:|---|--:|---|--:|--:|"]
    for row in example["fronts"]["equal"]:
        enough = [one for one in example["fronts"]["all"] if one["samples_per_second"] >= row["samples_per_second"]]
        best = min(enough, key=lambda one: one["price_per_hour"])
        saved = 1 - best["price_per_hour"] / row["price_per_hour"]
        lines.append(
            f"| {row['samples_per_second']:,.0f} | {_title(row)} | {row['price_per_hour']:.2f}"
            f" | {_title(best)} | {best['price_per_hour']:.2f} | {saved:.0%} |"
        )
    return "\n".join(lines)


def _title(row: dict[str, Any]) -> str:
    return Fleet.of(row["devices"]).title


def _time_ns(row: dict[str, Any]) -> float:
    return NS_PER_S / float(row["samples_per_second"])


def picture(example: dict[str, Any]) -> str:
    """Money per hour against time per sample, both logarithmic: the fronts of equal and of all fleets, as steps."""
    rows = [row for found in example["fronts"].values() for row in found]
    times, money = [_time_ns(row) for row in rows], [row["price_per_hour"] for row in rows]
    low_x, high_x, low_y, high_y = min(times) / 1.15, max(times) * 1.3, min(money) / 1.15, max(money) * 1.15

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log_fraction(value, low_x, high_x)

    def down(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log_fraction(value, low_y, high_y)

    legend = WIDTH - RIGHT - 150
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">',
        "<title>Money against time: fleets of equal types and of any types</title>",
        f"<style>{asset('style.css')} .steps {{ fill: none; stroke-width: 2; }} .any {{ stroke: #2a78d6; }}"
        " .any-dot { fill: #2a78d6; } .equal { stroke: #d6572a; stroke-dasharray: 5 4; } .equal-dot { fill: #d6572a; }"
        "</style>",
        '<rect width="100%" height="100%" style="fill: var(--paper)"/>',
        *_columns(low_x, high_x, across),
        *_rows(low_y, high_y, down),
        *_steps(example["fronts"]["equal"], "equal", across, down, high_x),
        *_steps(example["fronts"]["all"], "any", across, down, high_x),
        f'<text class="axis" x="{legend}" y="{TOP + 14}" style="fill: #d6572a">equal types (dashed)</text>',
        f'<text class="axis" x="{legend}" y="{TOP + 32}" style="fill: #2a78d6">any types</text>',
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        "time between two samples</text>",
        f'<text class="axis" transform="translate(13 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        "US dollars per hour</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _columns(low: float, high: float, across: Callable[[float], float]) -> list[str]:
    found = []
    for tick in log_ticks(low, high, format_ns):
        x = across(tick.value)
        found.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        found.append(
            f'<text class="axis" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick.label}</text>'
        )
    return found


def _rows(low: float, high: float, down: Callable[[float], float]) -> list[str]:
    found = []
    for tick in log_ticks(low, high, lambda value: f"{value:g}"):
        y = down(tick.value)
        found.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        found.append(f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick.label}</text>')
    return found


def _steps(
    rows: Sequence[dict[str, Any]],
    style: str,
    across: Callable[[float], float],
    down: Callable[[float], float],
    high_x: float,
) -> list[str]:
    """A front as steps: until the next faster answer, the money of the last one counts."""
    points = []
    for row in rows:
        if points:
            points.append((across(_time_ns(row)), points[-1][1]))
        points.append((across(_time_ns(row)), down(row["price_per_hour"])))
    points.append((across(high_x), points[-1][1]))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = []
    for row in rows:
        x, y = across(_time_ns(row)), down(row["price_per_hour"])
        told = f"{_title(row)}: {format_ns(_time_ns(row))} per sample, ${row['price_per_hour']:.2f} per hour"
        dots.append(f'<circle class="{style}-dot" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{told}</title></circle>')
    return [f'<polyline class="steps {style}" points="{line}"/>', *dots]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="Draw the stored answers again, without a search.")
    given = parser.parse_args()
    job = example_job()
    if not given.keep:
        write_json(STORED, stored(job, search(job)))
    example = read_json(STORED)
    write_text(FIGURE, picture(example))
    before, _, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    write_text(GUIDE, f"{before}{BEGIN}\n{table(example)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    sys.exit(main())
