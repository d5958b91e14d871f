"""Which rules a simulation follows: opsim 1, or a published model that it can reproduce, one file each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from opmark.core.registry import Registry, unknown_name

if TYPE_CHECKING:
    from opmark.leaderboards.problem.integers import Integers
    from opmark.leaderboards.problem.placement import Placement
    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.simulator.simulate import Schedule


class Model(Protocol):
    """A published cost model that needs no event simulation."""

    def schedule(self, problem: "Problem", placement: "Placement") -> "Schedule":
        """When everything would run, with the model's cost. Raises `PlacementError` for what it cannot run."""

    def costs(self, problem: "Problem", devices: "Integers") -> "tuple[Integers, Integers]":
        """A cost per row of `devices` (rows x U), the largest int64 where it cannot run, and peak bytes (rows x D)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Switches of the event simulation, or a `model` that takes its place.

    `contention` makes a link serve one transfer at a time; without it ports are infinite and copies never block.
    `half_duplex` gives every device one port that sends or receives. `multicast` sends a tensor once, to all its
    readers, over one bus per source. `fifo` starts ready units in the order in which they became ready.
    """

    name: str
    summary: str
    contention: bool = True
    half_duplex: bool = False
    multicast: bool = False
    fifo: bool = False
    model: Model | None = None


PROFILES: Registry[Profile] = Registry("opmark.leaderboards.simulator.published", "PROFILE", "profile")
OPSIM1 = Profile(name="opsim1", summary="the rules of this leaderboard")


def profile_named(name: str) -> Profile:
    """The profile called `name`, spelt with hyphens or underscores. Raises `UnknownNameError`."""
    spelt = name.replace("_", "-")
    if spelt not in PROFILES.names():
        raise unknown_name("profile", name, (known.replace("-", "_") for known in PROFILES.names()))
    return PROFILES.load(spelt)
