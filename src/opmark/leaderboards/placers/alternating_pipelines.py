"""Alternating pipelines: 2K stretches of the graph, down K devices and up again, an early and a late one on each.

Our own baseline, with no paper behind it: Chimera's picture (Li, Hoefler, SC 2021, figure 3) drawn for problems where a
weight has one device. Device k runs the k-th stretch from the front and the k-th from the end.
"""

from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class AlternatingPipelines(Placer):
    """The folded pipeline; a plain one if the problem asks for contiguous parts."""

    summary = "stretches of balanced compute down the devices and up again, two on each (no paper)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the longest pipeline that fits; the best single device if none fits."""
        del seed
        incumbent = Incumbent(problem, "alternating-pipelines", budget_s)
        blocks = blocks_of(problem)
        devices = device_rows(problem, blocks)
        for count in range(len(devices), 0, -1):
            down = devices[:count]
            folded = [] if problem.contiguous else [[*down, *reversed(down)]]
            for row in (*folded, down):
                stages = balanced_stages(blocks, row)
                if stages is not None and incumbent.consider(Placement(device=stages[blocks.of_unit])):
                    return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


PLACER = AlternatingPipelines()
