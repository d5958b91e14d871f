"""Labels of several journals are told at the level of the memory in calm hours."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.datasets.journals import write_journal

from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.journal import Journal, read_journal
from opmark.datasets.release.memory_levels import Told, at_calm_memory
from opmark.kinds import KINDS

LEVEL = math.log(1.5)
NETWORK_EFFECT = 0.25


def _kernel(pixels: int) -> Kernel:
    family = KINDS.load("elementwise")
    shape = (1, 16, pixels, pixels)
    return family.kernel(family.parameters(op="add", shapes=(shape, shape)))


LARGE = [_kernel(pixels) for pixels in range(440, 640, 5)]
SMALL = [_kernel(pixels) for pixels in range(20, 28)]


def _journal(
    path: Path,
    level: float = 0.0,
    effect: Callable[[Kernel], float] = lambda _: 0.0,
    compute: tuple[float, ...] = (1000.0,) * 31,
) -> Journal:
    return read_journal(
        write_journal(
            path,
            [*LARGE, *SMALL],
            slower=lambda kernel: math.exp(level * effect(kernel)),
            networks=["tiny", "small", "large"],
            network_slower=math.exp(level * NETWORK_EFFECT),
            beside={"compute": compute, "memory": (2000.0 * math.exp(level),) * 31},
        )
    )


def _hot_ns(told: Told, kernels: list[Kernel]) -> list[float]:
    known = {row.kernel.key: row.latency_hot_ns for row in told[0]}
    found = [known[kernel.key] for kernel in kernels]
    assert None not in found
    return [ns for ns in found if ns]


def _apart(one: list[float], other: list[float]) -> float:
    return max(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))


def _only_large(kernel: Kernel) -> float:
    return 0.35 if kernel in LARGE else 0.0


def test_hours_of_slow_memory_agree_with_calm_ones_on_kernels_beyond_the_caches(tmp_path: Path) -> None:
    journals = [_journal(tmp_path / "calm.jsonl"), _journal(tmp_path / "slow.jsonl", LEVEL, _only_large)]
    before = [_hot_ns((journal.measurements, journal.networks), LARGE) for journal in journals]
    calm, slow = (_hot_ns(told, LARGE) for told in at_calm_memory(journals))
    assert _apart(*before) > 0.9 * 0.35 * LEVEL
    assert _apart(calm, slow) < 0.2 * 0.35 * LEVEL
    # All are told at the calm level.
    assert _apart(calm, before[0]) < 0.2 * 0.35 * LEVEL


def test_kernels_in_the_caches_keep_their_labels(tmp_path: Path) -> None:
    journals = [_journal(tmp_path / "calm.jsonl"), _journal(tmp_path / "slow.jsonl", LEVEL, _only_large)]
    for journal, told in zip(journals, at_calm_memory(journals), strict=True):
        before = _hot_ns((journal.measurements, journal.networks), SMALL)
        assert _apart(before, _hot_ns(told, SMALL)) < 0.03 * LEVEL


def test_networks_are_told_at_the_same_level(tmp_path: Path) -> None:
    journals = [_journal(tmp_path / "calm.jsonl"), _journal(tmp_path / "slow.jsonl", LEVEL, _only_large)]
    calm, slow = (
        [row.latency_ns for row in networks if row.latency_ns is not None] for _, networks in at_calm_memory(journals)
    )
    assert len(calm) == len(slow) == 3
    assert _apart(calm, slow) < 0.5 * NETWORK_EFFECT * LEVEL


def test_what_the_level_leaves_open_is_part_of_the_error(tmp_path: Path) -> None:
    journals = [_journal(tmp_path / "calm.jsonl"), _journal(tmp_path / "slow.jsonl", LEVEL, _only_large)]
    for journal, (kernels, _) in zip(journals, at_calm_memory(journals), strict=True):
        for before, row in zip(journal.measurements, kernels, strict=True):
            assert before.standard_error_hot is not None
            assert row.standard_error_hot is not None
            added = math.sqrt(row.standard_error_hot**2 - before.standard_error_hot**2)
            assert added > 0.01 if row.kernel in LARGE else added < 0.003
            assert before.latency_hot_ns is not None
            assert row.latency_hot_ns is not None
            factor = row.latency_hot_ns / before.latency_hot_ns
            assert row.hot_quantiles_ns == pytest.approx([factor * ns for ns in before.hot_quantiles_ns])


def test_one_journal_tells_no_level(tmp_path: Path) -> None:
    journal = _journal(tmp_path / "alone.jsonl", LEVEL)
    assert at_calm_memory([journal]) == [(journal.measurements, journal.networks)]


def test_machines_that_are_seldom_calm_keep_their_labels(tmp_path: Path) -> None:
    restless = tuple(1000.0 * 1.05**step for step in range(31))
    journals = [
        _journal(tmp_path / f"{level}.jsonl", level, _only_large, compute=restless) for level in (0.0, 0.2, 0.4)
    ]
    assert at_calm_memory(journals) == [(journal.measurements, journal.networks) for journal in journals]


@pytest.mark.parametrize(("level", "effect"), [(0.1, 0.3), (0.3, 0.5), (0.6, 0.7)])
def test_the_effect_is_told_by_kernels_that_both_measured(tmp_path: Path, level: float, effect: float) -> None:
    journals = [
        _journal(tmp_path / "calm.jsonl"),
        _journal(tmp_path / "slow.jsonl", level, lambda kernel: effect if kernel in LARGE else 0.0),
    ]
    calm, slow = (_hot_ns(told, LARGE) for told in at_calm_memory(journals))
    assert _apart(calm, slow) < 0.6 * effect * level
