"""The interface of what runs on another core while a kernel is timed."""

from dataclasses import dataclass
from typing import Any, Protocol

from opmark.core.kernels.kernel import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourWork:
    """A stressor by name, or a kernel that is called without a pause."""

    stressor: str = ""
    kernel: Kernel | None = None

    def content(self) -> dict[str, Any]:
        """This work as JSON types."""
        return {"stressor": self.stressor, "kernel": None if self.kernel is None else self.kernel.content()}

    @classmethod
    def of(cls, content: dict[str, Any]) -> "NeighbourWork":
        """The work that `content` writes down."""
        kernel = content["kernel"]
        return cls(
            stressor=content["stressor"],
            kernel=None if kernel is None else Kernel.of(kernel["kind"], kernel["parameters"]),
        )


class Neighbour(Protocol):
    """Work beside a kernel: loaded once, then running and resting in turns."""

    def load(self, work: NeighbourWork) -> None:
        """Prepare `work`. Raises `MeasurementError` if it cannot be run."""
        ...

    def go(self) -> None:
        """Let it run, and return when it does."""
        ...

    def rest(self) -> None:
        """Let it rest, and return when it does."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...
