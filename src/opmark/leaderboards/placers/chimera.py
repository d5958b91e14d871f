"""Chimera: one pipeline down the devices and one up again, so that every device has an early and a late stage.

Li, Hoefler, "Chimera: Efficiently training large-scale neural networks with bidirectional pipelines", SC 2021, section
3.1: device k of K holds stage k of one pipeline and stage K - 1 - k of the other, which evens out bubbles and stashed
activations. In a step of micro-batches both pipelines hold all weights, as in the paper (schedule `chimera`, an even
number of devices). In every other problem a weight has one device: the graph is cut into 2K stretches, and device k
runs the k-th from the front and the k-th from the end.
"""

from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class ChimeraPlacer(Placer):
    """The folded pipeline; a plain one if the problem asks for contiguous parts."""

    summary = "a pipeline down the devices and up again, two stages on each (Chimera, SC'21)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the longest pipeline that fits; the best single device if none fits."""
        del seed
        incumbent = Incumbent(problem, "chimera", budget_s)
        blocks = blocks_of(problem)
        devices = device_rows(problem, blocks)
        if problem.in_micro_batches:
            for count in range(len(devices) - len(devices) % 2, 0, -2):
                stages = balanced_stages(blocks, devices[:count])
                both = None if stages is None else Placement(device=stages[blocks.of_unit], schedule="chimera")
                if both is not None and incumbent.consider(both):
                    return incumbent.solution()
        for count in range(len(devices), 0, -1):
            down = devices[:count]
            folded = [] if problem.contiguous else [[*down, *reversed(down)]]
            for row in (*folded, down):
                stages = balanced_stages(blocks, row)
                if stages is not None and incumbent.consider(Placement(device=stages[blocks.of_unit])):
                    return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


PLACER = ChimeraPlacer()
