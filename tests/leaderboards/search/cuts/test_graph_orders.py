"""Strong components join what lies on a cycle; depth-first orders are topological and finish one branch first."""

from hypothesis import given
from hypothesis import strategies as st

from opmark.leaderboards.search.cuts.graph_orders import depth_first_order, strong_components


def test_nodes_on_a_cycle_share_a_component() -> None:
    found = strong_components(5, [(0, 1), (1, 2), (2, 0), (2, 3)])
    assert found[0] == found[1] == found[2]
    assert len({found[0], found[3], found[4]}) == 3


def test_one_branch_is_finished_before_the_next() -> None:
    before = {0: [], 1: [0], 2: [0], 3: [1], 4: [2], 5: [3, 4]}
    assert depth_first_order(before, key=lambda node: node) == [0, 2, 4, 1, 3, 5]
    assert depth_first_order(before, key=lambda node: -node) == [0, 1, 3, 2, 4, 5]


def test_the_first_node_may_have_a_rule_of_its_own() -> None:
    before: dict[int, list[int]] = {0: [], 1: [], 2: [0, 1]}
    assert depth_first_order(before, key=lambda node: node, start_key=lambda node: -node) == [0, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40))
def test_predecessors_always_come_first(pairs: list[tuple[int, int]]) -> None:
    before = {node: [a for a, b in pairs if b == node and a < b] for node in range(12)}
    order = depth_first_order(before, key=lambda node: node * 7 % 12)
    place = {node: position for position, node in enumerate(order)}
    assert sorted(order) == list(range(12))
    assert all(place[a] < place[node] for node, earlier in before.items() for a in earlier)
