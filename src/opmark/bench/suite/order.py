"""The order of a plan's kernels, and its division into shards for several machines."""

import random
from collections.abc import Sequence
from typing import TypeVar

from opmark.bench.suite.suite import Suite
from opmark.core.errors import UsageError
from opmark.core.measurements.records import KernelTrial, NetworkTrial

OneTrial = TypeVar("OneTrial", KernelTrial, NetworkTrial)


def parse_shard(text: str) -> tuple[int, int]:
    """(0, 4) for `1/4`. Raises `UsageError`."""
    index, _, count = text.partition("/")
    if not (len(text) < 20 and index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"{text!r} is not a shard", hint="write it like 1/4: the first of four")
    return int(index) - 1, int(count)


def in_shard(trials: Sequence[OneTrial], shard: tuple[int, int]) -> list[OneTrial]:
    """The trials of `shard` (index, count), by their keys: the shards are disjoint and together complete."""
    index, count = shard
    return [trial for trial in trials if int(trial.trial, 16) % count == index]


def spread(kernels: Sequence[KernelTrial], suite: Suite) -> list[KernelTrial]:
    """Order trials so that every prefix has all kinds and targets in proportion, with `suite.first` in front."""
    chance = random.Random(suite.seed)
    groups: dict[tuple[str, str], list[KernelTrial]] = {}
    for trial in kernels:
        groups.setdefault((trial.target, trial.kernel.kind), []).append(trial)
    placed = []
    for group in groups.values():
        chance.shuffle(group)
        later = group[0].kernel.kind not in suite.first
        placed += [(later, (index + chance.random()) / len(group), trial) for index, trial in enumerate(group)]
    return [trial for _, _, trial in sorted(placed, key=lambda item: item[:2])]
