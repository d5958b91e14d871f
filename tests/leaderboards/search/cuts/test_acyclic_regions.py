"""Coarse graphs without cycles."""

from tests.contracts.test_placers import branchy

from opmark.leaderboards.search.cuts.acyclic_regions import acyclic_regions
from opmark.leaderboards.search.groups import groups_of


def test_regions_never_wait_for_each_other() -> None:
    problem = branchy(blocks=6)
    groups = groups_of(problem)
    regions = acyclic_regions(problem, groups, 7)
    assert regions.count == 7
    assert all(a < b for a, b in regions.traffic_ns)
    assert (regions.run_ns >= 0).any(axis=1).all()
    assert regions.weight_bytes.sum() == groups.weight_bytes.sum()
