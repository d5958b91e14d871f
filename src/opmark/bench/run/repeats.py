"""Measure a random share of a suite again, into a new journal, and compare."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.bench.suite.suite import Suite
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.measurements.estimate import quantile
from opmark.core.measurements.journal import Journal, calm_of, read_journal
from opmark.core.measurements.records import KernelTrial

KERNELS = "kernels"
NETWORKS = "networks"
# Networks are few: a small share of them would say little.
_LEAST_NETWORKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Relative differences between two labels of the same kernels or networks (`what`).

    `covered` is the share of pairs that differ by less than 1.645 of their standard errors: nine of ten if these are
    true. `floor` is the error of one label that the differences show (their root mean square over √2, robust).
    """

    target: str
    what: str
    rows: int
    median: float
    p90: float
    p95: float
    largest: float
    covered: float | None = None
    floor: float | None = None


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
    usable = [trial for trial in found.trials if trial in found.labels]
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
    before, after = (_labels(journal.beside(calm_of(journals))) for journal in journals)
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (target, what, name), (latency_ns, error) in after.items():
        if (target, what, name) in before:
            other_ns, other = before[target, what, name]
            pairs.setdefault((target, what), []).append((abs(latency_ns / other_ns - 1), math.hypot(error, other)))
    return tuple(_agreement(target, what, found) for (target, what), found in sorted(pairs.items()))


def _agreement(target: str, what: str, pairs: Sequence[tuple[float, float]]) -> Agreement:
    found = [difference for difference, _ in pairs]
    return Agreement(
        target=target,
        what=what,
        rows=len(found),
        median=quantile(found, 0.5),
        p90=quantile(found, 0.9),
        p95=quantile(found, 0.95),
        largest=max(found),
        covered=sum(difference <= 1.645 * error for difference, error in pairs) / len(pairs),
        floor=1.4826 * quantile(found, 0.5) / math.sqrt(2),
    )


def _some(finished: Sequence[str], share: float, least: int, chance: random.Random) -> list[str]:
    """A random `share` of the `finished` trials, at least `least`, all from their first half."""
    early = finished[: (len(finished) + 1) // 2]
    return chance.sample(early, min(len(early), max(least, round(share * len(finished)))))


def _labels(journal: Journal) -> dict[tuple[str, str, str], tuple[float, float]]:
    """(target, what, identity) → the label in ns and its standard error."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for key, labels in journal.labels.items():
        trial = journal.trials[key]
        if isinstance(trial, KernelTrial):
            name = (trial.target, KERNELS, trial.kernel.key)
        else:
            name = (trial.target, NETWORKS, f"{trial.network} {trial.graph_id}")
        found[name] = (labels.main.latency_ns, labels.main.standard_error)
    return found
