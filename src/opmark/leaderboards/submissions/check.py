"""Try a submission on public instances, and list the changes that it needs before it can be submitted."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from opmark.core.errors import OpMarkError, SubmissionError
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import format_cost
from opmark.leaderboards.scoring.attempt import Attempt
from opmark.leaderboards.scoring.placer_worker import compile_simulator
from opmark.leaderboards.search.compilation import is_compiled
from opmark.leaderboards.submissions.manifest import Submission, load_submission
from opmark.leaderboards.submissions.pack import digest, pack, unpacked
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox.choice import Sandbox
from opmark.leaderboards.submissions.sandbox.session import LATE

# The cost of a problem may rise by this share when its names change.
SAME_UNTIL = 0.01
COMPILING = "compiling the simulator, once per version"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One run on one instance: its cost, or the reason for a missing one."""

    problem: str
    cost: int | None
    unit: str = "ns"
    planning_s: float | None = None
    answered_s: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of a check: required changes (`errors`), advised ones (`warnings`), and every run."""

    name: str = ""
    sha256: str = ""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    trials: tuple[CheckRun, ...] = ()
    layers: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Notes:
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    trials: list[CheckRun] = field(default_factory=list)


def check(
    folder: Path,
    problems: Sequence[tuple[Problem, float]],
    sandbox: Sandbox,
    *,
    seed: int = 0,
    progress: Callable[[int, int, str], None] = lambda _done, _total, _doing: None,
) -> Checked:
    """Pack a submission, run the packed files on `problems` (each with a budget in seconds), and collect its faults.

    The first problem is run again under other names, and once more where the entry is declared deterministic.
    `progress` hears the steps done, of how many, and the present one in words.
    """
    try:
        archive = pack(load_submission(folder))
        with unpacked(archive) as submission:
            notes = _Notes()
            processor = min(os.sched_getaffinity(0))
            runner = SubmissionRunner(submission=submission, sandbox=sandbox, processor=processor)
            for number, (problem, budget_s) in enumerate(problems):
                if not number:
                    progress(0, len(problems) + 2, "loading the simulator" if is_compiled() else COMPILING)
                    compile_simulator(problem)
                progress(number, len(problems) + 2, f"running it on {problem.name}, {budget_s:g} s at most")
                _try(runner, problem, budget_s, seed, notes)
            if problems and not notes.errors:
                _compare(runner, *problems[0], seed=seed, notes=notes, progress=progress, done=len(problems))
            return Checked(
                name=submission.manifest.name,
                sha256=digest(archive),
                errors=tuple(notes.errors),
                warnings=tuple(notes.warnings),
                trials=tuple(notes.trials),
                layers=sandbox.layers(runner.limits),
            )
    except (SubmissionError, OpMarkError) as error:
        return Checked(name=folder.name, errors=(str(error),))


def _try(runner: SubmissionRunner, problem: Problem, budget_s: float, seed: int, notes: _Notes) -> None:
    heard = runner.hear(problem, budget_s=budget_s, seed=seed)
    try:
        found = runner.judge(problem, heard, budget_s=budget_s)
    except SubmissionError as error:
        notes.trials.append(CheckRun(problem=problem.name, cost=None, unit=problem.unit, reason=error.message))
        notes.errors.append(str(error))
        return
    cost, ended, answered = found.evaluation.cost, found.planning_s, found.answered_s
    notes.trials.append(
        CheckRun(problem=problem.name, cost=cost, unit=problem.unit, planning_s=ended, answered_s=answered)
    )
    if heard.end == LATE:
        notes.warnings.append(
            f"{problem.name}: its time was over before it ended; its last solution counts, but it should end by itself"
        )
    elif heard.code:
        notes.warnings.append(f"{problem.name}: it ended with code {heard.code} after its last solution")


def _compare(
    runner: SubmissionRunner,
    problem: Problem,
    budget_s: float,
    *,
    seed: int,
    notes: _Notes,
    progress: Callable[[int, int, str], None],
    done: int,
) -> None:
    """Compare a second run, and a run under other names, with the first one."""
    cost = notes.trials[0].cost
    assert cost is not None
    submission: Submission = runner.submission
    if submission.manifest.deterministic:
        progress(done, done + 2, f"running it on {problem.name} a second time")
        again = _cost(runner, problem, budget_s, seed, hash_seed=1)
        if again != cost:
            notes.errors.append(
                f"{problem.name}: a second run cost {again}, the first {cost}; draw from OPMARK_SEED, avoid the order"
                " of sets, or declare deterministic: false"
            )
    progress(done + 1, done + 2, f"running it on {problem.name} under other names")
    other = disguise(problem, "other-names", np.random.default_rng(0), rescale=0)
    under = _cost(runner, other, budget_s, seed, hash_seed=0)
    if under is None or under > cost * (1 + SAME_UNTIL):
        notes.warnings.append(
            f"{problem.name}: under other names and in another order its cost is {_shown(problem, under)} instead of"
            f" {_shown(problem, cost)}; an entry must not recognise instances by their names"
        )


def _shown(problem: Problem, cost: int | None) -> str:
    return "not valid" if cost is None else format_cost(cost, problem.unit)


def _cost(runner: SubmissionRunner, problem: Problem, budget_s: float, seed: int, *, hash_seed: int) -> int | None:
    try:
        found: Attempt = runner.attempt(problem, budget_s=budget_s, seed=seed, hash_seed=hash_seed)
    except SubmissionError:
        return None
    return found.evaluation.cost


def smallest_first(problems: Sequence[Problem]) -> list[Problem]:
    """Sort problems by size, smallest first, and remove their references."""
    return [
        replace(problem, reference=None) for problem in sorted(problems, key=lambda item: (len(item.units), item.name))
    ]
