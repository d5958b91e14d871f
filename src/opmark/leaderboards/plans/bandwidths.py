"""Measured bandwidths between GPUs, as polynomials over the logarithm of a message's size (Sailor's network files).

A bandwidth in GB/s is a polynomial in log2 of the message's megabytes, fitted to NCCL's send and receive; beside it
stands the greatest one measured, in bytes per second. Between nodes it goes by zone, GPU type and count of GPUs of
sender and receiver; within a node by GPU type and count.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.reading import read_json

BETWEEN, WITHIN = "multizone_bandwidths_het.json", "intra_node_bandwidths.json"
MEGABYTE = 1e6
# Limits of a polynomial's values, as parts of the greatest bandwidth that was measured.
_LEAST, _MOST = 0.002, 1.05
# In log2 of megabytes.
_SMALLEST = -15
_COUNT = "number of GPUs"
_WHOLE = re.compile(r"[0-9]{1,6}", re.ASCII)


@dataclass(frozen=True)
class Bandwidth:
    """One fitted bandwidth; the time of a message never falls when its size grows."""

    coefficients: tuple[float, ...]
    greatest_bytes_per_s: float

    def seconds(self, size_bytes: float) -> float:
        """The time of one message: small ones cost the least time there is, large ones go at the peak."""
        if size_bytes <= 0:
            return 0.0
        low, high = self._trusted
        size = math.log2(size_bytes / MEGABYTE)
        least = 2**low * MEGABYTE / self._rate(low)
        return least if size < low else max(least, size_bytes / self._rate(min(size, high)))

    def _rate(self, size: float) -> float:
        found = 0.0
        for coefficient in self.coefficients:
            found = found * size + coefficient
        return min(max(found * 1e9, _LEAST * self.greatest_bytes_per_s), _MOST * self.greatest_bytes_per_s)

    @cached_property
    def _trusted(self) -> tuple[float, float]:
        """In log2 of megabytes: the size that takes the least time, and the size of the highest bandwidth."""
        top = bottom = max((step / 4 for step in range(-60, 53)), key=self._rate)
        while bottom > _SMALLEST and 2**-0.25 / self._rate(bottom - 0.25) < 1 / self._rate(bottom):
            bottom -= 0.25
        return bottom, top


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """The bandwidths of a folder: between nodes, and between the GPUs of one node."""

    folder: Path
    between_nodes: Mapping[str, Any]
    within_node: Mapping[str, Any]

    def between(self, sender: tuple[str, str, int], receiver: tuple[str, str, int]) -> Bandwidth:
        """The bandwidth from one (zone, GPU type, GPUs that take part) to another.

        Where only the opposite direction was measured, it counts; where only other counts were, the nearest one does.
        Raises `ContentError` if the two types were never measured together.
        """
        for source, target in ((sender, receiver), (receiver, sender)):
            counts = self.between_nodes.get(source[0], {}).get(source[1], {})
            known = [key for key in counts if counts[key].get(target[0], {}).get(target[1])]
            if known:
                first = _nearest(known, source[2])
                rows = counts[first][target[0]][target[1]]
                second = _nearest(list(rows), target[2])
                keys = (source[0], source[1], first, target[0], target[1], second)
                return _bandwidth(rows[second], f"{self.folder / BETWEEN}: {'.'.join(keys)}")
        raise ContentError(
            f"no bandwidth between {sender[1]} in {sender[0]} and {receiver[1]} in {receiver[0]}",
            where=f"{self.folder / BETWEEN}: {sender[0]}.{sender[1]}",
        )

    def within(self, gpu: str, count: int) -> Bandwidth:
        """The bandwidth among `count` GPUs of one node. Raises `ContentError` if the type was never measured."""
        rows = self.within_node.get(gpu)
        if not rows:
            raise ContentError(f"no bandwidth within a node of {gpu}", where=f"{self.folder / WITHIN}: {gpu}")
        key = _nearest(list(rows), count)
        return _bandwidth(rows[key], f"{self.folder / WITHIN}: {gpu}.{key}")


def load_bandwidths(folder: Path) -> Bandwidths:
    """Read the network files of `folder`, plain or packed. Raises `ContentError` naming a missing or broken file."""
    side = ("zone", "GPU type", _COUNT)
    return Bandwidths(folder, _mapping(folder, BETWEEN, (*side, *side)), _mapping(folder, WITHIN, side[1:]))


def _mapping(folder: Path, name: str, levels: tuple[str, ...]) -> Mapping[str, Any]:
    packed = folder / f"{name}.gz"
    path = packed if packed.is_file() else folder / name
    found: Mapping[str, Any] = read_json(path)
    _check_levels(found, levels, f"{path}: ")
    return found


def _check_levels(found: Any, levels: tuple[str, ...], where: str) -> None:
    """Raise `ContentError` unless `found` is a mapping by the first level, its values by the next, and so on."""
    if not isinstance(found, dict):
        raise ContentError(f"expected a mapping by {levels[0]}", where=where.rstrip(": ."))
    for key, below in found.items():
        if levels[0] == _COUNT and not (_WHOLE.fullmatch(key) and int(key)):
            raise ContentError(f"{key!r} is no number of GPUs", where=where.rstrip(": ."))
        if len(levels) > 1:
            _check_levels(below, levels[1:], f"{where}{key}.")


def _nearest(keys: list[str], count: int) -> str:
    return min(keys, key=lambda key: (abs(math.log2(int(key) / count)), int(key)))


def _bandwidth(row: Any, where: str) -> Bandwidth:
    try:
        coefficients, greatest = row
        found = Bandwidth(tuple(float(value) for value in coefficients), float(greatest))
    except (TypeError, ValueError, OverflowError):
        raise ContentError("expected a pair: coefficients, greatest bytes per second", where=where) from None
    if not found.greatest_bytes_per_s > 0 or not all(map(math.isfinite, found.coefficients)):
        raise ContentError("the greatest bandwidth must be positive and all coefficients finite", where=where)
    return found
