"""The kernels of a suite for one target: counts by kind and element type, and the sampling itself."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from opmark.bench.suite.allocation import (
    allocate,
    apportion,
    has_dtype,
    ordinary_device,
    requested_dtype,
    significant_operators,
    time_shares,
)
from opmark.bench.suite.sampling import Sampler
from opmark.bench.suite.suite import Suite
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Setting
from opmark.kinds import KINDS, work_of

_TORCH_ONLY = ("aten",)


@dataclass(frozen=True, kw_only=True)
class KernelSet:
    """The kernels to draw for `target`, whose graph language is `language` and whose channel block is `block`.

    They follow the graphs of the `prior`, without the kernels that are `excluded` because a hidden network has them.
    """

    suite: Suite
    target: str
    language: str
    block: int
    prior: Sequence[Graph] = ()
    excluded: frozenset[str] = field(default_factory=frozenset)

    def kernels(self) -> tuple[Kernel, ...]:
        """Draw distinct kernels of every kind in every element type. The same suite gives the same kernels."""
        found: dict[str, Kernel] = {}
        for dtype, wanted, part in self._requested():
            counts, weights = self._counts(dtype, wanted, part)
            each = _part(self.suite.at_least_per_operator, part)
            fixed = {name: count for name, count in self._fixed().items() if self._is_wanted(name, dtype)}
            taken = self.excluded | found.keys()
            for kernels in (
                *(self._draw(name, dtype, count, taken) for name, count in fixed.items()),
                *allocate(counts, weights, lambda name, count: self._draw(name, dtype, count, taken, each)).values(),  # noqa: B023 (called at once)
            ):
                found |= {kernel.key: kernel for kernel in kernels}
        return tuple(found.values())

    @property
    def kind_shares(self) -> dict[str, float]:
        """The share of each kind in the prior's time, over all element types."""
        found: dict[str, float] = {}
        for (name, _), share in self._shares.items():
            found[name] = found.get(name, 0.0) + share
        return found

    @cached_property
    def _dtypes(self) -> tuple[str, ...]:
        return tuple(self.suite.counts_on(self.target))

    @cached_property
    def _shares(self) -> Mapping[tuple[str, str], float]:
        return time_shares(self.prior, self._dtypes, ordinary_device(self.target))

    @cached_property
    def _operators(self) -> Mapping[tuple[str, str], frozenset[str]]:
        return significant_operators(self.prior, self._dtypes, ordinary_device(self.target))

    @cached_property
    def _real(self) -> Mapping[tuple[str, str], Sequence[Kernel]]:
        """The prior's kernels by kind and requested element type; a kernel occurs as often as in the networks."""
        real: dict[tuple[str, str], list[Kernel]] = {}
        for graph in self.prior:
            for node in graph.costly:
                kernel = node.kernel
                if kernel.key not in self.excluded:
                    real.setdefault((kernel.kind, requested_dtype(kernel, self._dtypes)), []).append(kernel)
        return real

    def _requested(self) -> Iterator[tuple[str, int, Fraction]]:
        """Element type, count and the factor of its floors, which fall in proportion to the count."""
        counts = self.suite.counts_on(self.target)
        most = max(counts.values(), default=0)
        for dtype, count in counts.items():
            yield dtype, count, Fraction(count, most) if most else Fraction(0)

    def _fixed(self) -> dict[str, int]:
        return {name: spec.count for name, spec in self.suite.kinds.items() if spec.count is not None}

    def _counts(self, dtype: str, total: int, part: Fraction) -> tuple[dict[str, int], dict[str, float]]:
        named = self.suite.kinds or KINDS.names()
        fixed = self._fixed()
        weights = {
            name: self._shares.get((name, dtype), 0.0)
            for name in named
            if name not in fixed and self._is_wanted(name, dtype)
        }
        return apportion(weights, total, {name: self._floor(name, dtype, part) for name in weights}), weights

    def _floor(self, name: str, dtype: str, part: Fraction) -> int:
        """The least count of a kind: its own floor, or the sum over its significant operators."""
        each = _part(self.suite.at_least_per_operator, part)
        return max(_part(self.suite.at_least, part), each * len(self._operators.get((name, dtype), ())))

    def _is_wanted(self, name: str, dtype: str) -> bool:
        """Return True if the suite wants this kind in this element type on the target.

        With a prior, a kind that only torch has (of a training step) is wanted only if the prior has it.
        """
        kind = KINDS.load(name)
        if self.language not in kind.languages:
            return False
        anywhere = any(known == name for known, _ in self._shares)
        if kind.languages == _TORCH_ONLY and self.prior and not anywhere and name not in self.suite.kinds:
            return False
        return has_dtype(name, dtype, self._shares)

    def _is_large_enough(self, kernel: Kernel) -> bool:
        least = self.suite.least_moved_bytes
        return not least or work_of(kernel).moved_bytes >= least

    def _draw(
        self, name: str, dtype: str, count: int, taken: frozenset[str], per_operator: int = 0
    ) -> tuple[Kernel, ...]:
        spec = self.suite.kinds.get(name)
        return Sampler(
            kind=KINDS.load(name),
            setting=Setting(language=self.language, dtype=dtype, block=self.block),
            seed=f"{self.suite.seed}/{self.language}/{dtype}/{name}",
            real=self._real.get((name, dtype), ()),
            excluded=taken,
            axes={axis: content.axis for axis, content in spec.space.items()} if spec else {},
            belongs=lambda kernel: requested_dtype(kernel, self._dtypes) == dtype and self._is_large_enough(kernel),
        ).draw(count, self.suite.prior.share, dict.fromkeys(self._operators.get((name, dtype), ()), per_operator))


def _part(floor: int, part: Fraction) -> int:
    """`part` of a floor, rounded up."""
    return math.ceil(floor * part)


def judging_kernels(networks: Sequence[tuple[str, Graph]], most: int) -> tuple[Kernel, ...]:
    """At most `most` distinct kernels of hidden `networks`, given as (family, graph), to judge predictors by.

    Families take turns, and the network that adds the fewest kernels comes first. So as many networks as possible are
    complete, and the sum of their kernels can be compared with their measured latency. The last network may stay
    incomplete.
    """
    found: dict[str, Kernel] = {}
    left = [(family, {node.kernel.key: node.kernel for node in graph.costly}) for family, graph in networks]
    turns: dict[str, int] = {}
    while left and len(found) < most:
        place = min(range(len(left)), key=lambda place: (turns.get(left[place][0], 0), _new(left[place][1], found)))
        family, kernels = left.pop(place)
        turns[family] = turns.get(family, 0) + 1
        found |= kernels
    return tuple(found.values())[:most]


def _new(kernels: Mapping[str, Kernel], found: Mapping[str, Kernel]) -> int:
    return sum(1 for key in kernels if key not in found)
