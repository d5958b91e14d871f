"""The quality of `opmark provision` over time, and its growth with devices and types.

    python benchmarks/provision.py [--models resnet-50,bert-base] [--catalogue public-cloud] [--devices 8]
        [--seconds 30] [--final 60] [--jobs 2] [--tables start,time,growth]

The first table has the time from starting the command to its first answer that meets the goal, the graph stored and the
search compiled: the median of three starts, in seconds and in processor seconds. Beside it stand the processor seconds
of its parts, in a process of their own: imports; reading the catalogue, predictors and graphs, and predicting; cutting
the network into units; the first placement.
For each network and goal: the seconds to the first answer that meets the goal, and the goal's value over time, as a
multiple of the value at the end. Without a goal a second row has the front: the mean time over all budgets up to the
price of eight of the dearest devices. The search is the command's with `--seconds` of planning, and then goes on until
`--final`, so a row needs one run. The second table has, for fleets of more and more devices and types, their number,
how many of them a bound rules out, and the seconds until all others had a short look. All seconds are processor time of
one process, so that other work on the machine changes little; `--jobs` runs networks side by side.
"""

import argparse
import bisect
import concurrent.futures
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from opmark.cli.commands.provision import FIRST_ANSWER
from opmark.cli.text.terminal import show_table
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.exploration import Exploration, ExplorationProgress
from opmark.leaderboards.provisioning.fleet import count_fleets
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.job import Job, job_of
from opmark.leaderboards.search.placer import PLACERS

ROOT = Path(__file__).resolve().parents[1]
AT_S = (2.0, 5.0, 10.0, 20.0)
SIZES = (1, 2, 4, 8)
# Reading the front takes time itself.
FRONT_EVERY_S = 0.5
TABLES = ("start", "time", "growth")
# Starts of the command, after one that fills the caches.
STARTS = 3
FIRST_LINE = f"note: {FIRST_ANSWER}"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MISSING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One network on one catalogue, and the lengths of its searches in seconds."""

    model: str
    catalogue: str
    devices: int
    seconds: float
    final: float
    tables: tuple[str, ...]


@dataclass(slots=True)
class Curve:
    """A value that falls over the seconds of a search."""

    points: list[tuple[float, float]] = field(default_factory=list)

    def add(self, seconds: float, value: float) -> None:
        """Note a value where it is better than all before."""
        if not self.points or value < self.points[-1][1]:
            self.points.append((seconds, value))

    def cells(self, at_s: Sequence[float]) -> tuple[str, ...]:
        """The seconds of the first value, the value at some seconds over the last value, and that with its seconds."""
        if not self.points:
            return (MISSING,) * (len(at_s) + 3)
        last_s, last = self.points[-1]
        found = [f"{self.points[0][0]:.2f}"]
        for seconds in at_s:
            place = bisect.bisect_right(self.points, seconds, key=lambda point: point[0])
            found.append(f"{self.points[place - 1][1] / last:.3f}" if place else MISSING)
        return (*found, f"{last:.4g}", f"{last_s:.1f}")


def by_processor_time() -> None:
    """Let all clocks of this process show its processor time."""
    time.monotonic = time.process_time


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


def mean_time_ns(front: Sequence[Answer], most: float) -> float:
    """The mean, over all budgets up to `most`, of the least latency; a budget for nothing counts as the longest one."""
    total, price, least = 0.0, 0.0, front[0].latency_ns
    for answer in front:
        if answer.price_per_hour > most:
            break
        total += (answer.price_per_hour - price) * least
        price, least = answer.price_per_hour, answer.latency_ns
    return (total + (most - price) * least) / most


def over_time(asked: Asked, job: Job, goal: Goal) -> tuple[Curve, Curve]:
    """The goal's value and the front's mean time over the seconds of one search."""
    exploration = Exploration(job, goal, devices_at_most=asked.devices)
    most = asked.devices * max(offer.price.per_hour for offer in job.catalogue.offers.values())
    values, fronts = Curve(), Curve()
    begun, looked_s = time.process_time(), 0.0

    def look(now: ExplorationProgress) -> None:
        nonlocal looked_s
        spent_s = time.process_time() - begun
        if now.best is not None and goal.shortfall(now.best) <= 1.0:
            values.add(spent_s, goal.value(now.best))
        if goal == Goal() and spent_s >= looked_s + FRONT_EVERY_S and now.best is not None:
            looked_s = spent_s
            fronts.add(spent_s, mean_time_ns(exploration.front(), most))

    exploration.run(asked.seconds, progress=look)
    exploration.run(asked.final - asked.seconds, progress=look)
    return values, fronts


def start(asked: Asked, options: Sequence[str]) -> tuple[float, float]:
    """The seconds and processor seconds from starting the command to its first answer."""
    command = [sys.executable, "-m", "opmark", "--workspace", str(ROOT), "provision", asked.model]
    command += ["--catalogue", asked.catalogue, "--devices-at-most", str(asked.devices), *options]
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    begun = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        if not any(line.startswith(FIRST_LINE) for line in process.stderr):
            raise SystemExit(f"{' '.join(command)} gave no first answer")
        spent_s = time.perf_counter() - begun
        processor = psutil.Process(process.pid).cpu_times()
        process.kill()
    return spent_s, processor.user + processor.system


def parts(asked: Asked) -> list[float]:
    """The processor seconds of this new process: imports, predicting, cutting into units, the first placement."""
    marks = [time.process_time()]
    workspace = Workspace(ROOT)
    catalogue = load_catalogue(workspace.leaderboards, asked.catalogue)
    steps: list[float] = []
    job = job_of(asked.model, catalogue, Sources(workspace=workspace), tell=lambda _: steps.append(time.process_time()))
    marks += [steps[-1], time.process_time()]
    exploration = Exploration(job, Goal(), devices_at_most=1)
    exploration.look_at_all(lambda: bool(exploration.answers))
    marks.append(time.process_time())
    return [after - before for before, after in zip([0.0, *marks], marks, strict=False)]


def options_of(goal: Goal) -> list[str]:
    """A goal as options of the command."""
    if goal.latency_at_most_ns is not None:
        return ["--at-most", f"{goal.latency_at_most_ns / 1e6:.6f}ms"]
    if goal.samples_per_second is not None:
        return ["--samples-per-second", f"{goal.samples_per_second:.6f}"]
    return [] if goal.price_per_hour_at_most is None else ["--budget", f"{goal.price_per_hour_at_most:.6f}/h"]


def starts(asked: Asked, job: Job) -> list[tuple[str, ...]]:
    """A row per goal: the time to the first answer of the command, and the parts of one without a goal."""
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        split = [f"{one:.2f}" for one in pool.submit(parts, asked).result()]
    rows = []
    for name, goal in goals(job).items():
        start(asked, options_of(goal))
        found = [start(asked, options_of(goal)) for _ in range(STARTS)]
        medians = (statistics.median(column) for column in zip(*found, strict=True))
        rows.append((asked.model, name, *(f"{one:.2f}" for one in medians), *split))
    return rows


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


def measured(asked: Asked) -> dict[str, list[tuple[str, ...]]]:
    """The rows of all tables for one network."""
    workspace = Workspace(ROOT)
    for name in ("opmark", "heft", "pipedream"):
        PLACERS.load(name).prepare()
    begun = time.process_time()
    job = job_of(asked.model, load_catalogue(workspace.leaderboards, asked.catalogue), Sources(workspace=workspace))
    print(
        f"{asked.model}: kernels of {len(job.catalogue.types)} types in {time.process_time() - begun:.1f} s", flush=True
    )
    found: dict[str, list[tuple[str, ...]]] = {table: [] for table in TABLES}
    if "start" in asked.tables:
        found["start"] = starts(asked, job)
    at_s = (*AT_S, asked.seconds)
    for name, goal in goals(job).items() if "time" in asked.tables else ():
        values, fronts = over_time(asked, job, goal)
        found["time"].append((asked.model, name, *values.cells(at_s)))
        if fronts.points:
            found["time"].append((asked.model, "front", *fronts.cells(at_s)))
        print("  ".join(found["time"][-1]), file=sys.stderr, flush=True)
    if "growth" in asked.tables:
        found["growth"] = [(asked.model, *row) for row in growth(job)]
    return found


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=["resnet-50", "bert-base"])
    parser.add_argument("--catalogue", default="public-cloud")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--final", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", type=lambda text: tuple(text.split(",")), default=TABLES)
    given = parser.parse_args()
    # A thread of a library beside the search would count as processor time.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    asked = [
        Asked(
            model=model,
            catalogue=given.catalogue,
            devices=given.devices,
            seconds=given.seconds,
            final=given.final,
            tables=given.tables,
        )
        for model in given.models
    ]
    with concurrent.futures.ProcessPoolExecutor(
        max_workers=given.jobs, mp_context=multiprocessing.get_context("spawn"), initializer=by_processor_time
    ) as pool:
        found = list(pool.map(measured, asked))
    if "start" in given.tables:
        columns = ("network", "goal", "first answer s", "CPU s", "imports", "kernels", "units", "placement")
        show_table(columns, [row for one in found for row in one["start"]], left=2)
    if "time" in given.tables:
        columns = ("network", "goal", "first s", *(f"at {seconds:g} s" for seconds in (*AT_S, given.seconds)))
        show_table((*columns, "last value", "found at s"), [row for one in found for row in one["time"]], left=2)
    if "growth" in given.tables:
        columns = ("network", "types", "devices", "fleets", "ruled out", "CPU s for all")
        show_table(columns, [row for one in found for row in one["growth"]], left=1)


if __name__ == "__main__":
    main()
