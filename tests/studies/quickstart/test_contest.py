from opmark.core.hardware.link import LinkMeasurement
from opmark.leaderboards.search.placer import PLACERS, placing_names
from opmark.studies.quickstart.contest import in_turn, two_cores

SIZES = (64.0, 1024.0, 1_000_000.0)
TIMES = (5_010.0, 5_100.0, 105_000.0)
LINK = LinkMeasurement(
    source="core1",
    destination="core0",
    memory="shared",
    status="ok",
    hand_off_ns=5_000.0,
    sizes_bytes=SIZES,
    transfers_ns=TIMES,
    knot_sizes_bytes=SIZES,
    knot_transfers_ns=TIMES,
    bandwidth_bytes_per_s=1e10,
)


def test_each_target_gets_a_core_and_a_link_each_way() -> None:
    cluster = two_cores(("null-a-t1", "null-b-t1"), LINK)
    assert cluster.problems() == []
    assert [device.target for device in cluster.devices] == ["null-a-t1", "null-b-t1"]
    assert {(link.source, link.destination) for link in cluster.links} == {
        ("core0-null-a-t1", "core1-null-b-t1"),
        ("core1-null-b-t1", "core0-null-a-t1"),
    }
    for link in cluster.links:
        assert (link.latency_ns, link.bandwidth_bytes_per_s) == (5_000, 1e10)
        assert link.points == ((64, 5_010), (1024, 5_100), (1_000_000, 105_000))


def test_baselines_come_first_then_our_own_then_published_ones_by_year() -> None:
    names = in_turn(placing_names())
    assert sorted(names) == sorted(placing_names())
    papers = [PLACERS.load(name).paper for name in names]
    years = [paper.year for paper in papers if paper]
    assert papers[: -len(years)] == [None] * (len(names) - len(years))
    assert years == sorted(years)
    assert names[names.index("opmark") + 1 :] == names[-len(years) :]
