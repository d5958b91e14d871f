"""The rules that a simulation follows: opsim 1, or a published model that it reproduces, one file each."""

from dataclasses import dataclass
from typing import Protocol

from opmark.core.registry import Registry, unknown_name
from opmark.leaderboards.problem.arrays import EventRules
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import Schedule


class DirectModel(Protocol):
    """A published cost model that needs no event simulation."""

    def schedule(self, problem: Problem, placement: Placement) -> Schedule:
        """The schedule of a placement, with the model's cost. Raises `PlacementError` for what it cannot run."""

    def costs(self, problem: Problem, devices: Integers) -> tuple[Integers, Integers]:
        """A cost per row of `devices` (rows x U), the largest int64 if it cannot run, and peak bytes (rows x D)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel(EventRules):
    """Switches of the event simulation, or a `model` that takes its place."""

    name: str
    summary: str
    model: DirectModel | None = None


PROFILES: Registry[PublishedModel] = Registry("opmark.leaderboards.simulator.published", "PROFILE", "profile")
OPSIM1 = PublishedModel(name="opsim1", summary="the rules of this leaderboard")


def profile_named(name: str) -> PublishedModel:
    """The published model called `name`, spelt with hyphens or underscores. Raises `UnknownNameError`."""
    spelt = name.replace("_", "-")
    if spelt not in PROFILES.names():
        raise unknown_name("profile", name, (known.replace("-", "_") for known in PROFILES.names()))
    return PROFILES.load(spelt)
