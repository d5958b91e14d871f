"""Sample kernels of one kind: variations of those in real networks, and an even fill of the kind's space."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, TypeGuard

from opmark.bench.suite.allocation import operator_of
from opmark.bench.worker.calls import allocated_bytes
from opmark.core.errors import ContentError, UsageError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Axis, Kind, Setting

# A variation may exceed its kind's space. Larger kernels take too much of a suite's time.
_MOST_BYTES = 256 << 20
_MOST_FLOPS = 8_000_000_000
# A space counts as exhausted after this number of points per requested kernel.
_PATIENCE = 40
# The most steps to look for operators that are rare among the real kernels.
_MOST_STEPS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Draws kernels of one kind that `belongs` accepts, from the `real` kernels of the prior and from the kind's space.

    It never draws a key in `excluded`.
    """

    kind: Kind[Any]
    setting: Setting
    seed: str
    real: Sequence[Kernel] = ()
    excluded: frozenset[str] = frozenset()
    axes: Mapping[str, Axis] = field(default_factory=dict)
    belongs: Callable[[Kernel], bool] = lambda _: True

    def draw(self, count: int, share: float, floors: Mapping[str, int] = MappingProxyType({})) -> tuple[Kernel, ...]:
        """Draw up to `count` distinct kernels: a `share` of real kernels and variations, the rest by a Sobol sequence.

        Every operator in `floors` gets at least its floor of real kernels and variations, even if they exceed `count`.
        There are fewer kernels if the space is exhausted. The same arguments give the same kernels, and a larger
        `count` adds to them.
        """
        if not count:
            return ()
        real = self._first(round(count * share), _PATIENCE * count) if self.real else []
        rare = self._of_rare_operators(real, floors)
        # Kernels of rare operators are part of the count; the others fill the rest.
        common = next((n for n in range(count, 0, -1) if n + len(_beyond(rare, round(n * share))) <= count), 0)
        extra = _beyond(rare, round(common * share))
        found = {kernel.key: kernel for kernel in (*real[: round(common * share)], *extra)}
        wanted = common + len(extra)
        for source in (self._fill(), self._variations()):
            for tries, kernel in enumerate(source):
                if len(found) >= wanted or tries > _PATIENCE * count:
                    break
                if self._accepts(kernel):
                    found.setdefault(kernel.key, kernel)
        return tuple(found.values())

    def _accepts(self, kernel: Kernel | None) -> TypeGuard[Kernel]:
        return kernel is not None and kernel.key not in self.excluded and self.belongs(kernel)

    def _first(self, wanted: int, patience: int) -> list[Kernel]:
        """The first `wanted` distinct kernels among the real ones and their variations."""
        found: dict[str, Kernel] = {}
        for tries, kernel in enumerate(self._variations()):
            if len(found) >= wanted or tries > patience:
                break
            if self._accepts(kernel):
                found.setdefault(kernel.key, kernel)
        return list(found.values())

    def _of_rare_operators(self, real: Sequence[Kernel], floors: Mapping[str, int]) -> list[tuple[int, Kernel]]:
        """The first kernels of every operator in the sequence that starts with `real`, with their positions.

        Beyond `real`, the search tries only operators below their floor, and stops when it finds no new kernels.
        """
        present = {operator_of(kernel) for kernel in self.real}
        missing = {name: number for name, number in floors.items() if number and name in present}
        found: list[tuple[int, Kernel]] = []
        for place, kernel in enumerate(real):
            if missing.get(operator_of(kernel), 0):
                missing[operator_of(kernel)] -= 1
                found.append((place, kernel))
        known = {kernel.key for kernel in real}
        patience = {name: _PATIENCE * floors[name] for name in missing}
        short = {name for name, number in missing.items() if number}
        for steps, (name, make) in enumerate(self._steps()):
            if not short or steps > _MOST_STEPS:
                break
            if name not in short:
                continue
            made = make()
            patience[name] -= 1
            if self._accepts(made) and made.key not in known:
                known.add(made.key)
                missing[name] -= 1
                found.append((len(real) + len(found), made))
            if not missing[name] or not patience[name]:
                short.remove(name)
        return found

    def _variations(self) -> Iterator[Kernel | None]:
        """The real kernels in random order, then an endless sequence of variations."""
        for _, make in self._steps():
            yield make()

    def _steps(self) -> Iterator[tuple[str, Callable[[], Kernel | None]]]:
        """The same sequence as operators and functions that make the kernel: unused steps cost almost nothing."""
        chance = random.Random(f"{self.seed}/relatives")
        mine = [kernel for kernel in self.real if kernel.kind == self.kind.name]
        distinct = list({kernel.key: kernel for kernel in mine}.values())
        chance.shuffle(distinct)
        for kernel in distinct[: (len(distinct) + 1) // 2]:
            yield operator_of(kernel), partial(self._itself, kernel)
        while mine:
            kernel = chance.choice(mine)
            width, extent = 2 ** chance.uniform(-1, 1), 2 ** chance.uniform(-0.75, 0.75)
            yield operator_of(kernel), partial(self._variation, kernel, width, extent)

    def _itself(self, kernel: Kernel) -> Kernel | None:
        return self._runnable(self.kind.parse(kernel))

    def _variation(self, kernel: Kernel, width: float, extent: float) -> Kernel | None:
        try:
            return self._runnable(self.kind.vary(self.kind.parse(kernel), width, extent))
        except ContentError:
            return None

    def _fill(self) -> Iterator[Kernel | None]:
        """The kernels of a scrambled Sobol sequence through the space."""
        axes = {**self.kind.space, **self.axes}
        names = sorted(axes)
        if not names:
            return
        from scipy.stats import qmc

        engine = qmc.Sobol(len(names), scramble=True, rng=int(random.Random(f"{self.seed}/fill").random() * 2**32))
        while True:
            for point in engine.random(64):
                values = {name: axes[name].at(float(fraction)) for name, fraction in zip(names, point, strict=True)}
                yield self._runnable(self._drawn(values))

    def _drawn(self, values: Mapping[str, Any]) -> Any:
        """The parameters at a point of the space. Raises `UsageError` where the suite's axes give none."""
        try:
            return self.kind.draw(values, self.setting)
        except (TypeError, ValueError) as error:
            if not self.axes:
                raise
            own = ", ".join(f"{axis} {values[axis]!r}" for axis in sorted(self.axes))
            raise UsageError(
                f"no kernel can be drawn with {own}",
                where=f"kinds.{self.kind.name}.space",
                hint="give an axis only values of the sort that the kind's own space has",
            ) from error

    def _runnable(self, p: Any) -> Kernel | None:
        """`p` as a kernel; None if the language has no such call or the kernel is too large."""
        if p is None:
            return None
        try:
            call = self.kind.to_onnx(p) if self.setting.language == "onnx" else self.kind.to_aten(p)
            work = self.kind.work(p)
        except ContentError:
            return None
        # A view costs torch nothing measurable; ONNX Runtime pays for the node.
        if call is None or (self.setting.language == "aten" and not work.moved_bytes):
            return None
        kernel = self.kind.kernel(p)
        too_large = allocated_bytes(kernel, self.setting.language) > _MOST_BYTES or work.flops > _MOST_FLOPS
        return None if too_large else kernel


def _beyond(placed: Sequence[tuple[int, Kernel]], place: int) -> list[Kernel]:
    """The kernels at `place` or later."""
    return [kernel for other, kernel in placed if other >= place]
