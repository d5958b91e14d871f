"""Rounds of messages by which replicas of a unit agree on a gradient; one file of `synchronisations` per method."""

from abc import ABC, abstractmethod
from typing import ClassVar

from opmark.core.registry import Registry

# (sender, receiver, bytes), replicas by position.
Message = tuple[int, int, int]


class Synchronisation(ABC):
    """A method in rounds: a replica sends its messages of a round once it has received all of the round before."""

    summary: ClassVar[str]

    @abstractmethod
    def rounds(self, replicas: int, size_bytes: int) -> tuple[tuple[Message, ...], ...]:
        """The messages of each round for `size_bytes` held by each of `replicas`; no rounds for a single replica."""


SYNCHRONISATIONS: Registry[Synchronisation] = Registry(
    "opmark.leaderboards.problem.rules.synchronisations", "SYNCHRONISATION", "synchronisation"
)
