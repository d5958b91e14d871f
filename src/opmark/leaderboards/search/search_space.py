"""Neighbours of a placement, drawn in batches for the compiled simulator."""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups


class SearchSpace:
    """Moves of single groups, of connected pieces, and of stretches of the topological order."""

    def __init__(self, problem: Problem, groups: Groups, generator: np.random.Generator) -> None:
        self.groups = groups
        self._generator = generator
        self._able = [np.flatnonzero(row) for row in groups.allowed]
        self._movable = np.flatnonzero(groups.allowed.sum(axis=1) > 1)
        self._neighbours = _neighbours(problem, groups)
        self._positions = np.arange(groups.count)

    @property
    def movable(self) -> int:
        """How many groups have a choice of devices."""
        return len(self._movable)

    def neighbours(self, chosen: Integers, count: int) -> Integers:
        """`count` rows near `chosen` (a device per group)."""
        rows = np.repeat(chosen[None, :], count, axis=0)
        for row in rows:
            self._move(row)
        return rows

    def _move(self, row: Integers) -> None:
        draw = self._generator
        first = int(draw.choice(self._movable))
        others = self._able[first][self._able[first] != row[first]]
        target = int(draw.choice(others))
        kind = draw.random()
        if kind < 0.4:
            piece = np.array([first])
        elif kind < 0.75:
            piece = self._connected(first, int(draw.integers(2, max(3, min(40, self.groups.count // 2)))))
        elif kind < 0.9:
            length = int(draw.integers(2, max(3, self.groups.count // 4)))
            piece = self._positions[first : first + length]
        else:
            second = int(draw.choice(self._movable))
            if self.groups.allowed[second, row[first]] and self.groups.allowed[first, row[second]]:
                row[first], row[second] = row[second], row[first]
            return
        row[piece[self.groups.allowed[piece, target]]] = target

    def _connected(self, first: int, size: int) -> Integers:
        piece = [first]
        seen = {first}
        for group in piece:
            for other in self._neighbours[group]:
                if other not in seen and len(piece) < size and self._generator.random() < 0.8:
                    seen.add(other)
                    piece.append(other)
        return np.array(piece)


def _neighbours(problem: Problem, groups: Groups) -> list[list[int]]:
    """Groups joined by a tensor, per group."""
    arrays = problem.arrays
    of_unit = groups.of_unit
    lengths = np.diff(arrays.consumer_offsets)
    producers = np.repeat(arrays.tensor_producer, lengths)
    inside = producers >= 0
    a, b = of_unit[producers[inside]], of_unit[arrays.consumer_units[inside]]
    pairs = np.unique(np.concatenate([np.stack([a, b]), np.stack([b, a])], axis=1), axis=1)
    found: list[list[int]] = [[] for _ in range(groups.count)]
    for left, right in pairs.T.tolist():
        if left != right:
            found[left].append(right)
    return found
