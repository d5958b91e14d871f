"""The quality of `opmark provision` over time, and its growth with devices and types.

    python benchmarks/provision.py [--models resnet-50,bert-base] [--catalogue public-cloud] [--seconds 30] [--final 90]

For each network and goal: the seconds to the first answer that meets the goal, and the goal's value after the first
2 s and after `--seconds`, relative to that of a search of `--final` seconds. Then, for fleets of more and more devices
and types, their number, how many of them a bound rules out, and the seconds until each had a short look. All seconds
are those of one processor, so that other work on the machine changes little.
"""

import argparse
import time
from dataclasses import dataclass, field
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
# Wall-clock seconds of a search for each processor second that it may take.
PATIENCE = 20
MISSING = "–"


def goals(job: Job) -> dict[str, Goal]:
    """Goals that follow from the single devices: a latency and a price between them, and three times a throughput."""
    exploration = Exploration(job, Goal(), devices_at_most=1)
    exploration.look_at_all(lambda: False)
    singles = list(exploration.answers.values())
    fastest_ns = min(one.latency_ns for one in singles)
    rate = max(one.samples_per_second for one in singles)
    price = max(one.price_per_hour for one in singles)
    return {
        "latency": Goal(latency_at_most_ns=1.1 * fastest_ns),
        "throughput": Goal(samples_per_second=3 * rate),
        "price": Goal(price_per_hour_at_most=1.5 * price),
        "none": Goal(),
    }


@dataclass(slots=True)
class Watch:
    """The goal's value over the processor seconds of a search."""

    goal: Goal
    begun: float = field(default_factory=time.process_time)
    values: list[tuple[float, float]] = field(default_factory=list)

    @property
    def spent_s(self) -> float:
        """Processor seconds since the search began."""
        return time.process_time() - self.begun

    def look(self, now: ExplorationProgress) -> None:
        """Note the best value once it meets the goal."""
        if now.best is not None and self.goal.shortfall(now.best) <= 1.0:
            value = self.goal.value(now.best)
            if not self.values or value < self.values[-1][1]:
                self.values.append((self.spent_s, value))

    def share_at(self, seconds: float) -> str:
        """The value after some seconds, relative to the last one."""
        known = [value for spent_s, value in self.values if spent_s <= seconds]
        return f"{known[-1] / self.values[-1][1]:.3f}" if known else MISSING


def over_time(job: Job, goal: Goal, seconds: float, final: float) -> tuple[str, ...]:
    """The cells of a row: the first answer, the values after `EARLY_S` and `seconds`, and the last value."""
    exploration = Exploration(job, goal, devices_at_most=8)
    watch = Watch(goal)
    exploration.run(PATIENCE * final, progress=watch.look, stop=lambda: watch.spent_s >= final)
    if not watch.values:
        return (MISSING, MISSING, MISSING, MISSING)
    first_s, (_, last) = watch.values[0][0], watch.values[-1]
    return f"{first_s:.2f}", watch.share_at(EARLY_S), watch.share_at(seconds), f"{last:.4g}"


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
    parser.add_argument("--catalogue", default="public-cloud")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--final", type=float, default=90.0)
    given = parser.parse_args()
    workspace = Workspace(ROOT)
    PLACERS.load("opmark").prepare()
    catalogue = load_catalogue(workspace.leaderboards, given.catalogue)
    rows, jobs = [], []
    for model in given.models:
        job = job_of(model, catalogue, Sources(workspace=workspace))
        jobs.append(job)
        rows += [(model, name, *over_time(job, goal, given.seconds, given.final)) for name, goal in goals(job).items()]
    late = f"after {given.seconds:g} s"
    show_table(("network", "goal", "first answer s", f"after {EARLY_S:g} s", late, "value"), rows, left=2)
    show_table(("types", "devices", "fleets", "ruled out", "CPU s for all"), growth(jobs[0]), left=0)


if __name__ == "__main__":
    main()
