"""Run a placer in a process of its own, which is ended when the time is over."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from opmark.core.canonical import plain
from opmark.core.errors import MissingExtraError, OpMarkError, PlacementError, SubmissionError
from opmark.core.line_reader import LineReader
from opmark.core.reading import parse_json
from opmark.core.schema import convert
from opmark.core.units import format_duration
from opmark.leaderboards.problem.compile_cache import UNCOMPILED_VARIABLE
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import Attempt, hard_end_s
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate

# numba may compile the simulator first, which takes long on a busy machine.
STARTED_WITHIN_S = 900.0
# While it does, a line says so as often.
SAID_EVERY_S = 9.0
# A placer inherits only these variables, and those that begin with the words below: neither seeds nor passwords.
_INHERITED = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "VIRTUAL_ENV", "XDG_CACHE_HOME"})
_INHERITED_BEGINNINGS = ("PYTHON", "LD_", "LC_", "NUMBA_", "COVERAGE_", "COV_CORE_")
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class PlacerProcess:
    """A worker process that tries one problem after another; it is started again after it was killed.

    Use it as a context manager. Without `compiled` its code runs in plain Python. `say` hears why a start takes long.
    """

    def __init__(self, *, compiled: bool = True, say: Callable[[str], None] = lambda _: None) -> None:
        self._uncompiled = "0" if compiled else "1"
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._problem = ""
        self._lines: LineReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def attempt(
        self, problem: Problem, name: str, *, budget_s: float, seed: int = 0, within_s: float | None = None
    ) -> Attempt:
        """Run the placer `name` and evaluate its last valid solution.

        It is ended after `within_s` seconds, by default `hard_end_s(budget_s)`.

        Raises `SubmissionError` with one sentence where there is none, `MissingExtraError` where the placer lacks a
        package here, `ContentError` for a wrong problem.
        """
        problem.arrays  # noqa: B018 (report a faulty problem here, not as the death of a process)
        process = self._ask(problem, name, budget_s=budget_s, seed=seed)
        limit_s = hard_end_s(budget_s) if within_s is None else within_s
        begun, planning_s, failed, ended = time.monotonic(), None, "", False
        offers: list[tuple[float, Any]] = []
        while planning_s is None and not failed:
            message = self._next(within_s=begun + limit_s - time.monotonic())
            if message is None:
                ended = True
                break
            if "offer" in message:
                offers.append((time.monotonic() - begun, message["offer"]))
            if "unavailable" in message:
                raise MissingExtraError(message["unavailable"], hint=message.get("hint"))
            planning_s = message.get("done")
            failed = message.get("failed", "")
        spent_s = time.monotonic() - begun if planning_s is None else float(planning_s)
        if ended:
            code = process.poll()
            self.end()
            failed = f"placer {name!r} " + (
                f"was ended {limit_s:.3g} s after it got the problem, for a budget of {budget_s:.3g} s"
                if code is None
                else f"took its process down (code {code})"
            )
        solution, evaluation, answered_s = _last_valid(problem, name, offers, failed)
        return Attempt(solution=solution, evaluation=evaluation, planning_s=spent_s, answered_s=answered_s)

    def end(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        self._process, self._lines, self._problem = None, None, ""

    def _ask(self, problem: Problem, name: str, *, budget_s: float, seed: int) -> "subprocess.Popen[bytes]":
        """Send the problem and wait until the placer begins. Raises `SubmissionError` where it never does."""
        process = self._process or self._start()
        known = self._problem == problem.id
        asked = {"problem": None if known else plain(problem), "placer": name, "budget_s": budget_s, "seed": seed}
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(asked, separators=(",", ":")).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # the next message reports the end of the process
        if not self._begins(process):
            code = process.poll()
            self.end()
            raise SubmissionError(f"placer {name!r} could not be started (code {code})", where=problem.name)
        self._problem = problem.id
        return process

    def _begins(self, process: "subprocess.Popen[bytes]") -> bool:
        """Wait until the worker has compiled what it needs; False where it ended or takes too long."""
        asked = time.monotonic()
        while (waited_s := time.monotonic() - asked) < STARTED_WITHIN_S:
            if self._next(within_s=SAID_EVERY_S) is not None:
                return True
            if process.returncode is not None:
                return False
            self._say(f"still compiling the search, {format_duration(waited_s + SAID_EVERY_S)} so far")
        return False

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = worker_environment() | {UNCOMPILED_VARIABLE: self._uncompiled}
        command = [sys.executable, "-m", "opmark.leaderboards.scoring.placer_worker"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self._process.stdout is not None
        self._lines = LineReader(self._process.stdout)
        return self._process

    def _next(self, *, within_s: float) -> dict[str, Any] | None:
        """The next message, or None when the time is over or the process has ended."""
        assert self._lines is not None
        assert self._process is not None
        line = self._lines.read(within_s)
        if line is None:
            return None
        if not line:
            self._process.wait()
            return None
        message: dict[str, Any] = parse_json(line, "the process of a placer")
        return message


def worker_environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a process in which a placer runs; the seed of hidden instances is not among them."""
    kept = {
        name: value for name, value in variables.items() if name in _INHERITED or name.startswith(_INHERITED_BEGINNINGS)
    }
    return {**kept, **_THREADS}


def _last_valid(
    problem: Problem, name: str, offers: list[tuple[float, Any]], failed: str
) -> tuple[Solution, Evaluation, float]:
    """The last valid offer; without one, the error gives the reason for the very last offer."""
    reason = failed or f"placer {name!r} offered no solution"
    for number, (at, content) in enumerate(reversed(offers)):
        try:
            solution = convert(content, Solution, where=name)
            return solution, evaluate(problem, solution), at
        except OpMarkError as error:
            if not number and not failed:
                shown = str(error) if isinstance(error, PlacementError) else error.message
                reason = f"placer {name!r} is invalid: {shown}"
    raise SubmissionError(reason, where=problem.name)
