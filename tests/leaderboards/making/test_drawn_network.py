"""Drawn networks: the same from the same seed, and of kernels that exist."""

import pytest

from opmark.core.errors import UnknownNameError, UsageError
from opmark.kinds import work_of
from opmark.leaderboards.making.drawn_network import drawn_network, is_drawn


@pytest.mark.parametrize("family", ["random-cells", "random-towers", "random-pyramids"])
def test_a_seed_and_a_number_decide_a_network(family: str) -> None:
    one, same, other, elsewhere = (
        drawn_network(f"{family}#{number}", seed) for number, seed in ((1, 5), (1, 5), (2, 5), (1, 6))
    )
    assert one.id == same.id
    assert len({one.id, other.id, elsewhere.id}) == 3
    assert 20 < len(one.nodes) < 400
    readers = [name for node in one.nodes for name in node.inputs]
    assert len(readers) > len(one.nodes) + len(one.weights), "something is read twice or joined"
    assert all(node.work == work_of(node.kernel) and node.work.moved_bytes > 0 for node in one.nodes)
    made = {name for node in one.nodes for name in node.outputs}
    assert made - set(readers) == set(one.outputs), "every branch ends in the output"


def test_a_wrong_name_is_refused() -> None:
    assert is_drawn("random-cells#3")
    assert not is_drawn("bert-base")
    with pytest.raises(UnknownNameError, match="family of drawn networks"):
        drawn_network("random-trees#1", 0)
    with pytest.raises(UsageError, match="has no number"):
        drawn_network("random-cells#first", 0)
    with pytest.raises(UsageError, match="has no number"):
        drawn_network(f"random-cells#{'9' * 5000}", 0)
