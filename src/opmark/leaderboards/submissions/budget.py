"""The budget that a `placer.py` receives: its time, its seed, and a way to hand over answers early."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from opmark.leaderboards.problem.placement import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds to plan in, counted from the start of the submission's code, and a seed for random choices."""

    seconds: float
    seed: int
    send: Callable[[Solution], None]
    begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """The seconds left; negative when the time is over."""
        return self.begun + self.seconds - time.monotonic()

    def offer(self, answer: Solution | Mapping[str, str]) -> None:
        """Hand over a complete solution (or a mapping of every unit to a device); the last valid one counts."""
        self.send(as_solution(answer))


def as_solution(answer: object) -> Solution:
    """Turn a mapping of units to devices into a solution; a solution stays as it is. Raises `TypeError`."""
    if isinstance(answer, Solution):
        return answer
    if isinstance(answer, Mapping):
        return Solution(device={str(unit): str(device) for unit, device in answer.items()})
    raise TypeError(f"expected a Solution or a mapping of units to devices, not a {type(answer).__name__}")
