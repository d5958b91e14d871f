"""Every entry says where it comes from."""

import importlib
from pathlib import Path

import pytest

from opmark.core.files import write_json
from opmark.core.plain_text import web_address
from opmark.leaderboards.scoring.track import Rules, Track
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.site.board import BASELINE, OURS, PUBLISHED, SUBMITTED
from opmark.leaderboards.site.origins import origin_of, submission_origins
from opmark.leaderboards.submissions.ownership import RECEIPT


def test_a_published_algorithm_names_its_paper() -> None:
    found = origin_of("heft")
    assert found.name == PUBLISHED
    assert found.paper
    assert found.paper.reference.startswith("Topcuoglu, Hariri, Wu: Performance-effective")
    assert (found.paper.year, found.paper.link) == (2002, "https://doi.org/10.1109/71.993206")


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("opmark", OURS),
        ("random", BASELINE),
        ("round-robin", BASELINE),
        ("best-single-device", BASELINE),
        ("somebody", SUBMITTED),
    ],
)
def test_the_others_have_none(name: str, origin: str) -> None:
    found = origin_of(name)
    assert (found.name, found.paper) == (origin, None)


def test_one_entry_is_our_own() -> None:
    assert [name for name in PLACERS.names() if origin_of(name).name == OURS] == ["opmark"]


@pytest.mark.parametrize("name", [name for name in PLACERS.names() if origin_of(name).paper])
def test_the_file_describes_the_paper_that_the_class_names(name: str) -> None:
    paper = origin_of(name).paper
    assert paper
    words = importlib.import_module(type(PLACERS.load(name)).__module__).__doc__ or ""
    assert str(paper.year) in words
    assert paper.reference.partition(",")[0].partition(" et al")[0].partition(":")[0] in words
    for address in (paper.link, paper.code):
        assert not address or web_address(address) == address


def test_a_submission_names_its_authors_and_its_day(tmp_path: Path) -> None:
    track = Track(folder=tmp_path / "tiny", rules=Rules(title="Tiny", version="1.0.0"))
    manifest = {"name": "mine", "title": "Mine", "authors": ["A", "B"], "license": "MIT", "paper": "https://x.org/p"}
    receipt = {"schema": 1, "sha256": "00", "manifest": manifest, "signed_at": 1_790_000_000}
    write_json(track.folder / "submissions" / "mine" / RECEIPT, receipt)
    write_json(
        track.folder / "submissions" / "old" / RECEIPT,
        {**receipt, "signed_at": 0, "manifest": {**manifest, "paper": "javascript:1"}},
    )
    found = submission_origins(track)
    assert found["mine"].submitted == "2026-09-21"
    assert found["mine"].description == "Mine, by A, B (MIT)."
    assert found["mine"].paper
    assert found["mine"].paper.link == "https://x.org/p"
    assert found["old"].submitted == ""
    assert found["old"].paper
    assert found["old"].paper.link == ""
    assert origin_of("mine", found) == found["mine"]
