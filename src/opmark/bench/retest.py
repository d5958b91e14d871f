"""Measuring some kernels once more, later and in new processes: how far a label can be trusted."""

import random
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.bench.suite import Suite
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.estimate import quantile
from opmark.core.journal import read_journal
from opmark.core.measurement import OK, USABLE
from opmark.core.records import KernelTrial


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Differences between two labels of the same kernel, as fractions of the first, where both are `ok`."""

    kernels: int
    median: float
    p90: float
    p95: float
    largest: float


def retest_suite(suite: Suite, journal: Path, *, share: float = 0.05) -> Suite:
    """`suite` narrowed to a random `share` of the kernels that `journal` holds, from the half finished first.

    The same journal gives the same ones. Raises `ContentError` where the journal is of another suite,
    `NothingSelectedError` where it holds no usable kernel.
    """
    found = read_journal(journal)
    if found.header.suite_id != suite.id:
        raise ContentError(
            f"is of suite {found.header.suite!r} as it was, not of {suite.name!r} as it is", where=str(journal)
        )
    usable = [
        trial
        for trial, done in found.done.items()
        if done.status in USABLE and isinstance(found.trials.get(trial), KernelTrial)
    ]
    if not usable:
        raise NothingSelectedError("no kernel was measured yet", where=str(journal), hint="run the suite first")
    early = usable[: (len(usable) + 1) // 2]
    count = min(len(early), max(1, round(share * len(usable))))
    chosen = random.Random(f"{suite.seed}/retest").sample(early, count)
    return replace(suite, only=tuple(sorted(chosen)))


def agreement(first: Path, again: Path) -> dict[str, Agreement]:
    """How far two journals agree, by target; targets without a common kernel are left out."""
    before = {
        (row.target, row.kernel.key): row.latency_hot_ns for row in read_journal(first).measurements if row.status == OK
    }
    differences: dict[str, list[float]] = {}
    for row in read_journal(again).measurements:
        earlier = before.get((row.target, row.kernel.key))
        if row.status == OK and row.latency_hot_ns is not None and earlier:
            differences.setdefault(row.target, []).append(abs(row.latency_hot_ns / earlier - 1))
    return {
        target: Agreement(
            kernels=len(found),
            median=quantile(found, 0.5),
            p90=quantile(found, 0.9),
            p95=quantile(found, 0.95),
            largest=max(found),
        )
        for target, found in sorted(differences.items())
    }
