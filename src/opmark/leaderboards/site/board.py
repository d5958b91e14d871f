"""What the site shows of one track: its instances, and how every entry did on each of them."""

from dataclasses import dataclass

from opmark.leaderboards.problem.rules.objective import format_cost as shown
from opmark.pages.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A device of an instance's cluster; `bundle` is the predictor its costs came from, where the problem says so."""

    name: str
    type: str
    memory_bytes: int
    provenance: str
    slots: int = 1
    dispatch_ns: int = 0
    price_per_hour: float = 0.0
    bundle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One problem of a track. `bound` is proven, `best_known` frozen, `best_single` the best feasible single device.

    `facts` are further pairs for the reader, such as the source of the costs; `kinds` says of each kind of unit how
    many there are and which share of the time they take on their fastest devices.
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
    machines: tuple[Machine, ...] = ()
    kinds: tuple[tuple[str, int, float], ...] = ()

    @property
    def headroom(self) -> float | None:
        """What the best known solution saves over the best single device, as a fraction of the best known."""
        if self.best_single is None or not self.best_known:
            return None
        return self.best_single / self.best_known - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an entry did on one instance; an invalid one has a reason and no cost.

    `median` and `p95` are costs over draws of the predictors' errors, where the problem knows intervals.
    """

    instance: str
    cost: float | None
    reason: str = ""
    quality: float | None = None
    gain: float | None = None
    planning_s: float | None = None
    median: int | None = None
    p95: int | None = None
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A further column of the ranking, with a sentence that explains it."""

    name: str
    value: float | None
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the board. `low` and `high` are the score's 95 % interval; all entries have the same figures."""

    rank: int
    name: str
    score: float
    low: float
    high: float
    outcomes: tuple[Outcome, ...]
    description: str = ""
    figures: tuple[Figure, ...] = ()

    def outcome(self, instance: str) -> Outcome | None:
        """What this entry did on `instance`, if it was tried."""
        return next((outcome for outcome in self.outcomes if outcome.instance == instance), None)

    @property
    def valid(self) -> int:
        """How many instances it solved."""
        return sum(outcome.cost is not None for outcome in self.outcomes)


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
    note: str = ""

    def instance(self, name: str) -> Instance:
        """The instance called `name`."""
        return next(instance for instance in self.instances if instance.name == name)


def format_cost(cost: float | None, unit: str) -> str:
    """A whole cost of a problem that is shown in `unit`, with the prefix a person would choose; a dash without one."""
    return "–" if cost is None else shown(round(cost), unit)


def gap(outcome: Outcome, instance: Instance) -> float | None:
    """How far above the proven lower bound a cost is, as a fraction."""
    if outcome.cost is None or not instance.bound:
        return None
    return outcome.cost / instance.bound - 1


def rows_by_cost(board: Board, instance: str) -> list[tuple[Entry, Outcome]]:
    """The entries that tried `instance`, best first, invalid last."""
    tried: list[tuple[Entry, Outcome]] = []
    for entry in board.entries:
        outcome = entry.outcome(instance)
        if outcome is not None:
            tried.append((entry, outcome))
    return sorted(tried, key=_by_cost)


def _by_cost(row: tuple[Entry, Outcome]) -> tuple[float, int, str]:
    entry, outcome = row
    return (float("inf") if outcome.cost is None else outcome.cost, entry.rank, entry.name)
