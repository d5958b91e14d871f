"""Fill and drain: every micro-batch forward, then every micro-batch backward, the last one first.

Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019, figure 2:
m micro-batches on p equal stages take (m + p − 1) times one forward and one backward; all m are in flight.
"""

from opmark.leaderboards.problem.rules.pipeline_schedule import PipelineSchedule


class FillDrain(PipelineSchedule):
    """All forward, then all backward."""

    summary = "all micro-batches forward, then all backward (GPipe)"

    def tick(self, micro_batch: int, micro_batches: int, *, backward: bool, behind: int, stages: int) -> int:
        """The same on every stage."""
        del behind, stages
        return 2 * micro_batches - 1 - micro_batch if backward else micro_batch


SCHEDULE = FillDrain()
