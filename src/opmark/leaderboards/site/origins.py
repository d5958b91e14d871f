"""Where the entries of a board come from: OpMark's own, published algorithms with their papers, baselines, submissions.

A placer's file names its paper in the docstring: authors, the title in quotes, the venue, and the year.
"""

import importlib
import re
from dataclasses import dataclass

from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.site.board import BASELINE, OURS, PUBLISHED, SUBMITTED

OWN = "opmark"
# Authors, the title in quotes, and all up to the year, at the start of a sentence or after a colon.
_REFERENCE = re.compile(
    r"(?:^|(?<=[.:;]\s))([A-Z][^\".]*?(?:et\sal\.[^\"]*?)?\"[^\"]+\"[^.;:]*?(?:\.[^.;:]*?)*?\b((?:19|20)\d\d))\b",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of an entry, with a reference and its year where its placer's file names a paper."""

    name: str
    reference: str = ""
    year: int | None = None


def origin_of(entry: str) -> Origin:
    """The origin of a registered placer, or of anybody's submission."""
    if entry not in PLACERS.names():
        return Origin(name=SUBMITTED)
    if entry == OWN:
        return Origin(name=OURS)
    words = " ".join((importlib.import_module(type(PLACERS.load(entry)).__module__).__doc__ or "").split("\n\n", 1)[1:])
    found = _REFERENCE.search(" ".join(words.split()))
    if found is None:
        return Origin(name=BASELINE)
    return Origin(name=PUBLISHED, reference=found[1], year=int(found[2]))
