"""Measure how many placements per second opsim 1 evaluates, compared with a plain Python reference of the same rules.

    python benchmarks/simulator.py [--largest 1000000] [--only-file]

Graphs are eight branches wide with joins, on a host and three accelerators with memory, ports and routes. Placements
are random; both simulators evaluate the same ones, and their costs must agree. Then the largest graph is written to a
file, and a fresh process loads it, compiles it, simulates one placement and runs HEFT: CPU seconds and peak memory.
"""

import argparse
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.leaderboards.reference import Reference

from opmark.cli.text.terminal import show_table
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.simulator.simulate import simulate, simulate_many

SIZES = (32, 326, 2_012, 20_000, 1_000_000)
WIDTH = 8
SECONDS_EACH = 1.0
KILOBYTE = 1024  # the unit of `ru_maxrss` on Linux


def cluster() -> Cluster:
    """A host and three accelerators that are connected through the host."""
    devices = [Device(name="host", type="cpu", memory_bytes=2**45, dispatch_ns=500)]
    links = []
    for number in range(3):
        name = f"gpu{number}"
        devices.append(Device(name=name, type="gpu", memory_bytes=2**45, dispatch_ns=2_000))
        ends = (("host", name), (name, "host"))
        links += [
            Link(source=a, destination=b, latency_ns=3_000, bandwidth_bytes_per_s=1.2e10, port=f"bus{number}")
            for a, b in ends
        ]
    return Cluster(name="bench", devices=tuple(devices), links=tuple(links))


def problem(count: int) -> Problem:
    """`count` units in `WIDTH` chains that sometimes exchange a tensor."""
    draw = np.random.default_rng(count)
    times = draw.integers(5_000, 400_000, count).tolist()
    sizes = (draw.integers(1, 500, count) * 1_024).tolist()
    across = draw.random(count) < 0.3
    cross = draw.integers(1, WIDTH, count).tolist()
    units = tuple(
        Unit(name=f"u{n}", exec_ns={"cpu": times[n], "gpu": times[n] // 6}, weights=(f"w{n}",), workspace_bytes=64)
        for n in range(count)
    )
    tensors = tuple(
        Tensor(
            name=f"t{n}",
            size_bytes=sizes[n],
            producer=f"u{n}",
            consumers=tuple(
                f"u{m}" for m in ((n + WIDTH, n + WIDTH + cross[n]) if across[n] else (n + WIDTH,)) if m < count
            ),
        )
        for n in range(count)
    )
    return Problem(
        name=f"{count}", cluster=cluster(), units=units, tensors=tensors, weights={f"w{n}": 4_096 for n in range(count)}
    )


def compiled_seconds(made: Problem, table: np.ndarray) -> tuple[float, list[int]]:
    """Seconds per placement (the best of three rounds) and the costs."""
    costs = simulate_many(made, table)
    rounds = []
    for _ in range(3):
        done, begun = 0, time.perf_counter()
        while not done or time.perf_counter() - begun < SECONDS_EACH / 3:
            simulate_many(made, table)
            done += len(table)
        rounds.append((time.perf_counter() - begun) / done)
    return min(rounds), costs.tolist()


def plain_seconds(made: Problem, table: np.ndarray) -> tuple[float, list[int]]:
    """Seconds per placement of the plain Python reference, and the costs."""
    names = [device.name for device in made.cluster.devices]
    begun, costs = time.perf_counter(), []
    ranks = dict(zip((unit.name for unit in made.units), made.arrays.default_priority.tolist(), strict=True))
    for row in table.tolist():
        places = {unit.name: names[number] for unit, number in zip(made.units, row, strict=True)}
        costs.append(Reference(made, places, priority=ranks).cost)
        if time.perf_counter() - begun > SECONDS_EACH:
            break
    return (time.perf_counter() - begun) / len(costs), costs


def steps_from_file(path: Path) -> list[tuple[str, str, str]]:
    """CPU seconds to load, compile, simulate and schedule the problem in `path`, and the peak memory after each."""
    heft = PLACERS.load("heft")
    small = smallest_problem()
    heft.place(small, budget_s=1, seed=0)  # compiles all that is timed below
    marks = [mark()]
    made = load_problem(path)
    marks.append(mark())
    arrays = made.arrays  # worked out once and kept
    marks.append(mark())
    placement = Placement(device=np.random.default_rng(1).integers(0, arrays.devices, arrays.units))
    simulate(made, placement)
    marks.append(mark())
    heft.place(made, budget_s=60, seed=0)
    marks.append(mark())
    steps = ("load", "compile", "simulate", "HEFT")
    rows = [
        (step, f"{after[0] - before[0]:.1f}", f"{after[1]:.2f}")
        for step, (before, after) in zip(steps, pairwise(marks), strict=True)
    ]
    return [*rows[:3], ("load to simulation", f"{marks[3][0] - marks[0][0]:.1f}", f"{marks[3][1]:.2f}"), rows[3]]


def mark() -> tuple[float, float]:
    """CPU seconds and peak memory in GB so far."""
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE / 1e9


def from_file(count: int) -> list[tuple[str, str, str]]:
    """`steps_from_file` for one large problem, in a process that has done nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        save_problem(problem(count), path)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(steps_from_file, path).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="leave out graphs with more kernels")
    parser.add_argument("--only-file", action="store_true", help="only the steps from the file on")
    given = parser.parse_args()
    if not given.only_file:
        show_evaluations(given.largest)
    show_table((f"{given.largest:,} kernels from a file", "CPU s", "peak GB"), from_file(given.largest), left=1)


def show_evaluations(largest: int) -> None:
    """A row per size: evaluations per second of both simulators."""
    rows, points = [], []
    for count in (size for size in SIZES if size <= largest):
        made = problem(count)
        rounds = max(1, min(256, 200_000 // count))
        table = np.random.default_rng(1).integers(0, len(made.cluster.devices), (rounds, count))
        compiled, costs = compiled_seconds(made, table)
        plain, plain_costs = plain_seconds(made, table)
        assert costs[: len(plain_costs)] == plain_costs
        rows.append((f"{count:,}", f"{1 / compiled:,.4g}", f"{1 / plain:,.4g}", f"{plain / compiled:,.0f}×"))
        points.append((count, compiled))
    show_table(("kernels", "evaluations/s", "plain Python/s", "ratio"), rows, left=0)
    large = [(count, seconds) for count, seconds in points if count >= 1_000]
    if len(large) > 1:
        counts, seconds = np.log(np.array(large)).T
        print(f"time grows as kernels^{np.polyfit(counts, seconds, 1)[0]:.2f} from {large[0][0]:,} kernels on")
    print()


if __name__ == "__main__":
    main()
