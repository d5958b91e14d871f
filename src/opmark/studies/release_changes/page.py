"""The page of `opmark datasets diff -o`: the largest changes of latency, and every kind in a table.

The idea is that of asv (airspeed velocity), which shows regressions between versions of a library.
"""

from collections.abc import Sequence

from opmark.datasets.release.changes import NOISE, RowChange
from opmark.datasets.release.diff import Difference
from opmark.pages.template import render

# The rows of each list.
MOST = 25


def changes_page(difference: Difference, changes: Sequence[RowChange]) -> str:
    """A self-contained HTML page; `changes` begin with the largest ratio."""
    slower = [one for one in changes if one.ratio > 1 + NOISE]
    faster = [one for one in reversed(changes) if one.ratio < 1 - NOISE]
    scale = max([abs(one.ratio_median - 1) for one in difference.groups if one.ratio_median is not None], default=0.0)
    return render(
        "studies/templates/release_changes.html.jinja",
        title=f"{difference.old} to {difference.new}",
        difference=difference,
        compared=len(changes),
        noise=NOISE,
        lists=[
            ("What became slower", len(slower), slower[:MOST]),
            ("What became faster", len(faster), faster[:MOST]),
        ],
        groups=sorted(difference.groups, key=lambda one: -(one.ratio_median or 0.0)),
        scale=scale or 1.0,
    )
