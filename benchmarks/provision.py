"""The quality of `opmark provision` over time, and its growth with devices and types.

    python benchmarks/provision.py [--models resnet-50,bert-base] [--catalogue cloud-gpus] [--seconds 30]

For each network and goal: the value of the goal after the first 2 s, relative to that at the end, and the seconds to
the first answer. Then, for fleets of more and more devices, their number, how many of them a bound rules out, and the
seconds until each had a short look. Clocks are wall clocks: run it on a quiet machine.
"""

import argparse
import time
from pathlib import Path

from opmark.cli.text.terminal import show_table
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.exploration import Exploration, ExplorationProgress
from opmark.leaderboards.provisioning.fleet import count_fleets
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.job import Job, job_of
from opmark.leaderboards.search.placer import PLACERS

ROOT = Path(__file__).resolve().parents[1]
EARLY_S = 2.0
SIZES = (1, 2, 4, 8)


def goals(job: Job) -> dict[str, Goal]:
    """Goals that follow from the single devices: a latency and a price between them, and three times a throughput."""
    exploration = Exploration(job, Goal(), devices_at_most=1)
    exploration.run(EARLY_S)
    singles = list(exploration.answers.values())
    fastest_ns = min(one.latency_ns for one in singles)
    rate = max(one.samples_per_second for one in singles)
    price = max(one.price_per_hour for one in singles)
    return {
        "latency": Goal(latency_at_most_ns=0.95 * fastest_ns),
        "throughput": Goal(samples_per_second=3 * rate),
        "price": Goal(price_per_hour_at_most=1.5 * price),
        "none": Goal(),
    }


def over_time(job: Job, goal: Goal, seconds: float) -> tuple[float | None, float | None, float | None]:
    """Seconds to the first answer that meets the goal, and the goal's value after `EARLY_S` and at the end."""
    begun = time.monotonic()
    first: float | None = None
    early: float | None = None

    def look(now: ExplorationProgress) -> None:
        nonlocal first, early
        if now.best is None or goal.shortfall(now.best) > 1.0:
            return
        first = time.monotonic() - begun if first is None else first
        early = goal.value(now.best) if now.spent_s <= EARLY_S else early

    exploration = Exploration(job, goal, devices_at_most=8)
    exploration.run(seconds, progress=look)
    best = exploration.best()
    met = best is not None and goal.shortfall(best) <= 1.0
    return first, early, goal.value(best) if best is not None and met else None


def growth(job: Job) -> list[tuple[str, ...]]:
    """A row per number of types and devices: fleets, those that a bound rules out, and seconds for all of them."""
    rows = []
    types = job.catalogue.types
    for number in range(1, len(types) + 1):
        part = Job(
            model=job.model,
            batch=job.batch,
            whole=job.whole,
            catalogue=job.catalogue.only(types[:number]),
            left_out={},
        )
        for devices in SIZES:
            exploration = Exploration(part, Goal(), devices_at_most=devices)
            begun = time.process_time()
            exploration.look_at_all(lambda: False)
            took = time.process_time() - begun
            available = {kind: offer.available for kind, offer in part.catalogue.offers.items()}
            fleets = count_fleets(available, devices)
            rows.append((str(number), str(devices), f"{fleets:,}", f"{exploration.ruled_out:,}", f"{took:.2f}"))
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=["resnet-50", "bert-base"])
    parser.add_argument("--catalogue", default="cloud-gpus")
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    workspace = Workspace(ROOT)
    PLACERS.load("opmark").prepare()
    catalogue = load_catalogue(workspace.leaderboards, given.catalogue)
    rows, jobs = [], []
    for model in given.models:
        job = job_of(model, catalogue, Sources(workspace=workspace))
        jobs.append(job)
        for name, goal in goals(job).items():
            first, early, final = over_time(job, goal, given.seconds)
            share = "–" if early is None or final is None else f"{early / final:.3f}"
            shown = ["–" if value is None else f"{value:.4g}" for value in (first, final)]
            rows.append((model, name, shown[0], share, shown[1]))
    show_table(("network", "goal", "first answer s", f"after {EARLY_S:g} s / at the end", "value"), rows, left=2)
    show_table(("types", "devices", "fleets", "ruled out", "CPU s for all"), growth(jobs[0]), left=0)


if __name__ == "__main__":
    main()
