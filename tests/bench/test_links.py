import itertools

from opmark.bench.links import SIZES_BYTES, measure_core_link


def test_larger_copies_take_no_less_and_a_wake_up_takes_something() -> None:
    link = measure_core_link()
    assert [size for size, _ in link.points] == list(SIZES_BYTES)
    assert all(earlier <= later for (_, earlier), (_, later) in itertools.pairwise(link.points))
    assert link.wake_up_ns > 0
    assert link.bandwidth_bytes_per_s > 0
