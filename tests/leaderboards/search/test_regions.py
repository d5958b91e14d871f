"""Regions of a graph and the neighbourhood made of them."""

import numpy as np
from tests.contracts.test_placers import branchy
from tests.leaderboards.examples import canonical

from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.regions import group_edges, neighbourhood_of, region_levels


def test_heavy_edges_are_merged_first() -> None:
    problem = canonical([(10, 10, 10)] * 5, {(1, 2): 1, (2, 3): 90, (3, 4): 2, (4, 5): 80})
    edges = group_edges(problem, groups_of(problem))
    assert edges == {(0, 1): 1, (1, 2): 90, (2, 3): 2, (3, 4): 80}
    assert region_levels(groups_of(problem), edges)[1].tolist() == [0, 1, 1, 2, 2]
    hood = neighbourhood_of(problem)
    rows = [hood.region_groups[hood.region_offsets[r] : hood.region_offsets[r + 1]].tolist() for r in range(8)]
    assert rows == [[0], [1], [2], [3], [4], [0], [1, 2], [3, 4]]
    assert hood.regions[:2].tolist() == [[0, 1, 2, 3, 4], [5, 6, 6, 7, 7]]


def test_a_neighbourhood_knows_the_units_and_choices_of_groups() -> None:
    problem = branchy(blocks=4)
    groups, hood = groups_of(problem), neighbourhood_of(problem)
    for group, members in enumerate(groups.members):
        assert tuple(hood.units[hood.unit_offsets[group] : hood.unit_offsets[group + 1]]) == members
    assert (hood.allowed == groups.allowed).all()
    assert hood.movable.tolist() == np.flatnonzero(groups.allowed.sum(axis=1) > 1).tolist()
