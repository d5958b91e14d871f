"""How far the sentinels are from where they usually are in a run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from opmark.core.estimate import median
from opmark.core.records import Sentinels

# Fewer readings than this say nothing about where the sentinels usually are.
_FEW_READINGS = 5


class Drift:
    """The readings of a run, by target."""

    def __init__(self, earlier: Iterable[Sentinels]) -> None:
        self._readings: dict[str, list[Mapping[str, float]]] = defaultdict(list)
        for item in earlier:
            self.add(item.target, item.ns)

    def add(self, target: str, reading: Mapping[str, float]) -> None:
        """Remember a reading, in ns by sentinel; an empty one says nothing."""
        if reading:
            self._readings[target].append(reading)

    def of(self, target: str, reading: Mapping[str, float]) -> float:
        """How far the worse sentinel is from its median, as a fraction; 0 while there is too little to tell."""
        earlier = self._readings[target]
        if len(earlier) < _FEW_READINGS or not reading:
            return 0.0
        usual = {name: median([item[name] for item in earlier if name in item] or [ns]) for name, ns in reading.items()}
        return max(abs(ns / usual[name] - 1) for name, ns in reading.items())
