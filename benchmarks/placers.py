"""Compare the costs of all placers at one planning time, on the problems of all tracks and generated ones; time HEFT.

    python benchmarks/placers.py [--budget 2] [--placers opmark,heft] [--per-track 5]

Every placer plans in its own process against the clock, as in scoring. A cost is divided by the smallest cost of any
placer in this run. The table shows the geometric mean of these ratios for each track and for all problems; an invalid
or missing answer counts as a ratio of 100. With `--keep FILE` an interrupted run continues, and a run with the same
placer code, problem and planning time is not repeated.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.leaderboards.reference_schedule import reference_heft

from opmark.cli.text.terminal import show_table
from opmark.core.errors import SubmissionError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.placers.heft import heft_schedule
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.files import load_problem
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.placer_process import PlacerProcess
from opmark.leaderboards.scoring.run_record import code_of_placer
from opmark.leaderboards.search.annealing import warm_up
from opmark.leaderboards.search.placer import placing_names

ROOT = Path(__file__).resolve().parents[1]
MISSING_RATIO = 100.0
HEFT_TASKS = 800


def cluster(devices: int, *, memory_bytes: int, unequal: bool) -> Cluster:
    """A host and accelerators of two types; `unequal` adds a fast direct link between two of them."""
    members = [Device(name="host", type="cpu", memory_bytes=2**40, dispatch_ns=500)]
    links = []
    for number in range(devices - 1):
        name = f"gpu{number}"
        kind = "fast" if number % 2 == 0 else "slow"
        members.append(Device(name=name, type=kind, memory_bytes=memory_bytes, dispatch_ns=2_000))
        rate = 1.2e10 / (1 + number * unequal)
        for a, b in (("host", name), (name, "host")):
            links.append(Link(source=a, destination=b, latency_ns=3_000, bandwidth_bytes_per_s=rate, port=f"bus{name}"))
    if unequal and devices > 2:
        for a, b in (("gpu0", "gpu1"), ("gpu1", "gpu0")):
            links.append(Link(source=a, destination=b, latency_ns=1_000, bandwidth_bytes_per_s=5e10))
    return Cluster(name=f"{devices}", devices=tuple(members), links=tuple(links))


def generated(
    seed: int, *, units: int, width: int, devices: int, memory: float = 0.0, objective: str = "latency"
) -> Problem:
    """Layers of up to `width` units, each reading one to three of the layer before; CPU and GPU suit different units.

    With `memory` an accelerator holds that share of all weights.
    """
    draw = np.random.default_rng(seed)
    layers: list[list[int]] = []
    while sum(map(len, layers)) < units:
        first = sum(map(len, layers))
        layers.append(list(range(first, min(units, first + int(draw.integers(1, width + 1))))))
    made: list[set[int]] = [set() for _ in range(units)]
    for before, after in pairwise(layers):
        for unit in after:
            for maker in draw.choice(before, size=min(len(before), int(draw.integers(1, 4))), replace=False).tolist():
                made[maker].add(unit)
    work = draw.lognormal(11, 1, units)
    ratio = draw.lognormal(1.2, 0.8, units)
    weights = {f"w{n}": int(size) for n, size in enumerate(draw.lognormal(13, 1, units))}
    total = sum(weights.values())
    items = tuple(
        Unit(
            name=f"u{n}",
            exec_ns={"cpu": int(work[n]), "fast": int(work[n] / ratio[n]), "slow": int(1.7 * work[n] / ratio[n])},
            weights=(f"w{n}",),
        )
        for n in range(units)
    )
    sizes = draw.lognormal(11.5, 1, units).astype(int).tolist()
    tensors = [Tensor(name="in", size_bytes=100_000, consumers=tuple(f"u{n}" for n in layers[0]))]
    tensors += [
        Tensor(
            name=f"t{n}",
            size_bytes=sizes[n],
            producer=f"u{n}",
            consumers=tuple(f"u{m}" for m in sorted(made[n])),
            output=not made[n],
        )
        for n in range(units)
    ]
    room = int(memory * total) + 40 * max(sizes) if memory else 2**40
    where = cluster(devices, memory_bytes=room, unequal=seed % 2 == 1)
    name = f"generated-{seed}-{units}-{objective}"
    return Problem(name=name, cluster=where, units=items, tensors=tuple(tensors), weights=weights, objective=objective)


def problems(per_track: int, *, also_generated: bool) -> list[tuple[str, Problem]]:
    """`per_track` problems of every track, evenly spaced by name, and ten generated ones."""
    found = []
    for track in sorted((ROOT / "leaderboards").glob("*/problems")):
        paths = sorted(track.glob("*.json*"))
        chosen = paths[:: max(1, -(-len(paths) // per_track))]
        found += [(track.parent.name, load_problem(path)) for path in chosen]
    drawn = (
        generated(0, units=40, width=4, devices=3),
        generated(1, units=120, width=6, devices=3),
        generated(2, units=300, width=8, devices=4),
        generated(3, units=800, width=10, devices=4),
        generated(4, units=2_000, width=6, devices=5),
        generated(5, units=150, width=4, devices=4, memory=0.4),
        generated(6, units=400, width=6, devices=4, memory=0.3),
        generated(7, units=60, width=3, devices=3, objective="throughput"),
        generated(8, units=250, width=5, devices=4, objective="throughput"),
        generated(9, units=250, width=5, devices=4, memory=0.4, objective="throughput"),
    )
    return found + [("generated", problem) for problem in drawn if also_generated]


def heft_seconds() -> tuple[float, float]:
    """Seconds of compiled and of plain Python HEFT on the same 800 tasks; their schedules must agree."""
    problem = replace(generated(10, units=HEFT_TASKS, width=8, devices=4), name="tasks")
    problem.arrays  # noqa: B018 (compiling the problem is not HEFT)
    warm_up()
    fastest = [math.inf, math.inf]
    for _ in range(5):
        begun = time.perf_counter()
        plain = reference_heft(problem)
        fastest[1] = min(fastest[1], time.perf_counter() - begun)
        for _ in range(5):  # as long as one plain run, so that interruptions affect both alike
            begun = time.perf_counter()
            ours, _ = heft_schedule(problem)
            fastest[0] = min(fastest[0], time.perf_counter() - begun)
            assert ours.start_ns.tolist() == plain.start_ns
    return fastest[0], fastest[1]


class Runs:
    """Costs and seconds by problem, placer, placer code and planning time, kept in a file of JSON lines."""

    def __init__(self, path: Path | None, budget_s: float) -> None:
        self._path, self._budget_s = path, budget_s
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else []
        self._known = {tuple(row["run"]): (row["cost"], row["planning_s"]) for row in map(json.loads, lines)}

    def run(self, process: PlacerProcess, problem: Problem, name: str) -> tuple[int | None, float]:
        """The cost and the seconds taken; the cost is None without a valid answer."""
        key = (problem.id, name, code_of_placer(name), self._budget_s)
        if key not in self._known:
            try:
                found = process.attempt(problem, name, budget_s=self._budget_s)
                cost, planning_s = found.evaluation.cost, found.planning_s
            except SubmissionError as error:
                print(f"{problem.name}: {error}", file=sys.stderr)
                cost, planning_s = None, self._budget_s
            self._known[key] = cost, planning_s
            if self._path:
                with self._path.open("a", encoding="utf-8") as kept:
                    print(json.dumps({"run": key, "cost": cost, "planning_s": planning_s}), file=kept)
        return self._known[key]


def mean_ratio(ratios: list[float]) -> str:
    """The geometric mean of `ratios`, as text."""
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=2.0)
    parser.add_argument("--placers", default=",".join(placing_names()))
    parser.add_argument("--per-track", type=int, default=1_000, help="the largest number of problems per track")
    parser.add_argument("--only-tracks", action="store_true", help="no generated problems")
    parser.add_argument("--keep", type=Path, help="the file that keeps finished runs, so that a run can continue")
    parser.add_argument("--each", action="store_true", help="show the costs on every problem")
    given = parser.parse_args()
    ours, plain = heft_seconds()
    print(f"HEFT, {HEFT_TASKS} tasks: {ours * 1e3:.2f} ms, plain Python {plain * 1e3:.1f} ms, {plain / ours:.0f}x")
    names = given.placers.split(",")
    chosen = problems(given.per_track, also_generated=not given.only_tracks)
    runs = Runs(given.keep, given.budget)
    found: dict[str, list[tuple[int | None, float]]] = {name: [] for name in names}
    with PlacerProcess() as process:
        for _, problem in chosen:
            for name in names:
                found[name].append(runs.run(process, problem, name))
            print(f"{problem.name} done", file=sys.stderr, flush=True)
    best = [min(cost for row in found.values() if (cost := row[k][0]) is not None) for k in range(len(chosen))]
    groups = list(dict.fromkeys(group for group, _ in chosen))
    rows = []
    for name in names:
        costs = [cost for cost, _ in found[name]]
        ratios = [MISSING_RATIO if cost is None else cost / least for cost, least in zip(costs, best, strict=True)]
        parts = [
            [ratio for (where, _), ratio in zip(chosen, ratios, strict=True) if where == group] for group in groups
        ]
        longest_s = max(seconds for _, seconds in found[name])
        cells = (mean_ratio(ratios), *map(mean_ratio, parts), str(len(costs) - costs.count(None)), f"{longest_s:.2f}")
        rows.append((name, *cells, *(f"{ratio:.3f}" for ratio in ratios if given.each)))
    titles = ("placer", "cost over best", *groups, "valid", "longest s")
    numbers = [str(number) for number in range(len(best))] if given.each else []
    show_table((*titles, *numbers), sorted(rows, key=lambda row: float(row[1])))


if __name__ == "__main__":
    main()
