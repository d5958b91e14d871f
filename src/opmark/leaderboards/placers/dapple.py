"""DAPPLE: stages planned for a synchronous one-forward-one-backward (1F1B) pipeline, with replicas.

Fan et al., "DAPPLE: A pipelined data parallel approach for training large models", PPoPP 2021, section 4: a plan costs
its warm-up, its steady phase and its ending, L = Σ stage times and transfers + (M − 1) x the slowest stage, for M
micro-batches; the planner tries numbers of stages and replicas. 1F1B (Narayanan et al., SOSP 2019) keeps no more
micro-batches in flight than there are stages ahead, which is what problems with stashed memory count.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, cut_ns, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device

# Micro-batches per device where the problem does not say: DAPPLE's own experiments use a few times the stages.
MICRO_BATCHES_PER_DEVICE = 4


class Dapple(Placer):
    """The plan of least predicted latency among those that are valid."""

    summary = "stages and replicas planned by warm-up, steady phase and ending of 1F1B (DAPPLE, PPoPP'21)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The plan; the best single device where no pipeline fits."""
        del seed
        incumbent = Incumbent(problem, "dapple", budget_s)
        blocks = blocks_of(problem)
        schedule = "one-f-one-b" if problem.in_micro_batches else ""
        row, cuts = device_rows(problem, blocks), cut_ns(problem, blocks)
        plans: list[tuple[float, int, Placement]] = []
        for replicas in range(1, len(row) + 1 if problem.replication else 2):
            for stages in range(1, len(row) // replicas + 1):
                primary = row[: stages * replicas : replicas]
                device = balanced_stages(blocks, primary, boundary_ns=cuts)
                if device is None:
                    continue
                used = set(device.tolist())
                rows = {
                    one: row[number * replicas + 1 : (number + 1) * replicas]
                    for number, one in enumerate(primary)
                    if replicas > 1 and one in used
                }
                placement = Placement(device=device[blocks.of_unit], replicas=rows, schedule=schedule)
                plans.append((_latency_ns(problem, blocks, device, cuts, replicas), len(plans), placement))
        for _, _, placement in sorted(plans, key=lambda plan: plan[:2]):
            if _runs(problem, placement) and incumbent.consider(placement):
                return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0], schedule=schedule))
        return incumbent.solution()


def _latency_ns(problem: Problem, blocks: Blocks, device: Integers, cuts: Integers, replicas: int) -> float:
    """DAPPLE's L for one plan; replicas share a stage's micro-batches evenly."""
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
    """Whether every replica can run what its stage runs."""
    return all(
        bool((problem.arrays.run_ns[np.flatnonzero(placement.device == primary)][:, list(row)] >= 0).all())
        for primary, row in placement.replicas.items()
    )


PLACER = Dapple()
