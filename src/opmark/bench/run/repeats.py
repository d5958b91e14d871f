"""Measure trials again: those of poor status in the same journal, or a random share in a new one.

A trial is repeated because of its status, never because of its value, and nothing is removed. A journal keeps all
trials, and a release shows the one of the best status, with the others among its repeats.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.bench.suite.plan import Plan
from opmark.bench.suite.suite import Suite
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.measurements.estimate import quantile
from opmark.core.measurements.journal import Journal, read_journal, usual_of
from opmark.core.measurements.measurement import FAILED, LOW_QUALITY, OK, USABLE
from opmark.core.measurements.records import KernelTrial, NetworkTrial, Trial, repeat_key

# A quiet hour or a machine with more memory may change these; a skipped kernel stays skipped.
REPEATABLE = (LOW_QUALITY, FAILED)
KERNELS = "kernels"
NETWORKS = "networks"
# Networks are few: a small share of them would say little.
_LEAST_NETWORKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Relative differences between two labels with status `ok` of the same kernels or networks (`what`)."""

    target: str
    what: str
    rows: int
    median: float
    p90: float
    p95: float
    largest: float


def repeat_plan(plan: Plan, journal: Journal, status: str) -> Plan:
    """The trials of `plan` for which `journal` has nothing better than `status`, each as a further trial.

    An unfinished further trial continues, so a stopped run goes on. After a complete run, the trials that still have
    that status get another one. Raises `NothingSelectedError` if there are none.
    """
    models = {}
    kernels: list[KernelTrial] = []
    networks: list[NetworkTrial] = []
    for trial in plan.trials:
        number = _attempts(journal, trial.trial, status)
        if not number:
            continue
        other = replace(trial, trial=repeat_key(trial.trial, number))
        if isinstance(other, KernelTrial):
            kernels.append(other)
        else:
            networks.append(other)
            models[other.trial] = plan.models[trial.trial]
    if not kernels and not networks:
        raise NothingSelectedError(f"nothing of this suite is {status}", where=str(journal.path))
    return replace(plan, kernels=tuple(kernels), networks=tuple(networks), models=models, judging=frozenset())


def first_trials(journal: Journal) -> Iterator[Trial]:
    """The trials of a journal without repeats."""
    again = set()
    for key in journal.trials:
        number = 1
        while (further := repeat_key(key, number)) in journal.trials:
            again.add(further)
            number += 1
    for key, trial in journal.trials.items():
        if key not in again:
            yield trial


def _attempts(journal: Journal, trial: str, status: str) -> int:
    """The number of finished trials and repeats if all of them have `status`; else 0."""
    number = 0
    while (done := journal.done.get(repeat_key(trial, number))) is not None:
        if done.status != status:
            return 0
        number += 1
    return number


def retest_suite(suite: Suite, journal: Path, *, share: float = 0.05) -> Suite:
    """Restrict `suite` to a random `share` of the trials in `journal`, all from the half that finished first.

    Kernels and networks each contribute their share, and at least four networks. The same journal gives the same
    trials. Raises `ContentError` if the journal belongs to another suite, `NothingSelectedError` if it has no usable
    trial.
    """
    if not journal.exists():
        raise NothingSelectedError("nothing was measured yet", where=str(journal), hint="run the suite first")
    found = read_journal(journal)
    if found.header.suite_id != suite.id:
        raise ContentError(
            f"belongs to suite {found.header.suite!r} with other content than the current suite {suite.name!r}",
            where=str(journal),
        )
    once = {trial.trial for trial in first_trials(found)}
    usable = [trial for trial, done in found.done.items() if done.status in USABLE and trial in once]
    kernels = [trial for trial in usable if isinstance(found.trials[trial], KernelTrial)]
    networks = [trial for trial in usable if not isinstance(found.trials[trial], KernelTrial)]
    if not usable:
        raise NothingSelectedError("nothing was measured yet", where=str(journal), hint="run the suite first")
    chance = random.Random(f"{suite.seed}/retest")
    chosen = [*_some(kernels, share, 1, chance), *_some(networks, share, _LEAST_NETWORKS, chance)]
    return replace(suite, only=tuple(sorted(chosen)))


def agreement(first: Path, again: Path) -> tuple[Agreement, ...]:
    """Compare two journals by target, kernels and networks apart; without common rows there is no entry."""
    journals = [read_journal(first), read_journal(again)]
    before, after = (_labels(journal.beside(usual_of(journals))) for journal in journals)
    differences: dict[tuple[str, str], list[float]] = {}
    for (target, what, name), latency_ns in after.items():
        if (target, what, name) in before:
            differences.setdefault((target, what), []).append(
                abs(latency_ns / before[target, what, name] - 1),
            )
    return tuple(
        Agreement(
            target=target,
            what=what,
            rows=len(found),
            median=quantile(found, 0.5),
            p90=quantile(found, 0.9),
            p95=quantile(found, 0.95),
            largest=max(found),
        )
        for (target, what), found in sorted(differences.items())
    )


def _some(finished: Sequence[str], share: float, least: int, chance: random.Random) -> list[str]:
    """A random `share` of the `finished` trials, at least `least`, all from their first half."""
    early = finished[: (len(finished) + 1) // 2]
    return chance.sample(early, min(len(early), max(least, round(share * len(finished)))))


def _labels(journal: Journal) -> dict[tuple[str, str, str], float]:
    """(target, what, identity) → label of every row with status `ok`."""
    kernels = {
        (row.target, KERNELS, row.kernel.key): row.latency_hot_ns for row in journal.measurements if row.status == OK
    }
    networks = {
        (row.target, NETWORKS, f"{row.network} {row.graph_id}"): row.latency_ns
        for row in journal.networks
        if row.status == OK
    }
    return {key: value for key, value in (kernels | networks).items() if value}
