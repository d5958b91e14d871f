"""The kernels of a suite for one target: counts by kind and element type, drawn from the prior and from spaces."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from opmark.bench.suite.allocation import asked_dtype, deal_out, felt_operators, has_dtype, shares, time_shares
from opmark.bench.suite.sampling import Sampler
from opmark.bench.suite.suite import Suite
from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.core.kind import Setting
from opmark.kinds import KINDS

_TORCH_ONLY = ("aten",)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What is drawn from: the `prior`'s graphs on `target`, and kernels `excluded` because a hidden network has them.

    `language` and `block` are the target's.
    """

    suite: Suite
    target: str
    language: str
    block: int
    prior: Sequence[Graph] = ()
    excluded: frozenset[str] = field(default_factory=frozenset)

    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of every kind in every element type, no two the same. The same suite gives the same ones."""
        found: dict[str, Kernel] = {}
        for dtype, wanted, part in self._asked():
            counts, weights = self._counts(dtype, wanted, part)
            each = _part(self.suite.at_least_per_operator, part)
            fixed = {name: count for name, count in self._fixed().items() if self._is_meant(name, dtype)}
            taken = self.excluded | found.keys()
            for kernels in (
                *(self._draw(name, dtype, count, taken) for name, count in fixed.items()),
                *deal_out(counts, weights, lambda name, count: self._draw(name, dtype, count, taken, each)).values(),  # noqa: B023 (called at once)
            ):
                found |= {kernel.key: kernel for kernel in kernels}
        return tuple(found.values())

    @property
    def kind_shares(self) -> dict[str, float]:
        """Each kind's share of the prior's time, all element types together."""
        found: dict[str, float] = {}
        for (name, _), share in self._shares.items():
            found[name] = found.get(name, 0.0) + share
        return found

    @cached_property
    def _dtypes(self) -> tuple[str, ...]:
        return tuple(self.suite.counts_on(self.target))

    @cached_property
    def _shares(self) -> Mapping[tuple[str, str], float]:
        return time_shares(self.prior, self._dtypes)

    @cached_property
    def _operators(self) -> Mapping[tuple[str, str], frozenset[str]]:
        return felt_operators(self.prior, self._dtypes)

    @cached_property
    def _real(self) -> Mapping[tuple[str, str], Sequence[Kernel]]:
        """The prior's kernels by kind and asked element type, the same kernel as often as networks have it."""
        real: dict[tuple[str, str], list[Kernel]] = {}
        for graph in self.prior:
            for node in graph.costly:
                kernel = node.kernel
                if kernel.key not in self.excluded:
                    real.setdefault((kernel.kind, asked_dtype(kernel, self._dtypes)), []).append(kernel)
        return real

    def _asked(self) -> Iterator[tuple[str, int, Fraction]]:
        """Element type, count and part of the floors, which go down with the count: a target's kinds keep theirs."""
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
            if name not in fixed and self._is_meant(name, dtype)
        }
        return shares(weights, total, {name: self._floor(name, dtype, part) for name in weights}), weights

    def _floor(self, name: str, dtype: str, part: Fraction) -> int:
        """What a kind gets at least: its own floor, or those of all its operators that the prior spends time in."""
        each = _part(self.suite.at_least_per_operator, part)
        return max(_part(self.suite.at_least, part), each * len(self._operators.get((name, dtype), ())))

    def _is_meant(self, name: str, dtype: str) -> bool:
        """Whether the target has such kernels, as far as one can tell.

        With a prior, kinds that only torch has (those of a training step) are meant where the prior has them.
        """
        kind = KINDS.load(name)
        if self.language not in kind.languages:
            return False
        anywhere = any(known == name for known, _ in self._shares)
        if kind.languages == _TORCH_ONLY and self.prior and not anywhere and name not in self.suite.kinds:
            return False
        return has_dtype(name, dtype, self._shares)

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
            belongs=lambda kernel: asked_dtype(kernel, self._dtypes) == dtype,
        ).draw(count, self.suite.prior.share, dict.fromkeys(self._operators.get((name, dtype), ()), per_operator))


def _part(floor: int, part: Fraction) -> int:
    """`part` of a floor, rounded up."""
    return math.ceil(floor * part)
