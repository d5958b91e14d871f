from hypothesis import given
from hypothesis import strategies as st

from opmark.leaderboards.provisioning.fleet import Fleet, all_fleets, count_fleets

AVAILABLE = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 4), min_size=1)


@given(AVAILABLE, st.integers(1, 6))
def test_every_fleet_comes_once_within_its_limits_and_smaller_ones_come_first(available, devices):
    fleets = list(all_fleets(available, devices))
    assert len(set(fleets)) == len(fleets) == count_fleets(available, devices)
    assert [fleet.size for fleet in fleets] == sorted(fleet.size for fleet in fleets)
    for fleet in fleets:
        assert 1 <= fleet.size <= devices
        assert all(1 <= count <= available[name] for name, count in fleet.items())


def test_eight_devices_of_five_types_make_1286_fleets():
    # The multisets of up to 8 out of 5 types: C(13, 5) - 1.
    assert count_fleets(dict.fromkeys("abcde", 8), 8) == 1286


def test_a_fleet_names_its_types_and_counts():
    fleet = Fleet.of({"a100": 1, "v100": 0, "t4": 2})
    assert (fleet.title, fleet.types, fleet.size, fleet.equal) == ("1 a100 + 2 t4", ("a100", "t4"), 3, False)
    assert Fleet.of({"t4": 2}).equal
