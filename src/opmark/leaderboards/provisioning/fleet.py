"""Fleets: how many devices of each type are rented together."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Fleet:
    """The rented device types with their counts, each at least 1, in the order of the catalogue."""

    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Fleet":
        """The fleet of these counts; types with a count of 0 are left out."""
        return cls(tuple((name, count) for name, count in counts.items() if count))

    def items(self) -> tuple[tuple[str, int], ...]:
        """Pairs of type and count."""
        return self.counts

    @property
    def types(self) -> tuple[str, ...]:
        """The types."""
        return tuple(name for name, _ in self.counts)

    @property
    def size(self) -> int:
        """The number of devices."""
        return sum(count for _, count in self.counts)

    @property
    def equal(self) -> bool:
        """True where all devices are of one type."""
        return len(self.counts) == 1

    @property
    def title(self) -> str:
        """The fleet for people: `1 a100 + 2 t4`."""
        return " + ".join(f"{count} {name}" for name, count in self.counts)


def all_fleets(available: Mapping[str, int], devices_at_most: int) -> Iterator[Fleet]:
    """Every fleet of 1 to `devices_at_most` devices, smaller ones first."""
    names = tuple(available)
    for size in range(1, devices_at_most + 1):
        for row in _rows(tuple(available.values()), size):
            yield Fleet.of(dict(zip(names, row, strict=True)))


def count_fleets(available: Mapping[str, int], devices_at_most: int) -> int:
    """The number of fleets that `all_fleets` gives: a product of polynomials, one per type."""
    ways = [1] + [0] * devices_at_most
    for limit in available.values():
        ways = [sum(ways[size - k] for k in range(min(limit, size) + 1)) for size in range(devices_at_most + 1)]
    return sum(ways) - 1


def _rows(limits: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """Rows of counts within `limits` that sum to `size`."""
    if len(limits) == 1:
        if size <= limits[0]:
            yield (size,)
        return
    first, rest = limits[0], limits[1:]
    for count in range(min(first, size), -1, -1):
        if size - count <= sum(rest):
            yield from (tuple(itertools.chain((count,), row)) for row in _rows(rest, size - count))
