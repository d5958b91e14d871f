"""Measure how long the first answer takes after an installation, with an empty cache of compiled code.

Prints the seconds until `opmark --help` ends, until `opmark leaderboards place` has a first answer and its last one,
the processor time that compiling takes, and the same two times once everything is compiled.

    python benchmarks/startup.py [--problem FILE] [--budget 2s] [--json]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = ROOT / "leaderboards" / "inference-latency" / "problems" / "inception-epyc-both.json.gz"
FIRST_ANSWER_LIMIT_S, HELP_LIMIT_S = 3.0, 1.0


def seconds_of(command: list[str], environment: dict[str, str], mark: str = "") -> tuple[float, float, float | None]:
    """Seconds and processor seconds of a command, and the seconds until a line of stderr begins with `mark`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    marked = None
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if mark and marked is None and line.startswith(mark):
                marked = time.perf_counter() - begun
    spent = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, marked


def measure(problem: Path, budget: str) -> dict[str, float | None]:
    """All times, with a cache folder of their own."""
    opmark = [sys.executable, "-m", "opmark"]
    placing = [*opmark, "leaderboards", "place", str(problem), "--placer", "opmark", "--budget", budget]
    compiling = [sys.executable, "-m", "opmark.leaderboards.scoring.compilation"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        help_s, _, _ = seconds_of([*opmark, "--help"], environment)
        cold_s, _, first_s = seconds_of(placing, environment, "note: first answer")
        warm_s, _, _ = seconds_of(placing, environment)
    with tempfile.TemporaryDirectory() as folder:
        _, compiling_s, _ = seconds_of(compiling, {**os.environ, "NUMBA_CACHE_DIR": folder})
    return {
        "help_s": help_s,
        "first_answer_s": first_s,
        "cold_place_s": cold_s,
        "compiling_processor_s": compiling_s,
        "warm_place_s": warm_s,
    }


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", type=Path, default=PROBLEM)
    parser.add_argument("--budget", default="2s")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.problem, options.budget)
    if options.json:
        print(json.dumps(found))
        return
    limits = {"help_s": HELP_LIMIT_S, "first_answer_s": FIRST_ANSWER_LIMIT_S}
    for name, seconds in found.items():
        shown = "none" if seconds is None else f"{seconds:.2f} s"
        limit = f"   at most {limits[name]} s" if name in limits else ""
        print(f"{name.removesuffix('_s').replace('_', ' '):24s} {shown:>10s}{limit}")


if __name__ == "__main__":
    main()
