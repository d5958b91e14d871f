"""The few facts of a machine that features depend on."""

from collections.abc import Mapping
from dataclasses import dataclass

from opmark.core.environment import Fact

# A GPU cuts products into tiles of up to 128 floats on a side, and sizes that do not fill one are padded to it.
_TILE_BYTES = 512
_CACHES = ("level1_bytes", "level2_bytes", "last_level_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """`vector_bytes` is the width of one vector register; `cache_bytes` are the caches, nearest first.

    `multiprocessors` is how many of them a GPU has, 0 on a CPU; its `vector_bytes` are the side of a tile.
    """

    vector_bytes: int = 32
    cache_bytes: tuple[int, ...] = (32 * 2**10, 2**20, 32 * 2**20)
    multiprocessors: int = 0

    @property
    def last_level_cache_bytes(self) -> int:
        """The largest cache."""
        return max(self.cache_bytes)


def hardware_of(facts: Mapping[str, Fact]) -> Hardware:
    """Caches and vector width as an environment's checked facts say; what they do not say keeps its default."""
    default = Hardware()
    sizes = (facts.get(name) for name in _CACHES)
    found = tuple(sorted({int(size) for size in sizes if isinstance(size, (int, float)) and size > 0}))
    wide = "avx512f" in str(facts.get("instruction_sets", "")).split()
    several = facts.get("multiprocessors")
    multiprocessors = int(several) if isinstance(several, (int, float)) else 0
    vector_bytes = _TILE_BYTES if multiprocessors else 64 if wide else default.vector_bytes
    return Hardware(
        vector_bytes=vector_bytes, cache_bytes=found or default.cache_bytes, multiprocessors=multiprocessors
    )
