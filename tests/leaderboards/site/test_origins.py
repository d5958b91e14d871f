"""Every entry says where it comes from."""

import pytest

from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.site.board import BASELINE, OURS, PUBLISHED, SUBMITTED
from opmark.leaderboards.site.origins import origin_of


def test_a_published_algorithm_names_its_paper() -> None:
    found = origin_of("heft")
    assert found.name == PUBLISHED
    assert found.reference.startswith('Topcuoglu, Hariri, Wu, "Performance-effective')
    assert found.reference.endswith("IEEE TPDS 13(3), 2002")
    assert found.year == 2002


@pytest.mark.parametrize(
    ("name", "origin"), [("opmark", OURS), ("random", BASELINE), ("round-robin", BASELINE), ("somebody", SUBMITTED)]
)
def test_the_others_have_none(name: str, origin: str) -> None:
    found = origin_of(name)
    assert (found.name, found.reference, found.year) == (origin, "", None)


@pytest.mark.parametrize("name", PLACERS.names())
def test_references_are_one_sentence_that_ends_in_a_year(name: str) -> None:
    found = origin_of(name)
    assert (found.name == PUBLISHED) == bool(found.reference) == (found.year is not None)
    assert "\n" not in found.reference
    assert found.reference.endswith(str(found.year or ""))
