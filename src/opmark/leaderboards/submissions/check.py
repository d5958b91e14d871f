"""Try a submission on public instances, and say what a person has to change before handing it in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from opmark.core.errors import OpMarkError, SubmissionError
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import Attempt
from opmark.leaderboards.submissions.manifest import Submission, load_submission
from opmark.leaderboards.submissions.pack import digest, pack, unpacked
from opmark.leaderboards.submissions.runner import Contestant
from opmark.leaderboards.submissions.sandbox.choice import Sandbox
from opmark.leaderboards.submissions.sandbox.session import LATE

# How much dearer the same problem may become under other names.
SAME_UNTIL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run on one instance: a cost, or the reason why there is none."""

    problem: str
    cost: int | None
    unit: str = "ns"
    planning_s: float | None = None
    answered_s: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What must change (`errors`), what should (`warnings`), and how every run went."""

    name: str = ""
    sha256: str = ""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    layers: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Notes:
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)


def check(
    folder: Path,
    problems: Sequence[tuple[Problem, float]],
    sandbox: Sandbox,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Checked:
    """Pack the folder, run what was packed on `problems` (with their budgets in seconds), and collect what is wrong.

    The first problem is run twice more where the entry calls itself deterministic, and once under other names.
    """
    try:
        archive = pack(load_submission(folder))
        with unpacked(archive) as submission:
            notes = _Notes()
            contestant = Contestant(submission=submission, sandbox=sandbox)
            for number, (problem, budget_s) in enumerate(problems):
                progress(number, len(problems) + 2)
                _try(contestant, problem, budget_s, seed, notes)
            if problems and not notes.errors:
                _compare(contestant, *problems[0], seed=seed, notes=notes, progress=progress, done=len(problems))
            return Checked(
                name=submission.manifest.name,
                sha256=digest(archive),
                errors=tuple(notes.errors),
                warnings=tuple(notes.warnings),
                trials=tuple(notes.trials),
                layers=sandbox.layers(contestant.limits),
            )
    except (SubmissionError, OpMarkError) as error:
        return Checked(name=folder.name, errors=(str(error),))


def _try(contestant: Contestant, problem: Problem, budget_s: float, seed: int, notes: _Notes) -> None:
    heard = contestant.hear(problem, budget_s=budget_s, seed=seed)
    try:
        found = contestant.judge(problem, heard, budget_s=budget_s)
    except SubmissionError as error:
        notes.trials.append(Trial(problem=problem.name, cost=None, unit=problem.unit, reason=error.message))
        notes.errors.append(str(error))
        return
    cost, ended, answered = found.evaluation.cost, found.planning_s, found.answered_s
    notes.trials.append(
        Trial(problem=problem.name, cost=cost, unit=problem.unit, planning_s=ended, answered_s=answered)
    )
    if heard.end == LATE:
        notes.warnings.append(
            f"{problem.name}: it was ended when its time was over; its last solution counts, but end by yourself"
        )
    elif heard.code:
        notes.warnings.append(f"{problem.name}: it ended with code {heard.code} after its last solution")


def _compare(
    contestant: Contestant,
    problem: Problem,
    budget_s: float,
    *,
    seed: int,
    notes: _Notes,
    progress: Callable[[int, int], None],
    done: int,
) -> None:
    """Hold a second run, and one under other names, against the first."""
    cost = notes.trials[0].cost
    assert cost is not None
    submission: Submission = contestant.submission
    progress(done, done + 2)
    if submission.manifest.deterministic:
        again = _cost(contestant, problem, budget_s, seed, hash_seed=1)
        if again != cost:
            notes.errors.append(
                f"{problem.name}: a second run cost {again}, the first {cost}; draw from OPMARK_SEED, do not let the"
                " order of a set decide, or say deterministic: false"
            )
    progress(done + 1, done + 2)
    other = disguise(problem, "other-names", np.random.default_rng(0), rescale=0)
    under = _cost(contestant, other, budget_s, seed, hash_seed=0)
    if under is None or under > cost * (1 + SAME_UNTIL):
        notes.warnings.append(
            f"{problem.name}: under other names and in another order it cost {under or 'nothing valid'}, as it is"
            f" {cost}; an entry must not know instances by their names"
        )


def _cost(contestant: Contestant, problem: Problem, budget_s: float, seed: int, *, hash_seed: int) -> int | None:
    try:
        found: Attempt = contestant.attempt(problem, budget_s=budget_s, seed=seed, hash_seed=hash_seed)
    except SubmissionError:
        return None
    return found.evaluation.cost


def smallest_first(problems: Sequence[Problem]) -> list[Problem]:
    """The quickest to run first; what is known about their answers is left out."""
    return [
        replace(problem, reference=None) for problem in sorted(problems, key=lambda item: (len(item.units), item.name))
    ]
