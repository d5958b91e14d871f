"""Chimera: two pipelines in opposite directions, each with half of the micro-batches, in one another's bubbles.

Li, Hoefler, "Chimera: Efficiently training large-scale neural networks with bidirectional pipelines", SC 2021, section
3.1 and table 2: on an even number D of stages, N micro-batches leave (D − 2) / (2N + D − 2) of a step idle if
forward and backward take equally long. More than D micro-batches are units of D, one after the other (section 3.5).
"""

from opmark.leaderboards.problem.rules.pipeline_schedule import PipelineSchedule


class Bidirectional(PipelineSchedule):
    """Down and up: a stage's ticks are odd in one pipeline and even in the other."""

    summary = "two pipelines in opposite directions fill one another's bubbles (Chimera)"
    both_ways = True

    def direction(self, micro_batch: int, micro_batches: int, stages: int) -> int:
        """The first half of each unit of D micro-batches goes down, the other one up."""
        unit, place = divmod(micro_batch, stages)
        return int(place >= -(-min(stages, micro_batches - unit * stages) // 2))

    def tick(self, micro_batch: int, micro_batches: int, *, backward: bool, behind: int, stages: int) -> int:
        """Micro-batch i of its half enters at 2i, turns round at the last stage, and comes back."""
        unit, place = divmod(micro_batch, stages)
        down = -(-min(stages, micro_batches - unit * stages) // 2)
        entered = 2 * (stages * unit + (place if place < down else place - down))
        return entered + (stages + behind - 1 if backward else stages - behind)


SCHEDULE = Bidirectional()
