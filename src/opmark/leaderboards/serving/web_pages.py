"""The pages that a served site has beside the static ones: the form, the queue, and one submission."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.serving.submission_queue import QUEUED, RUNNING, QueuedSubmission, ServerLimits
from opmark.pages.template import render

UNFINISHED = (QUEUED, RUNNING)
_FOLDER = "leaderboards/serving/"
_LINKS = '<p><a href="/submit">Submit an algorithm</a> · <a href="/submissions">Submissions</a></p>'


def with_links(page: str) -> str:
    """The start page of the static site with links to the served pages."""
    return page.replace("<main>", f"<main>\n{_LINKS}", 1)


def unready_page(tracks: Sequence[Track]) -> str:
    """The start page while the site is being written for the first time."""
    return render(f"{_FOLDER}unready.html.jinja", title="Placement leaderboards", tracks=tracks)


def submit_page(tracks: Sequence[Track], limits: ServerLimits) -> str:
    """The form."""
    return render(f"{_FOLDER}submit.html.jinja", title="Submit an algorithm", tracks=tracks, limits=limits)


def queue_page(rows: Sequence[QueuedSubmission]) -> str:
    """The last submissions, without their ids."""
    shown = [public_state(row) for row in rows]
    return render(f"{_FOLDER}queue.html.jinja", title="Submissions", rows=[{**row, "at": _at(row)} for row in shown])


def submission_page(state: Mapping[str, Any], *, key: str = "") -> str:
    """One submission; a new key is shown here and never again."""
    return render(f"{_FOLDER}submission.html.jinja", title=state["name"], state=state, key=key, unfinished=UNFINISHED)


def refusal_page(message: str, hint: str) -> str:
    """A request that was refused."""
    return render(f"{_FOLDER}refusal.html.jinja", title="This did not work", message=message, hint=hint)


def public_state(found: QueuedSubmission) -> dict[str, Any]:
    """The public facts of a submission; its id opens the rest."""
    return {
        "name": found.name,
        "tracks": found.tracks,
        "state": found.state,
        "ahead": found.ahead,
        "received_s": found.received_s,
    }


def _at(row: Mapping[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(row["received_s"]))
