"""Where the entries of a board come from: OpMark's own, published algorithms with their papers, baselines, submissions.

A placer says it in its class (`paper` and `own`), a submission in its manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from opmark.core.plain_text import web_address
from opmark.core.schema import load
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.search.placer import PLACERS, Paper
from opmark.leaderboards.site.board import BASELINE, OURS, PUBLISHED, SUBMITTED
from opmark.leaderboards.submissions.ownership import RECEIPT, SCHEMA, StoredReceipt

# Later times of a signature are none.
_YEAR_2200_S = 7_258_118_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of an entry: its paper where it was published, and the day of a submission, such as 2026-11-21."""

    name: str
    paper: Paper | None = None
    description: str = ""
    submitted: str = ""


def origin_of(entry: str, submissions: Mapping[str, Origin] | None = None) -> Origin:
    """The origin of a registered placer, or of one of the `submissions`, or of anybody's."""
    if entry not in PLACERS.names():
        return (submissions or {}).get(entry, Origin(name=SUBMITTED))
    placer = PLACERS.load(entry)
    name = PUBLISHED if placer.paper is not None else OURS if placer.own else BASELINE
    return Origin(
        name=name, paper=placer.paper, description=f"{placer.summary[:1].upper()}{placer.summary[1:].rstrip('.')}."
    )


def submission_origins(track: Track) -> dict[str, Origin]:
    """The origin of every submission to a track, by its receipt. Raises `ContentError` for a damaged receipt."""
    return {
        path.parent.name: _submitted(load(path, StoredReceipt, schema=SCHEMA, sealed=True))
        for path in sorted((track.folder / "submissions").glob(f"*/{RECEIPT}"))
    }


def _submitted(receipt: StoredReceipt) -> Origin:
    given = receipt.manifest
    at = receipt.signed_at
    day = datetime.fromtimestamp(at, UTC).date().isoformat() if 0 < at < _YEAR_2200_S else ""
    words = (f"{given.title}, by {', '.join(given.authors)} ({given.license})", given.description.rstrip("."))
    return Origin(
        name=SUBMITTED,
        paper=Paper(reference=given.paper, link=web_address(given.paper)) if given.paper else None,
        description=". ".join(word for word in words if word) + ".",
        submitted=day,
    )
