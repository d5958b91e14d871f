"""The time that a fidelity run takes and has left."""

import time
from collections.abc import Callable
from statistics import fmean


class RunPace:
    """The times of problems and visits so far, against `limit_s` from now on."""

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._begun = clock()
        self._planning_s: list[float] = []
        self._visit_s: dict[str, list[float]] = {}

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return self._clock() - self._begun

    def planned(self, seconds: float) -> None:
        """A problem was made in that time."""
        self._planning_s.append(seconds)

    def visited(self, problem: str, seconds: float) -> None:
        """A visit to `problem` took that time."""
        self._visit_s.setdefault(problem, []).append(seconds)

    def affords_problem(self, visits_after: int) -> bool:
        """True if there is time to make and visit one more problem, and for so many visits after that."""
        visit_s = self._usual_visit_s()
        planning_s = fmean(self._planning_s) if self._planning_s else 0.0
        return self._left_s() > planning_s + visit_s * (1 + visits_after)

    def affords_visit(self, problem: str) -> bool:
        """True if there is time for another visit to `problem`, as long as those before."""
        known = self._visit_s.get(problem)
        return self._left_s() > (fmean(known) if known else self._usual_visit_s())

    def left_s(self, problems: int, visits: int) -> float | None:
        """The estimated time for so many problems to make and visits to pay; None while nothing is known."""
        if not self._visit_s:
            return None
        planning_s = fmean(self._planning_s) if self._planning_s else 0.0
        return max(0.0, min(problems * planning_s + visits * self._usual_visit_s(), self._left_s()))

    def _left_s(self) -> float:
        return self._limit_s - self.seconds

    def _usual_visit_s(self) -> float:
        return fmean(fmean(times) for times in self._visit_s.values()) if self._visit_s else 0.0
