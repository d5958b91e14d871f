"""The `opmark` placer of this tree beside that of an older revision, problem by problem and track by track.

Run it from the repository: `python benchmarks/search.py [--cpu-time] [--seeds 0,1,2] [--keep FILE]`. Without `--budget`
all scored problems get 2 s and five of each track 60 s. The older revision is checked out into a temporary worktree,
or stands in `--old-tree` already, where it compiles only once; each side plans in a process of its own, old and new in
turn, and this tree's simulator judges both answers. `--tracks` takes older versions too, as TRACK@VERSION. With
`--cpu-time` budgets count the CPU time of the planning process, so that a busy machine does not matter. With several
seeds a problem counts by the geometric mean of its costs. `--keep` stores finished runs, and a later call goes on from
there; runs of the new side are known by the hash of this tree's sources.
"""

import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from opmark.cli.text.terminal import show_table
from opmark.core.errors import OpMarkError
from opmark.core.schema import convert
from opmark.leaderboards.problem.files import problem_text
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.track import Track, load_track, track_names
from opmark.leaderboards.simulator.evaluation import evaluate

ROOT = Path(__file__).resolve().parents[1]
# The last revision with three searches.
OLD = "2ca16bb07bec99b07d4b3ef92ab7465fae136691"
SHORT_S, LONG_S, LONG_PER_TRACK = 2.0, 60.0, 5
MISSING_RATIO = 100.0
SIDES = ("old", "new")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One problem of a track, the budget to solve it in, and a seed."""

    track: str
    problem: Problem
    budget_s: float
    seed: int

    @property
    def of_seeds(self) -> tuple[float, str, str]:
        """Budget, track and problem: questions that differ in their seeds only share them."""
        return self.budget_s, self.track, self.problem.name


class Side:
    """A worker process of one revision. A context manager."""

    def __init__(self, sources: Path, *, cpu_time: bool) -> None:
        self._sources, self._flags = sources, ["--cpu-time"] if cpu_time else []
        self._cold = True

    def __enter__(self) -> Self:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "benchmarks" / "search_worker.py"), *self._flags],
            env={**os.environ, **threads, "PYTHONPATH": str(self._sources)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, question: Question) -> dict[str, Any]:
        """The cost of the answer (None: no valid one), its CPU seconds, and annealing steps per second."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"problem": told(question.problem), "budget_s": question.budget_s, "seed": question.seed}
        asked["warm_up"] = self._cold
        self._cold = False
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        cost = None
        try:
            cost = evaluate(question.problem, convert(answer["solution"], Solution, where="solution")).cost
        except (KeyError, OpMarkError) as error:
            print(f"{question.problem.name}: {answer.get('failed', error)}", file=sys.stderr)
        return {"cost": cost, "cpu_s": answer["cpu_s"], "per_second": answer["per_second"]}


def told(problem: Problem) -> dict[str, Any]:
    """A problem in plain JSON, without fields that are empty or decide no cost: an older revision may not know them.

    The placer takes none of the splits that units offer, so they decide no cost either.
    """
    empty = {name for name in problem.__dataclass_fields__ if not getattr(problem, name)}
    content = json.loads(problem_text(problem))
    for unit in content["units"]:
        unit.pop("splits", None)
    return {key: value for key, value in content.items() if key not in {"schema", "provenance", "reference", *empty}}


class Kept:
    """Finished runs, in a file of JSON lines where one is given."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, threading.Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else []
        self.rows = {tuple(row["run"]): row["found"] for row in map(json.loads, lines)}

    def spread(self, asked: Question) -> float:
        """The largest kept cost of a problem over the smallest, of any revision and seed; 1 where there is none."""
        wanted = (asked.track, asked.problem.name, asked.problem.id, asked.budget_s)
        costs = [found["cost"] for run, found in self.rows.items() if run[1:5] == wanted and found["cost"]]
        return max(costs) / min(costs) if costs else 1.0

    def add(self, run: tuple[Any, ...], found: dict[str, Any]) -> None:
        """Remember one run."""
        with self._lock:
            self.rows[run] = found
            if self._path:
                with self._path.open("a", encoding="utf-8") as kept:
                    print(json.dumps({"run": run, "found": found}), file=kept)


@contextmanager
def checked_out(revision: str, there: Path | None) -> Iterator[Path]:
    """A work tree of a revision: the one that is `there`, or a temporary one."""
    if there is not None:
        yield there.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), revision], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def source_hash(sources: Path) -> str:
    """A short hash of the leaderboards' Python files."""
    digest = hashlib.sha256()
    for path in sorted((sources / "opmark" / "leaderboards").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def questions(given: argparse.Namespace, kept: Kept) -> list[Question]:
    """All scored problems at the short budget and some at the long one, or all at the one budget that was given."""
    tracks = [load_track(ROOT / "leaderboards", name) for name in given.tracks or known_tracks(given.old)]
    found = []
    for track in tracks:
        problems = [one for one in scored(track) if not given.problems or one.name in given.problems]
        some = problems[:: max(1, len(problems) // LONG_PER_TRACK)][:LONG_PER_TRACK]
        chosen = {given.budget: some if given.some else problems} if given.budget else {SHORT_S: problems, LONG_S: some}
        found += [
            Question(track=track.name, problem=one, budget_s=budget_s, seed=seed)
            for budget_s, asked in chosen.items()
            for one in asked
            for seed in given.seeds
        ]
    if given.widest:
        spread = {one.of_seeds: kept.spread(one) for one in found}
        widest = set(sorted(spread, key=lambda one: (-spread[one], one))[: given.widest])
        found = [one for one in found if one.of_seeds in widest]
    return sorted(found, key=lambda one: one.budget_s)


def known_tracks(revision: str) -> list[str]:
    """The tracks that a revision has too."""
    command = ["git", "ls-tree", "--name-only", revision, "leaderboards/"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [name for name in track_names(ROOT / "leaderboards") if f"leaderboards/{name}" in listed]


def scored(track: Track) -> list[Problem]:
    """The problems of a track that count: those with something to win."""
    content = json.loads((track.folder / "standings.json").read_text(encoding="utf-8"))
    names = {result["problem"] for result in content["rows"][0]["results"] if result["scored"]}
    return [problem for problem in track.problems() if problem.name in names]


def run_all(asked: Sequence[Question], given: argparse.Namespace, kept: Kept) -> dict[str, list[dict[str, Any]]]:
    """Every question put to both sides in turn; several at a time with `--jobs`."""
    keys = {"old": given.old, "new": source_hash(ROOT / "src")}

    def key_of(side: str, one: Question) -> tuple[Any, ...]:
        clock = "cpu" if given.cpu_time else "wall"
        return (keys[side], one.track, one.problem.name, one.problem.id, one.budget_s, one.seed, clock)

    missing = [one for one in asked if any(key_of(side, one) not in kept.rows for side in SIDES)]
    with ExitStack() as stack:
        old = [one for one in missing if key_of("old", one) not in kept.rows]
        tree = stack.enter_context(checked_out(given.old, given.old_tree)) if old else ROOT
        pairs: queue.Queue[dict[str, Side]] = queue.Queue()
        for _ in range(given.jobs if missing else 0):
            places = {"old": tree / "src", "new": ROOT / "src"}
            sides = {side: Side(places[side], cpu_time=given.cpu_time) for side in SIDES if side == "new" or old}
            pairs.put({name: stack.enter_context(side) for name, side in sides.items()})

        def run(one: Question) -> None:
            pair = pairs.get()
            try:
                for side in SIDES:
                    if key_of(side, one) not in kept.rows:
                        kept.add(key_of(side, one), pair[side].ask(one))
            finally:
                pairs.put(pair)
            costs = [kept.rows[key_of(side, one)]["cost"] for side in SIDES]
            print(f"{one.track} {one.problem.name} {one.budget_s:g} s: {costs}", file=sys.stderr, flush=True)

        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(run, missing))
    return {side: [kept.rows[key_of(side, one)] for one in asked] for side in SIDES}


def ratio(problem: Problem, cost: int | None) -> float:
    """A cost over the best known one."""
    assert problem.reference is not None
    return MISSING_RATIO if cost is None else cost / problem.reference.best_known_ns


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def show(asked: Sequence[Question], found: dict[str, list[dict[str, Any]]], *, each: bool) -> None:
    """A row per budget and track: means over the best known cost, the worst problem, and steps per second."""
    runs: dict[tuple[float, str, str], list[int]] = {}
    for k, one in enumerate(asked):
        runs.setdefault(one.of_seeds, []).append(k)
    over = {
        (side, key): mean([ratio(asked[k].problem, found[side][k]["cost"]) for k in rows])
        for key, rows in runs.items()
        for side in SIDES
    }
    against = {key: over["new", key] / over["old", key] for key in runs}
    rows = []
    for budget_s, track in sorted({key[:2] for key in runs}):
        keys = [key for key in runs if key[:2] == (budget_s, track)]
        worst = max(keys, key=against.__getitem__)
        speeds = []
        for side in SIDES:
            told_speeds = [found[side][k]["per_second"] for key in keys for k in runs[key]]
            speeds.append(f"{mean([one for one in told_speeds if one]):,.0f}" if any(told_speeds) else "")
        rows.append(
            (
                f"{budget_s:g} s",
                track,
                str(len(keys)),
                *(f"{mean([over[side, key] for key in keys]):.4f}" for side in SIDES),
                f"{mean([against[key] for key in keys]):.4f}",
                f"{worst[2]} {against[worst]:.4f}",
                *speeds,
            )
        )
    if each:
        details = [
            (f"{key[0]:g} s", *key[1:], *(f"{value:.4f}" for value in (over["old", key], over["new", key], new)))
            for key, new in sorted(against.items(), key=lambda item: (*item[0][:2], item[1]))
        ]
        show_table(("budget", "track", "problem", "old", "new", "new/old"), details)
    show_table(("budget", "track", "problems", "old", "new", "new/old", "worst", "old steps/s", "new steps/s"), rows)


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--old", default=OLD, help="revision to compare with")
    parser.add_argument("--old-tree", type=Path, help="a work tree of that revision")
    parser.add_argument("--budget", type=float, help="one budget in seconds for all problems")
    parser.add_argument("--tracks", type=lambda text: text.split(","), default=[])
    parser.add_argument("--problems", type=lambda text: text.split(","), default=[])
    parser.add_argument("--some", action="store_true", help="with --budget: five problems of each track")
    parser.add_argument("--widest", type=int, help="only so many problems: those whose kept answers differ most")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="pairs of processes at a time")
    parser.add_argument("--cpu-time", action="store_true", help="budgets count CPU time")
    parser.add_argument("--keep", type=Path, help="file of finished runs, to go on later")
    parser.add_argument("--each", action="store_true", help="show every problem")
    given = parser.parse_args()
    kept = Kept(given.keep)
    asked = questions(given, kept)
    show(asked, run_all(asked, given, kept), each=given.each)


if __name__ == "__main__":
    main()
