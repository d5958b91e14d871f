"""The served pages as text: foreign words are escaped, and ids stay with their owners."""

import pytest

from opmark.leaderboards.serving import web_pages
from opmark.leaderboards.serving.submission_queue import QUEUED, QueuedSubmission, ServerLimits

FOREIGN = "<script>alert(1)</script>"
ROW = QueuedSubmission(
    id="0123456789abcdef",
    key="f" * 64,
    name="mine",
    sha256="1" * 64,
    tracks=("t",),
    state=QUEUED,
    received_s=0.0,
    started_s=None,
    ended_s=None,
    receipt=None,
    error=None,
    ahead=2,
)


def test_the_queue_is_public_but_ids_and_keys_are_not() -> None:
    page = web_pages.queue_page([ROW])
    assert all(text in page for text in ("mine", "queued, 2 ahead", "1970-01-01 00:00 UTC"))
    assert ROW.id not in page
    assert ROW.key not in page
    assert set(web_pages.public_state(ROW)) == {"name", "tracks", "state", "ahead", "received_s"}
    assert "Nothing was submitted yet" in web_pages.queue_page([])


@pytest.mark.parametrize(
    "page",
    [
        web_pages.refusal_page(FOREIGN, FOREIGN),
        web_pages.submission_page(
            {"name": "x", "state": "failed", "error": FOREIGN, "receipt": None, "progress": None}
            | {"url": "/submissions/1", "id": "1", "sha256": "1", "tracks": [FOREIGN]}
        ),
    ],
    ids=["refusal", "submission"],
)
def test_foreign_text_is_escaped(page: str) -> None:
    assert FOREIGN not in page
    assert "&lt;script&gt;" in page


def test_the_start_page_gets_links_once() -> None:
    page = "<body><main>\n<p><main></p></main>"
    assert web_pages.with_links(page).count('href="/submit"') == 1
    assert web_pages.with_links("plain") == "plain"
    assert 'name="archive"' in web_pages.submit_page([], ServerLimits())
    assert "being drawn" in web_pages.unready_page([])
