from opmark.bench.links import CoreLink
from opmark.studies.placement_contest import two_cores

LINK = CoreLink(wake_up_ns=5_000, points=((64, 10), (1_000_064, 100_010)))


def test_each_target_gets_a_core_and_a_link_each_way() -> None:
    cluster = two_cores(("null-a-t1", "null-b-t1"), LINK)
    assert cluster.problems() == []
    assert [device.target for device in cluster.devices] == ["null-a-t1", "null-b-t1"]
    assert {(link.source, link.destination) for link in cluster.links} == {
        ("core0-null-a-t1", "core1-null-b-t1"),
        ("core1-null-b-t1", "core0-null-a-t1"),
    }
    assert all(link.latency_ns == 5_000 and link.points == LINK.points for link in cluster.links)


def test_beyond_the_last_point_a_link_goes_on_at_the_rate_of_the_last_two() -> None:
    assert LINK.bandwidth_bytes_per_s == 1e10
