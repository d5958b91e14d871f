"""1F1B: once the pipeline is full, every stage alternates one forward and one backward, then flushes.

Fan et al., "DAPPLE: A pipelined data parallel approach for training large models", PPoPP 2021, figure 3; Narayanan et
al., "Memory-efficient pipeline-parallel DNN training", ICML 2021 (PipeDream-Flush): takes as long as fill and
drain, but a stage keeps no more micro-batches in flight than there are stages from it to the end.
"""

from opmark.leaderboards.problem.rules.pipeline_schedule import PipelineSchedule


class OneForwardOneBackward(PipelineSchedule):
    """Warm-up, then one forward and one backward in turn, then the flush."""

    summary = "one forward, one backward by turns, with a flush at the end (DAPPLE, PipeDream-Flush)"

    def tick(self, micro_batch: int, micro_batches: int, *, backward: bool, behind: int, stages: int) -> int:
        """Forward j falls before backward i if j < i + `behind`."""
        del micro_batches, stages
        return 2 * micro_batch + behind - 1 if backward else 2 * micro_batch - behind


SCHEDULE = OneForwardOneBackward()
