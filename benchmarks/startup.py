"""Measure how long the first answer takes after an installation, with an empty cache of compiled code.

Prints the seconds and the processor seconds of `opmark --help`, of `opmark leaderboards place` with a quick placer and
with the search, before and after everything is compiled, until the first answer of a search that is not compiled yet,
and of compiling. A cold search compiles, too.

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
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = ROOT / "leaderboards" / "inference-latency" / "problems" / "inception-epyc-both.json.gz"
FIRST_ANSWER_LIMIT_S, HELP_LIMIT_S = 3.0, 1.0
# Fields of /proc/PID/stat behind the program's name: the session; user and system time, also of ended children.
_SESSION, _TIMES = 3, slice(11, 15)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Seconds by the clock, and of the processors; without a reading of the latter, None."""

    seconds: float
    processor_s: float | None


def run(command: list[str], environment: dict[str, str], mark: str = "") -> tuple[Spent, Spent | None]:
    """The time of a command, and its time until a line of stderr begins with `mark`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    marked = None
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if mark and marked is None and line.startswith(mark):
                marked = Spent(seconds=time.perf_counter() - begun, processor_s=session_processor_s(process.pid))
    seconds = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(
        seconds=seconds, processor_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ), marked


def session_processor_s(session: int) -> float | None:
    """The processor time of all processes of a session so far; None where the system does not tell."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[_SESSION]) == session:
            ticks += sum(map(int, fields[_TIMES]))
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else None


def measure(problem: Path, budget: str) -> dict[str, Spent | None]:
    """All times, with cache folders of their own."""
    opmark = [sys.executable, "-m", "opmark"]
    placing = [*opmark, "leaderboards", "place", str(problem), "--budget", budget, "--placer"]
    compiling = [sys.executable, "-m", "opmark.leaderboards.search.compilation"]
    found: dict[str, Spent | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        run([*opmark, "--help"], environment)  # writes the byte code
        found["help"], _ = run([*opmark, "--help"], environment)
        found["cold search"], found["first answer"] = run([*placing, "opmark"], environment, "note: first answer")
        run([*placing, "heft"], environment)
        found["heft"], _ = run([*placing, "heft"], environment)
        found["search"], _ = run([*placing, "opmark"], environment)
    with tempfile.TemporaryDirectory() as folder:
        found["compiling"], _ = run(compiling, {**os.environ, "NUMBA_CACHE_DIR": folder})
    return found


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", type=Path, default=PROBLEM)
    parser.add_argument("--budget", default="2s")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.problem, options.budget)
    if options.json:
        print(json.dumps({name: None if one is None else asdict(one) for name, one in found.items()}))
        return
    limits = {"help": HELP_LIMIT_S, "first answer": FIRST_ANSWER_LIMIT_S, "heft": FIRST_ANSWER_LIMIT_S}
    print(f"{'':24s} {'seconds':>10s} {'processor':>10s}")
    for name, one in found.items():
        shown = [None, None] if one is None else [one.seconds, one.processor_s]
        cells = " ".join(f"{'none' if value is None else f'{value:.2f}':>10s}" for value in shown)
        limit = f"   at most {limits[name]} s" if name in limits else ""
        print(f"{name:24s} {cells}{limit}")


if __name__ == "__main__":
    main()
