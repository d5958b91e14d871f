"""PipeDream's partitioner: stages of an optimal pipeline, each with as many replicas as pay off.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.1. The dynamic
program is in `search.cuts.replicated_stages`; it runs over all ideals, as the released optimiser does, or over layers
in one order, as the paper does.
"""

import time
from collections.abc import Iterator
from functools import cache

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.ideals import Ideals, every_ideal, prefixes
from opmark.leaderboards.search.cuts.repair import quick_split
from opmark.leaderboards.search.cuts.replicated_stages import replicated_stages
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer

IDEALS_AT_MOST = 20_000
BUDGET_SHARE = 0.9
# The share of the budget for listing all ideals, and the share of the time left that is kept for a chain of ideals.
LISTING_SHARE, CHAIN_SHARE = 0.5, 0.2


class PipeDream(Placer):
    """Uses devices from the fastest to the slowest; only problems with replication get replicas."""

    summary = "optimal pipeline stages with replicas by dynamic programming (PipeDream, SOSP'19)"
    paper = Placer.cites(
        "Narayanan et al.: PipeDream: generalized pipeline parallelism for DNN training, SOSP",
        2019,
        link="https://doi.org/10.1145/3341301.3359646",
        code="https://github.com/msr-fiddle/pipedream",
    )

    def prepare(self) -> None:
        """Compile the program."""
        _compile()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the optimal pipeline over all ideals, or along one order if they are too many or time runs out.

        Memory counts weights at first, and everything that a stage holds if that did not fit. Raises `PlacementError`
        if no pipeline fits into memory.
        """
        del seed
        incumbent = Incumbent(problem, "pipedream", budget_s * BUDGET_SHARE)
        blocks = blocks_of(problem)
        for ideals, kept_share in _lattices(blocks, time.monotonic() + budget_s * LISTING_SHARE):
            for size_bytes in (blocks.weight_bytes, blocks.size_bytes):
                if incumbent.left_s <= 0:
                    continue
                deadline = incumbent.deadline - kept_share * incumbent.left_s
                pipeline = replicated_stages(problem, blocks, ideals, size_bytes, deadline)
                if pipeline is not None and incumbent.consider(pipeline):
                    return incumbent.solution()
        quick = quick_split(problem, blocks)
        if quick is None:
            raise PlacementError("no pipeline of contiguous stages fits into memory")
        incumbent.consider(quick)
        return incumbent.solution()


def _lattices(blocks: Blocks, listed_by: float) -> Iterator[tuple[Ideals, float]]:
    """All ideals if they can be listed in time, then a chain; with each the share of time to keep for what follows."""
    every = every_ideal(blocks, at_most=IDEALS_AT_MOST, deadline=listed_by)
    if every is not None:
        yield every, CHAIN_SHARE
    yield prefixes(blocks, blocks.depth_first_orders[0]), 0.0


PLACER = PipeDream()


@cache
def _compile() -> None:
    PLACER.place(smallest_problem(), budget_s=60.0, seed=0)
