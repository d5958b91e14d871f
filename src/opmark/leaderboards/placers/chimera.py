"""Chimera: a pipeline down the devices and one up again, so that every device has an early and a late stage.

Li, Hoefler, "Chimera: Efficiently training large-scale neural networks with bidirectional pipelines", SC 2021, section
3.1: device k of K holds stage k of the one pipeline and stage K − 1 − k of the other, which evens out bubbles and
stashed activations. There both pipelines hold all weights; so they do in a step of micro-batches, by the schedule
`chimera`, on an even number of devices. In every other problem a weight has one device, so that the graph is cut into
2K stretches and device k runs the k-th from the front and the k-th from the end.
"""

from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class Chimera(Placer):
    """The folded pipeline; a plain one where a problem forbids paths that return to a device."""

    summary = "a pipeline down the devices and up again, two stages on each (Chimera, SC'21)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The longest pipeline that fits; the best single device where none does."""
        del seed
        incumbent = Incumbent(problem, "chimera", budget_s)
        blocks = blocks_of(problem)
        row = device_rows(problem, blocks)
        if problem.in_micro_batches:
            for count in range(len(row) - len(row) % 2, 0, -2):
                stages = balanced_stages(blocks, row[:count])
                both = None if stages is None else Placement(device=stages[blocks.of_unit], schedule="chimera")
                if both is not None and incumbent.consider(both):
                    return incumbent.solution()
        for count in range(len(row), 0, -1):
            down = row[:count]
            folded = [] if problem.contiguous else [[*down, *reversed(down)]]
            for devices in (*folded, down):
                stages = balanced_stages(blocks, devices)
                if stages is not None and incumbent.consider(Placement(device=stages[blocks.of_unit])):
                    return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


PLACER = Chimera()
