"""Run a submission on a problem in the sandbox; its last valid solution within the time is its answer."""

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import Attempt, hard_end_s
from opmark.leaderboards.scoring.placer_worker import compile_simulator
from opmark.leaderboards.submissions.manifest import MANIFEST, Submission
from opmark.leaderboards.submissions.protocol import last_valid, question
from opmark.leaderboards.submissions.sandbox.choice import Sandbox
from opmark.leaderboards.submissions.sandbox.limits import Limits
from opmark.leaderboards.submissions.sandbox.runtime import FOLDER, INTERPRETER, environment
from opmark.leaderboards.submissions.sandbox.session import LATE, LOUD, UNREADY, Heard, listen

# Before the clock starts, the driver of a Python placer imports OpMark; no code of the submission runs meanwhile.
READY_WITHIN_S = 60.0
_DRIVER = "opmark.leaderboards.submissions.driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRunner:
    """A submission, its sandbox and limits, and the processor that it runs on (None: any)."""

    submission: Submission
    sandbox: Sandbox
    limits: Limits = field(default_factory=Limits)
    processor: int | None = None

    def command(self, seconds: float) -> tuple[str, ...]:
        """The command that starts the submission. Raises `SubmissionError` for a program that it cannot see."""
        if self.submission.python:
            # -P: no file of the submission is imported before its own placer.py
            return (INTERPRETER, "-P", "-m", _DRIVER, FOLDER, f"{seconds:g}")
        first, *rest = self.submission.manifest.command
        if Path(first).is_absolute():
            inside = self.sandbox.program(Path(first))
            if inside is None or not os.access(first, os.X_OK):
                raise SubmissionError(
                    f"command: {first!r} is no program that a submission can start",
                    where=MANIFEST,
                    hint="name a program of the system (python3), or a file of the folder (./run)",
                )
            return (inside, *rest)
        own = (self.submission.folder / first).resolve()
        is_own = own.is_file() and own.is_relative_to(self.submission.folder.resolve())
        return (f"{FOLDER}/{first}" if is_own else first, *rest)

    def hear(self, problem: Problem, *, budget_s: float, seed: int = 0, hash_seed: int = 0) -> Heard:
        """Run the submission once; its output is not yet evaluated."""
        compile_simulator(problem)
        ready = READY_WITHIN_S if self.submission.python else None
        seconds = hard_end_s(budget_s)
        cpu_s = math.ceil(seconds + (ready or 0)) + 1
        variables = {**environment(budget_s=budget_s, seed=seed), "PYTHONHASHSEED": str(hash_seed)}
        confinement = self.sandbox.confined(
            self.command(seconds),
            self.submission.folder,
            limits=replace(self.limits, cpu_s=cpu_s),
            environment=variables,
            processor=self.processor,
        )
        with confinement as confined:
            return listen(
                confined,
                question(problem),
                seconds=seconds,
                output_bytes=self.limits.output_bytes,
                ready_within_s=ready,
            )

    def attempt(
        self, problem: Problem, name: str = "", *, budget_s: float, seed: int = 0, hash_seed: int = 0
    ) -> Attempt:
        """Run the submission and evaluate its last valid answer. Raises `SubmissionError` where there is none."""
        del name  # always the submission's own name
        heard = self.hear(problem, budget_s=budget_s, seed=seed, hash_seed=hash_seed)
        return self.judge(problem, heard, budget_s=budget_s)

    def judge(self, problem: Problem, heard: Heard, *, budget_s: float) -> Attempt:
        """Evaluate the output of a run. Raises `SubmissionError` with one sentence where no answer is valid."""
        name = self.submission.manifest.name
        if heard.end == UNREADY:
            raise SubmissionError(f"{name!r} was not ready to start: {_last_words(heard)}", where=problem.name)
        try:
            solution, evaluation, end = last_valid(problem, heard.output, complete=heard.end not in {LATE, LOUD})
        except SubmissionError as error:
            raise SubmissionError(
                f"{name!r} {_ending(heard, self.limits, budget_s)}{error.message}{_after(heard)}", where=problem.name
            ) from error
        named = replace(solution, placer=name, problem=problem.name)
        return Attempt(
            solution=named, evaluation=evaluation, planning_s=heard.seconds, answered_s=heard.heard_at(end - 1)
        )


def _ending(heard: Heard, limits: Limits, budget_s: float) -> str:
    if heard.end == LATE:
        return f"was ended {hard_end_s(budget_s):.3g} s after it got the problem and "
    if heard.end == LOUD:
        return f"was ended for printing more than {limits.output_bytes >> 20} MiB; "
    return f"ended with code {heard.code} and " if heard.code else ""


def _after(heard: Heard) -> str:
    words = _last_words(heard, nothing="")
    return f" ({words})" if words else ""


def _last_words(heard: Heard, nothing: str = "it printed nothing on standard error") -> str:
    """The last line of standard error, with unprintable characters replaced."""
    lines = [line.strip() for line in heard.errors.splitlines() if line.strip()]
    if not lines:
        return nothing
    return "".join(character if character.isprintable() else "�" for character in lines[-1][:200])
