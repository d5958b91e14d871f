"""DAPPLE: stages and replicas planned for a synchronous one-forward-one-backward (1F1B) pipeline.

Fan et al., "DAPPLE: A pipelined data parallel approach for training large models", PPoPP 2021, section 4: a plan
takes its warm-up, steady phase and ending, L = Σ stage times and transfers + (M - 1) · the slowest stage for M
micro-batches; the planner tries numbers of stages and replicas. 1F1B (Narayanan et al., SOSP 2019) keeps no more
micro-batches in flight than there are stages ahead, which is the stashed memory of a problem.
"""

from collections.abc import Iterator

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, cut_ns, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device

# The micro-batches per device if the problem names none: DAPPLE's experiments have a few times as many as stages.
MICRO_BATCHES_PER_DEVICE = 4


class Dapple(Placer):
    """The valid plan of least predicted latency."""

    summary = "stages and replicas planned by warm-up, steady phase and ending of 1F1B (DAPPLE, PPoPP'21)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the plan; the best single device if no pipeline fits."""
        del seed
        incumbent = Incumbent(problem, "dapple", budget_s)
        schedule = "one-f-one-b" if problem.in_micro_batches else ""
        for _, placement in sorted(_plans(problem, schedule), key=lambda plan: plan[0]):
            if _runs(problem, placement) and incumbent.consider(placement):
                return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0], schedule=schedule))
        return incumbent.solution()


def _plans(problem: Problem, schedule: str) -> Iterator[tuple[float, Placement]]:
    """The predicted latency and the placement of every plan: so many replicas of so many stages."""
    blocks = blocks_of(problem)
    row, cuts = device_rows(problem, blocks), cut_ns(problem, blocks)
    for replicas in range(1, len(row) + 1 if problem.replication else 2):
        for stages in range(1, len(row) // replicas + 1):
            primary = row[: stages * replicas : replicas]
            device = balanced_stages(blocks, primary, boundary_ns=cuts)
            if device is None:
                continue
            used = set(device.tolist())
            copies = {
                one: row[number * replicas + 1 : (number + 1) * replicas]
                for number, one in enumerate(primary)
                if replicas > 1 and one in used
            }
            placement = Placement(device=device[blocks.of_unit], replicas=copies, schedule=schedule)
            yield _latency_ns(problem, blocks, device, cuts, replicas), placement


def _latency_ns(problem: Problem, blocks: Blocks, device: Integers, cuts: Integers, replicas: int) -> float:
    """DAPPLE's L of one plan; replicas share the micro-batches of a stage evenly."""
    micro_batches = problem.micro_batches or MICRO_BATCHES_PER_DEVICE * problem.arrays.devices
    stage: dict[int, float] = {}
    sent: dict[int, int] = {}
    for block, number in enumerate(device.tolist()):
        stage[number] = stage.get(number, 0.0) + float(blocks.run_ns[block, number]) / replicas
        if any(device[other] != number for other in blocks.before[block]):
            sent[number] = sent.get(number, 0) + int(cuts[block])
    slowest = max((*stage.values(), *sent.values()), default=0.0)
    return sum(stage.values()) + sum(sent.values()) + (micro_batches - 1) * slowest


def _runs(problem: Problem, placement: Placement) -> bool:
    """True if every replica can run the units of its stage."""
    return all(
        bool((problem.arrays.run_ns[np.flatnonzero(placement.device == primary)][:, list(row)] >= 0).all())
        for primary, row in placement.replicas.items()
    )


PLACER = Dapple()
