"""The schedule of a placement: the times of all units and transfers, in ns."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem

# The cost of a placement that cannot run at all.
INVALID_COST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Start and end of every unit, by number, and of every transfer, whose hops lie in rows of `hop_offsets`.

    `cost_ns` is the problem's objective in whole steps of its unit (ns, or 10⁻¹² of the currency), rounded up from
    `exact_cost`; one pass ends at `latency_ns`. `peak_bytes` is per device, weights included. If replicas share each
    pass, transfers and the rest are those of the parts; the parts, their placement and their schedule are `expanded`.
    With several passes, `expanded` holds the copies of all units in the same way. `requests_ns` is the latency of each
    request. `release_ns` is the time at which each tensor without a producer arrives; if it is given, outputs leave
    once they are on the host.
    """

    cost_ns: int
    unit_start_ns: Integers
    unit_end_ns: Integers
    transfer_tensor: Integers
    transfer_destination: Integers
    hop_offsets: Integers
    hop_link: Integers
    hop_start_ns: Integers
    hop_end_ns: Integers
    peak_bytes: Integers
    latency_ns: int = 0
    exact_cost: Fraction | None = None
    requests_ns: Integers | None = None
    release_ns: Integers | None = None
    expanded: "tuple[Problem, Placement, Schedule] | None" = None

    @property
    def value(self) -> Fraction:
        """The cost before it was rounded up."""
        return Fraction(self.cost_ns) if self.exact_cost is None else self.exact_cost

    def spans_of(self, originals: Integers, count: int) -> tuple[Integers, Integers]:
        """The first start and the last end of the parts or copies of `count` units.

        `originals` numbers the unit behind each part or copy (-1: none).
        """
        own = originals >= 0
        start = np.full(count, INVALID_COST, dtype=np.int64)
        end = np.zeros(count, dtype=np.int64)
        np.minimum.at(start, originals[own], self.unit_start_ns[own])
        np.maximum.at(end, originals[own], self.unit_end_ns[own])
        return start, end
