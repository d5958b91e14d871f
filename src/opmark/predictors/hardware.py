"""The few facts of a machine that features depend on."""

from collections.abc import Mapping
from dataclasses import dataclass

from opmark.core.environment import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """`vector_bytes` is the width of one vector register; `cache_bytes` are the caches, nearest first."""

    vector_bytes: int = 32
    cache_bytes: tuple[int, ...] = (32 * 2**10, 2**20, 32 * 2**20)

    @property
    def last_level_cache_bytes(self) -> int:
        """The largest cache."""
        return max(self.cache_bytes)


def hardware_of(facts: Mapping[str, Fact]) -> Hardware:
    """Caches and vector width as an environment records them; what it does not say keeps its default."""
    sizes = {level: _cache(facts, level) for level in ("l1", "l2", "l3")}
    default = Hardware()
    found = tuple(size for size in sizes.values() if size)
    flags = str(facts.get("cpu_flags", facts.get("flags", "")))
    vector = 64 if "avx512f" in flags else default.vector_bytes
    return Hardware(vector_bytes=vector, cache_bytes=tuple(sorted(found)) or default.cache_bytes)


def _cache(facts: Mapping[str, Fact], level: str) -> int:
    for name, value in facts.items():
        lowered = name.lower()
        is_size = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if level in lowered and "bytes" in lowered and "l1i" not in lowered and is_size:
            assert isinstance(value, int)
            return value
    return 0
