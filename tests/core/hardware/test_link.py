from dataclasses import replace

import pytest

from opmark.core.hardware.link import LinkMeasurement, cluster_link, fold_link
from opmark.core.hardware.piecewise import fitted, largest_error, time_at
from opmark.core.measurements.records import Done, LinkTrial, Transfer

TRIAL = LinkTrial(trial="l", source="core0", destination="core1", memory="shared")


def curve(size: float) -> float:
    """A latency, a fast rate in cache, a slow one beyond."""
    return 200 + size / 20 + max(0.0, size - 2**20) / 5


def transfer(size: int, ns: float) -> Transfer:
    return Transfer(trial="l", size_bytes=size, ns=(ns, ns, ns, ns * 50), clean="1110")


def fold(sizes: list[int], status: str = "ok") -> LinkMeasurement:
    transfers = [transfer(size, curve(size)) for size in sizes]
    return fold_link(TRIAL, Done(trial="l", status=status), transfers, suite="links", environment_id="e")


POWERS = [2**power for power in range(6, 29)]
BETWEEN = [3 * 2**power for power in range(6, 27)]


def test_few_lines_follow_a_bent_curve_that_one_line_misses_by_half() -> None:
    points = [(float(size), curve(size)) for size in POWERS]
    knots = fitted(points, tolerance=0.03)
    assert 4 <= len(knots) < len(points)
    assert largest_error(knots, points) <= 0.03
    one_line = (points[0], points[-1])
    assert largest_error(one_line, points) > 0.5
    assert fitted(points, tolerance=100.0) == one_line


def test_a_larger_transfer_is_never_faster_and_rates_go_on() -> None:
    knots = fitted([(64.0, 100.0), (128.0, 90.0), (256.0, 200.0)], tolerance=0.0)
    assert knots == ((64.0, 100.0), (128.0, 100.0), (256.0, 200.0))
    assert time_at(knots, 1) == 100.0
    assert time_at(knots, 256) == 200.0
    assert time_at(knots, 512) == pytest.approx(400.0)
    assert time_at(knots, 181.02) == pytest.approx(141.42, rel=1e-3)
    with pytest.raises(ValueError, match="two points"):
        fitted([(1.0, 1.0)], tolerance=0.1)


def test_a_link_is_folded_and_its_error_is_that_of_sizes_it_never_saw() -> None:
    link = fold([0, *POWERS, *BETWEEN])
    assert link.hand_off_ns == 200
    assert link.sizes_bytes == tuple(map(float, POWERS))
    assert link.transfers_ns[0] == pytest.approx(200 + curve(64))
    checks = [(float(size), 200 + curve(size)) for size in BETWEEN]
    assert link.largest_error is not None
    assert link.largest_error >= largest_error(link.knots, checks) > 0
    # At the bend, half-way between two powers of two.
    assert link.largest_error < 0.2
    assert link.bandwidth_bytes_per_s == pytest.approx(4e9, rel=0.01)
    assert link.clean_fraction == 0.75
    assert link.transfer_ns(2**20) == pytest.approx(200 + curve(2**20), rel=0.03)


def test_a_cluster_gets_the_link_with_its_hand_over() -> None:
    measured = fold([0, *POWERS])
    link = cluster_link(measured, source="a", destination="b")
    assert (link.source, link.destination, link.latency_ns) == ("a", "b", 200)
    assert [size for size, _ in link.points] == POWERS
    for size, ns in link.points:
        assert ns == pytest.approx(200 + curve(size), rel=0.031)
    assert cluster_link(measured).source == "core0"


def test_equal_times_that_differ_in_their_last_bit_are_rounded_alike() -> None:
    """Between equal corners of half a nanosecond, interpolation rounds either way."""
    for half_ns in (39653.5, 41000.5, 52345.5, 61111.5):
        level = replace(
            fold([0, *POWERS]),
            knot_sizes_bytes=(float(POWERS[0]), float(POWERS[-1])),
            knot_transfers_ns=(half_ns, half_ns * (1 - 1e-13)),
        )
        times = [ns for _, ns in cluster_link(level).points]
        assert times == sorted(times)


def test_what_was_not_measured_is_no_link() -> None:
    missing = fold([64, 128], status="failed")
    assert missing.largest_error is None
    assert fold([64]).reason == "too few sizes"
    with pytest.raises(ValueError, match="not measured"):
        cluster_link(missing)
    with pytest.raises(ValueError, match="not measured"):
        missing.transfer_ns(1)
