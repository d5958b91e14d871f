"""How replicas of a unit agree on a gradient: rounds of messages; one file of `synchronisations` per method."""

from abc import ABC, abstractmethod
from typing import ClassVar

from opmark.core.registry import Registry

# (sender, receiver, bytes), replicas by position.
Message = tuple[int, int, int]


class Synchronisation(ABC):
    """A replica sends what it has to send in a round once it has received everything of the round before."""

    summary: ClassVar[str]

    @abstractmethod
    def rounds(self, replicas: int, size_bytes: int) -> tuple[tuple[Message, ...], ...]:
        """The messages of each round for `size_bytes` held by each of `replicas`; none for a single one."""


SYNCHRONISATIONS: Registry[Synchronisation] = Registry(
    "opmark.leaderboards.problem.rules.synchronisations", "SYNCHRONISATION", "synchronisation"
)
