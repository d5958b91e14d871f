from opmark.leaderboards.plans.bandwidths import Bandwidth
from opmark.leaderboards.plans.layer_problem import link_points


def test_the_points_of_a_link_are_the_times_of_the_measured_bandwidth():
    # 2 GB/s for a message of 1 MB, more for larger ones
    rate = Bandwidth((0.1, 2.0), 3e9)
    points, beyond = link_points(rate)
    assert [size for size, _ in points] == sorted(size for size, _ in points)
    for size, ns in points:
        assert ns == round(1e9 * rate.seconds(size))
    assert beyond == points[-1][0] / rate.seconds(points[-1][0])
    assert 2e9 < beyond <= 1.05 * 3e9
