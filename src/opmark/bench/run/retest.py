"""Measuring some kernels and networks once more, later and in new processes: how far a label can be trusted."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.bench.run.repeats import first_trials
from opmark.bench.suite.suite import Suite
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.estimate import quantile
from opmark.core.journal import Journal, read_journal, usual_of
from opmark.core.measurement import OK, USABLE
from opmark.core.records import KernelTrial

KERNELS = "kernels"
NETWORKS = "networks"
# Whole networks are few: a share of them alone would say little.
_LEAST_NETWORKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Differences between two labels of the same kernels or networks (`what`), as fractions of the first.

    Both labels are `ok`.
    """

    target: str
    what: str
    rows: int
    median: float
    p90: float
    p95: float
    largest: float


def retest_suite(suite: Suite, journal: Path, *, share: float = 0.05) -> Suite:
    """`suite` narrowed to a random `share` of what `journal` holds, from the half finished first.

    Kernels and whole networks each give their share, networks four at least. The same journal gives the same ones.
    Raises `ContentError` where the journal is of another suite, `NothingSelectedError` where it holds nothing usable.
    """
    if not journal.exists():
        raise NothingSelectedError("nothing was measured yet", where=str(journal), hint="run the suite first")
    found = read_journal(journal)
    if found.header.suite_id != suite.id:
        raise ContentError(
            f"is of suite {found.header.suite!r} as it was, not of {suite.name!r} as it is", where=str(journal)
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
    """How far two journals agree, by target, kernels and networks apart; what has no row in common is left out."""
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
    """A `share` of the trials that were `finished`, in that order, all from their first half; at least `least`."""
    early = finished[: (len(finished) + 1) // 2]
    return chance.sample(early, min(len(early), max(least, round(share * len(finished)))))


def _labels(journal: Journal) -> dict[tuple[str, str, str], float]:
    """(target, what, identity) → label of every row that is `ok`."""
    kernels = {
        (row.target, KERNELS, row.kernel.key): row.latency_hot_ns for row in journal.measurements if row.status == OK
    }
    networks = {
        (row.target, NETWORKS, f"{row.network} {row.graph_id}"): row.latency_ns
        for row in journal.networks
        if row.status == OK
    }
    return {key: value for key, value in (kernels | networks).items() if value}
