"""In which order a stage works on micro-batches; one file of `rules.pipeline_schedules` per schedule."""

from abc import ABC, abstractmethod
from typing import ClassVar

from opmark.core.registry import Registry

DEFAULT_SCHEDULE = "one-f-one-b"


class PipelineSchedule(ABC):
    """An order of forward and backward passes per stage, told as a timetable in which each takes one tick.

    What a device does follows the ticks; how long it takes, and what it waits for, is up to the simulation. A timetable
    in which nothing comes before what it needs, and no device does two things at once, never deadlocks.
    With `both_ways` a second pipeline runs against the first, with weights of its own: device k of D holds stages k and
    D − 1 − k.
    """

    summary: ClassVar[str]
    both_ways: ClassVar[bool] = False

    @abstractmethod
    def tick(self, micro_batch: int, micro_batches: int, *, backward: bool, behind: int, stages: int) -> int:
        """When the stage works on a micro-batch, `behind` being how many of `stages` stand from it to the end."""

    def direction(self, micro_batch: int, micro_batches: int, stages: int) -> int:
        """0 where a micro-batch passes the stages from the first device on, 1 where it comes from the last."""
        del micro_batch, micro_batches, stages
        return 0


PIPELINE_SCHEDULES: Registry[PipelineSchedule] = Registry(
    "opmark.leaderboards.problem.rules.pipeline_schedules", "SCHEDULE", "pipeline schedule"
)
