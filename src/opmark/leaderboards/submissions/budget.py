"""What a `placer.py` knows about its time, and how it answers before the time is up."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from opmark.leaderboards.problem.placement import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds to plan in, counted from when the problem was handed over, and a seed for what is drawn."""

    seconds: float
    seed: int
    send: Callable[[Solution], None]
    begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds left; negative when the time is over."""
        return self.begun + self.seconds - time.monotonic()

    def offer(self, answer: Solution | Mapping[str, str]) -> None:
        """Hand over a complete solution (or a device for every unit); the last valid one counts."""
        self.send(as_solution(answer))


def as_solution(answer: object) -> Solution:
    """A solution, or a mapping of units to devices as one. Raises `TypeError`."""
    if isinstance(answer, Solution):
        return answer
    if isinstance(answer, Mapping):
        return Solution(device={str(unit): str(device) for unit, device in answer.items()})
    raise TypeError(f"expected a Solution or a mapping of units to devices, not a {type(answer).__name__}")
