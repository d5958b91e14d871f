"""1F1B: once the pipeline is full, every stage does one forward and one backward by turns, then flushes.

Fan et al., "DAPPLE: A pipelined data parallel approach for training large models", PPoPP 2021, figure 3; Narayanan et
al., "Memory-efficient pipeline-parallel DNN training", ICML 2021 (PipeDream-Flush): as long as fill and drain, but a
stage keeps no more micro-batches in flight than there are stages from it to the end.
"""

from opmark.leaderboards.problem.rules.pipeline_schedule import PipelineSchedule


class OneForwardOneBackward(PipelineSchedule):
    """Warm-up, one forward and one backward by turns, ending."""

    summary = "one forward, one backward by turns, with a flush at the end (DAPPLE, PipeDream-Flush)"

    def tick(self, micro_batch: int, micro_batches: int, *, backward: bool, behind: int, stages: int) -> int:
        """Forward j falls before backward i where j < i + `behind`."""
        del micro_batches, stages
        return 2 * micro_batch + behind - 1 if backward else 2 * micro_batch - behind


SCHEDULE = OneForwardOneBackward()
