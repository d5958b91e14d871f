"""Which kernels to measure: relatives of those in real networks, and an even fill of each kind's space."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opmark.bench.footprint import allocated_bytes
from opmark.core.errors import ContentError
from opmark.core.kernel import Kernel
from opmark.core.kind import Axis, Kind, Setting

# A varied kernel may grow past what its kind's own space allows; nothing larger is worth a suite's time.
_MOST_BYTES = 256 << 20
_MOST_FLOPS = 8_000_000_000
# Points tried per kernel wanted before a space counts as exhausted.
_PATIENCE = 40


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Draws kernels of one kind that `belongs` accepts. `real` are the prior's, `excluded` the keys never to draw."""

    kind: Kind[Any]
    setting: Setting
    seed: str
    real: Sequence[Kernel] = ()
    excluded: frozenset[str] = frozenset()
    axes: Mapping[str, Axis] = field(default_factory=dict)
    belongs: Callable[[Kernel], bool] = lambda _: True

    def draw(self, count: int, share: float) -> tuple[Kernel, ...]:
        """Up to `count` distinct kernels; about `share` of them real ones and their relatives, the rest by Sobol.

        Fewer where the space holds no more. The same arguments give the same kernels.
        """
        found: dict[str, Kernel] = {}
        from_prior = round(count * share) if self.real else 0
        for source, wanted in ((self._relatives(), from_prior), (self._fill(), count), (self._relatives(), count)):
            for tries, kernel in enumerate(source):
                if len(found) >= wanted or tries > _PATIENCE * count:
                    break
                if kernel is not None and kernel.key not in self.excluded and self.belongs(kernel):
                    found.setdefault(kernel.key, kernel)
        return tuple(found.values())

    def _relatives(self) -> Iterator[Kernel | None]:
        """The real kernels themselves, shuffled, then ever more of their relatives."""
        chance = random.Random(f"{self.seed}/relatives")
        mine = [kernel for kernel in self.real if kernel.kind == self.kind.name]
        distinct = list({kernel.key: kernel for kernel in mine}.values())
        chance.shuffle(distinct)
        for kernel in distinct[: (len(distinct) + 1) // 2]:
            yield self._runnable(self.kind.parse(kernel))
        while mine:
            p = self.kind.parse(chance.choice(mine))
            try:
                varied = self.kind.vary(p, 2 ** chance.uniform(-1, 1), 2 ** chance.uniform(-0.75, 0.75))
            except ContentError:
                varied = None
            yield self._runnable(varied)

    def _fill(self) -> Iterator[Kernel | None]:
        """A scrambled Sobol walk through the space."""
        axes = {**self.kind.space, **self.axes}
        names = sorted(axes)
        if not names:
            return
        from scipy.stats import qmc

        engine = qmc.Sobol(len(names), scramble=True, rng=int(random.Random(f"{self.seed}/fill").random() * 2**32))
        while True:
            for point in engine.random(64):
                values = {name: axes[name].at(float(fraction)) for name, fraction in zip(names, point, strict=True)}
                yield self._runnable(self.kind.draw(values, self.setting))

    def _runnable(self, p: Any) -> Kernel | None:
        """`p` as a kernel where the language has such a call and it is of a sane size."""
        if p is None:
            return None
        try:
            built = self.kind.to_onnx(p) if self.setting.language == "onnx" else self.kind.to_aten(p)
            work = self.kind.work(p)
        except ContentError:
            return None
        # A view costs torch nothing that a kernel's row could show; ONNX Runtime pays for the node.
        if built is None or (self.setting.language == "aten" and not work.moved_bytes):
            return None
        kernel = self.kind.kernel(p)
        too_large = allocated_bytes(kernel, self.setting.language) > _MOST_BYTES or work.flops > _MOST_FLOPS
        return None if too_large else kernel
