"""Manifests and folders of submissions: every fault is named."""

from pathlib import Path

import pytest
from tests.leaderboards.submissions.folders import make

from opmark.core.errors import ContentError, SubmissionError
from opmark.leaderboards.submissions.check import check
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.sandbox.choice import Unprotected


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"name": "heft"}, "'heft' is one of OpMark's own placers"),
        ({"name": "../up"}, "name: expected at most 160 letters"),
        ({"name": "my-name\n"}, "name: expected at most 160 letters"),
        ({"name": "My_name"}, "not like my-name"),
        ({"authors": []}, "authors: name at least one"),
        ({"title": " "}, "title: must not be empty"),
        ({"licence": "MIT"}, "licence: unknown key"),
        ({}, "there is no placer.py either"),
    ],
)
def test_a_manifest_says_what_is_missing(tmp_path: Path, facts: dict[str, object], sentence: str) -> None:
    folder = make(tmp_path / "s", **facts)
    with pytest.raises(ContentError, match=sentence):
        load_submission(folder)
    assert sentence in check(folder, [], Unprotected()).errors[0]


def test_links_are_not_handed_in(tmp_path: Path) -> None:
    folder = make(tmp_path / "s", "def place(problem, budget): return {}")
    (folder / "secret").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("..")
    with pytest.raises(SubmissionError, match="secret: only plain files"):
        load_submission(folder)
