"""Chimera: one pipeline down the devices and one up again, each with half of the micro-batches.

Li, Hoefler, "Chimera: Efficiently training large-scale neural networks with bidirectional pipelines", SC 2021, section
3.1: device k of K, an even number, holds stage k of one pipeline and stage K - 1 - k of the other, weights included,
which evens out bubbles and stashed activations (schedule `chimera`). Two pipelines in opposite directions need
micro-batches: in any other problem the paper has no answer, and this placer gives the best single device.
"""

from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class ChimeraPlacer(Placer):
    """The longest bidirectional pipeline that fits."""

    summary = "two pipelines in opposite directions, in steps of micro-batches only (Chimera, SC'21)"
    paper = Placer.cites(
        "Li, Hoefler: Chimera: efficiently training large-scale neural networks with bidirectional pipelines, SC",
        2021,
        link="https://arxiv.org/abs/2107.06925",
        code="https://github.com/Shigangli/Chimera",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the pipelines; the best single device without micro-batches, or where none fits."""
        del seed
        incumbent = Incumbent(problem, "chimera", budget_s)
        if problem.in_micro_batches:
            blocks = blocks_of(problem)
            devices = device_rows(problem, blocks)
            for count in range(len(devices) - len(devices) % 2, 0, -2):
                stages = balanced_stages(blocks, devices[:count])
                both = None if stages is None else Placement(device=stages[blocks.of_unit], schedule="chimera")
                if both is not None and incumbent.consider(both):
                    return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


PLACER = ChimeraPlacer()
