"""What the site shows of one track: its instances, and how every entry did on each of them."""

from dataclasses import dataclass

from opmark.core.units import format_ns
from opmark.leaderboards.pictures.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One problem of a track. `bound` is proven, `best_known` frozen, `best_single` the best feasible single device.

    `facts` are further pairs for the reader, such as the source of the costs.
    """

    name: str
    network: str
    cluster: str
    devices: int
    units: int
    unit: str = "ns"
    bound: float | None = None
    best_known: float | None = None
    best_single: float | None = None
    scored: bool = True
    provenance: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def headroom(self) -> float | None:
        """What the best known solution saves over the best single device, as a fraction of the best known."""
        if self.best_single is None or not self.best_known:
            return None
        return self.best_single / self.best_known - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What an entry did on one instance; an invalid one has a reason and no cost."""

    instance: str
    cost: float | None
    reason: str = ""
    quality: float | None = None
    gain: float | None = None
    planning_s: float | None = None
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the board. `low` and `high` are the score's 95 % interval."""

    rank: int
    name: str
    score: float
    low: float
    high: float
    attempts: tuple[Attempt, ...]
    description: str = ""

    def attempt(self, instance: str) -> Attempt | None:
        """What this entry did on `instance`, if it was tried."""
        return next((attempt for attempt in self.attempts if attempt.instance == instance), None)

    @property
    def valid(self) -> int:
        """How many instances it solved."""
        return sum(attempt.cost is not None for attempt in self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One track, ready to be shown. `name` is its folder, entries stand in order of rank."""

    name: str
    title: str
    description: str
    version: str
    semantics: str
    objective: str
    instances: tuple[Instance, ...]
    entries: tuple[Entry, ...]

    def instance(self, name: str) -> Instance:
        """The instance called `name`."""
        return next(instance for instance in self.instances if instance.name == name)


def format_cost(cost: float | None, unit: str) -> str:
    """A cost in its problem's unit; ns in the unit a person would choose."""
    if cost is None:
        return "–"
    return format_ns(cost) if unit == "ns" else f"{cost:.4g} {unit}"


def gap(attempt: Attempt, instance: Instance) -> float | None:
    """How far above the proven lower bound a cost is, as a fraction."""
    if attempt.cost is None or not instance.bound:
        return None
    return attempt.cost / instance.bound - 1


def rows_by_cost(board: Board, instance: str) -> list[tuple[Entry, Attempt]]:
    """The entries that tried `instance`, best first, invalid last."""
    tried: list[tuple[Entry, Attempt]] = []
    for entry in board.entries:
        attempt = entry.attempt(instance)
        if attempt is not None:
            tried.append((entry, attempt))
    return sorted(tried, key=_by_cost)


def _by_cost(row: tuple[Entry, Attempt]) -> tuple[float, int, str]:
    entry, attempt = row
    return (float("inf") if attempt.cost is None else attempt.cost, entry.rank, entry.name)
