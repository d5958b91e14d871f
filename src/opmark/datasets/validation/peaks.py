"""The highest rates that a target's rows support: FLOP/s per element type, and bytes/s hot and rotated.

A rate is a row's work over its label. FLOP/s come from kinds that multiply and accumulate, with the hot label. Bytes/s
come from all rows that move bytes, with the hot label (caches) and with the rotated one (memory, except for kernels
whose copies fit in the last-level cache). The peak is the largest rate *that other rows support*: among the top 2 % (at
least one row), rates above a jump of more than a factor of two are left out. Correct rows have no such jump, so that
their peak is their maximum; a label that lost its last three digits stands alone and does not raise its own limit. Of
fewer than 30 rows, the peak is the maximum.

Labels below 100 ns of kinds that do not multiply give no bytes/s: they are views, such as a reshape without a copy.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from opmark.core.measurements.measurement import USABLE
from opmark.datasets.format.manifest import FLOPS, HOT_BYTES, ROTATED_BYTES, Peak
from opmark.kinds import KINDS

Row = Mapping[str, Any]
Group = tuple[str, str, str]

LABEL_OF = {FLOPS: "latency_hot_ns", HOT_BYTES: "latency_hot_ns", ROTATED_BYTES: "latency_rotated_ns"}

# A label whose rate exceeds the peak by a larger factor is wrong.
REFUSED_ABOVE = 4.0
FEWEST_ROWS = 30
_TOP_SHARE = 0.02
_SHORTEST_COPY_NS = 100.0
_JUMP = 2.0


def peaks(rows: Iterable[Row]) -> tuple[Peak, ...]:
    """Find one peak per target and quantity (of FLOP/s also per element type), sorted."""
    found = defaultdict(list)
    for row in rows:
        for group, rate in rates(row):
            found[group].append(rate)
    return tuple(
        Peak(target=target, quantity=quantity, dtype=dtype, rate=supported_maximum(values), rows=len(values))
        for (target, quantity, dtype), values in sorted(found.items())
    )


def rates(row: Row) -> Iterator[tuple[Group, float]]:
    """Compute the rates of `row`, each with its (target, quantity, dtype)."""
    if row["status"] not in USABLE:
        return
    target, moved_bytes = row["target"], row["read_bytes"] + row["written_bytes"]
    hot_ns, rotated_ns = row["latency_hot_ns"], row["latency_rotated_ns"]
    multiplies = _multiplies(row["kind"])
    if _positive(hot_ns) and row["flops"] > 0 and multiplies:
        yield (target, FLOPS, row["dtype"]), row["flops"] / hot_ns * 1e9
    for quantity, latency_ns in ((HOT_BYTES, hot_ns), (ROTATED_BYTES, rotated_ns)):
        if _positive(latency_ns) and moved_bytes > 0 and (multiplies or latency_ns >= _SHORTEST_COPY_NS):
            yield (target, quantity, ""), moved_bytes / latency_ns * 1e9


def supported_maximum(values: Sequence[float]) -> float:
    """Find the largest of `values` that is not above a jump among the top few."""
    ordered = sorted(values, reverse=True)
    if len(ordered) < FEWEST_ROWS:
        return ordered[0]
    top = max(1, math.ceil(len(ordered) * _TOP_SHARE))
    apart = [index for index in range(top) if ordered[index] > _JUMP * ordered[index + 1]]
    return ordered[apart[-1] + 1] if apart else ordered[0]


@cache
def _multiplies(kind: str) -> bool:
    """True for a known kind that multiplies matrices; a release has tens of thousands of rows of a few kinds."""
    return kind in KINDS.names() and KINDS.load(kind).matrix


def _positive(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
