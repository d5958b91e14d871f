"""The order in which a stage works on micro-batches; one file of `rules.pipeline_schedules` per schedule."""

from abc import ABC, abstractmethod
from typing import ClassVar

from opmark.core.registry import Registry

DEFAULT_SCHEDULE = "one-f-one-b"


class PipelineSchedule(ABC):
    """An order of forward and backward passes per stage, as a timetable in which each pass takes one tick.

    Devices follow the order of the ticks; the simulation decides all durations and waits. A timetable never deadlocks
    if nothing comes before its inputs and no device does two things at once. With `both_ways` a second pipeline runs
    against the first, with weights of its own: device k of D holds stages k and D − 1 − k.
    """

    summary: ClassVar[str]
    both_ways: ClassVar[bool] = False

    @abstractmethod
    def tick(self, micro_batch: int, micro_batches: int, *, backward: bool, behind: int, stages: int) -> int:
        """The tick at which a stage works on a micro-batch; `behind` of all `stages` stand from it to the end."""

    def direction(self, micro_batch: int, micro_batches: int, stages: int) -> int:
        """0 if a micro-batch passes the stages from the first device on, 1 if it comes from the last."""
        del micro_batch, micro_batches, stages
        return 0


PIPELINE_SCHEDULES: Registry[PipelineSchedule] = Registry(
    "opmark.leaderboards.problem.rules.pipeline_schedules", "SCHEDULE", "pipeline schedule"
)
