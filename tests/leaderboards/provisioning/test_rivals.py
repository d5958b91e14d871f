"""The best answers in order say the same as a comparison with every answer."""

from hypothesis import given
from hypothesis import strategies as st

from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.rivals import Rivals

FLEETS = [Fleet.of({"a": count}) for count in range(1, 7)]
figures = st.integers(1, 6)


@given(
    rows=st.lists(st.tuples(st.sampled_from(FLEETS), figures), max_size=12),
    asked=st.sampled_from(FLEETS),
    least=figures,
)
def test_a_fleet_is_compared_with_all_others_at_once(rows, asked, least):
    rivals, best = Rivals(), {}
    for fleet, time in rows:
        if time < best.get(fleet, 10):  # answers of one fleet only get better
            best[fleet] = time
            rivals.add(fleet, (1.0, float(time), 0.0), float(fleet.size), float(time))
    others = {fleet: time for fleet, time in best.items() if fleet != asked}
    assert rivals.lead(asked, (1.0, float(least), 0.0)) == any(time <= least for time in others.values())
    # A fleet's bound is never slower than its answer.
    bound = min(least, best.get(asked, least))
    told = rivals.dominate(asked, float(asked.size), float(bound))
    beaten = [fleet for fleet, time in others.items() if fleet.size <= asked.size and time <= bound]
    # A fleet that is as fast as a cheaper one hides nobody that is faster.
    assert told == bool(beaten)


def test_the_two_best_are_of_different_fleets():
    rivals = Rivals()
    for time in (5.0, 4.0, 3.0):
        rivals.add(FLEETS[0], (1.0, time, 0.0), 1.0, time)
    assert not rivals.lead(FLEETS[0], (9.0, 9.0, 9.0))
    assert rivals.lead(FLEETS[1], (1.0, 3.0, 0.0))
