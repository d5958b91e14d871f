"""Stressors: loops that use one resource of the machine at a known level, on a core of their own.

Memory and compute stressors work for a share of the time, and a cache stressor copies within a number of bytes. Their
calls take about a tenth of a millisecond, so that they stop soon after they are told to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opmark.core.errors import UsageError

COMPUTE, CACHE, MEMORY = "compute", "cache", "memory"
_SIDE = 128
# The bytes of one call of a copying stressor.
_STEP_BYTES = 1 << 20
# Larger than the share of a last-level cache that a neighbour can hold.
_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stressor:
    """A resource and its level: a percentage of the time, or for `cache` the KiB that are copied within."""

    resource: str
    level: int

    @property
    def name(self) -> str:
        """`resource-level`."""
        return f"{self.resource}-{self.level}"

    @property
    def duty(self) -> float:
        """The share of the time at work."""
        return 1.0 if self.resource == CACHE else self.level / 100


STRESSORS = tuple(
    Stressor(resource=resource, level=level)
    for resource, levels in ((COMPUTE, (25, 50, 100)), (CACHE, (512, 4096, 16384)), (MEMORY, (25, 50, 100)))
    for level in levels
)
NAMES = tuple(one.name for one in STRESSORS)


def stressor_named(name: str) -> Stressor:
    """The stressor called `name`. Raises `UsageError`."""
    for one in STRESSORS:
        if one.name == name:
            return one
    raise UsageError(f"no stressor {name!r}", hint=f"known: {', '.join(NAMES)}")


def prepared_stressor(stressor: Stressor) -> Callable[[], object]:
    """One call of the stressor, with its memory allocated and touched."""
    import numpy as np

    if stressor.resource == COMPUTE:
        left: Any = np.ones((_SIDE, _SIDE), dtype=np.float32)
        product = np.empty_like(left)
        return lambda: np.matmul(left, left, out=product)
    # Half is read and half is written.
    half = (stressor.level << 10 if stressor.resource == CACHE else _MEMORY_BYTES) // 2
    source, target = np.ones(half, dtype=np.uint8), np.ones(half, dtype=np.uint8)
    step = min(half, _STEP_BYTES // 2)
    return _Walk(source, target, step).call


class _Walk:
    """Copies one step after the other, and begins again at the end."""

    def __init__(self, source: Any, target: Any, step: int) -> None:
        import numpy as np

        self._copy = np.copyto
        self._pieces = [
            (target[at : at + step], source[at : at + step]) for at in range(0, len(source) - step + 1, step)
        ]
        self._next = 0

    def call(self) -> None:
        """Copy the next step."""
        self._copy(*self._pieces[self._next])
        self._next = (self._next + 1) % len(self._pieces)
