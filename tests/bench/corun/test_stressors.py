"""Stressors: their names, levels and memory."""

import pytest

from opmark.bench.corun.stressors import CACHE, NAMES, STRESSORS, Stressor, prepared_stressor, stressor_named
from opmark.core.errors import UsageError


def test_every_resource_has_several_levels() -> None:
    levels = {resource: [one.level for one in STRESSORS if one.resource == resource] for resource in
              {one.resource for one in STRESSORS}}  # fmt: skip
    assert set(levels) == {"compute", "cache", "memory"}
    assert all(len(own) >= 3 and own == sorted(own) for own in levels.values())
    assert all(stressor_named(name).name == name for name in NAMES)


def test_a_level_is_a_share_of_the_time_or_a_size() -> None:
    assert stressor_named("memory-25").duty == 0.25
    assert stressor_named("cache-4096").duty == 1


def test_an_unknown_stressor_is_refused() -> None:
    with pytest.raises(UsageError, match="no stressor 'disk-1'"):
        stressor_named("disk-1")


def test_a_cache_stressor_walks_through_all_its_memory() -> None:
    call = prepared_stressor(Stressor(resource=CACHE, level=4096))
    walk = call.__self__  # type: ignore[attr-defined]
    pieces = len(walk._pieces)
    assert sum(target.nbytes + source.nbytes for target, source in walk._pieces) == 4096 << 10
    for _ in range(pieces):
        call()
    assert walk._next == 0


def test_a_compute_stressor_multiplies() -> None:
    product = prepared_stressor(stressor_named("compute-100"))()
    assert float(product[0, 0]) == 128.0  # type: ignore[index]
