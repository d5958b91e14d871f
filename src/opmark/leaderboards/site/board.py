"""The data that the site shows of one track: its instances, and the outcome of every entry on each."""

from dataclasses import dataclass

from opmark.leaderboards.problem.rules.objective import format_cost as shown
from opmark.leaderboards.search.placer import Paper
from opmark.pages.gantt import GanttTimeline

# Where an entry comes from.
OURS, PUBLISHED, BASELINE, SUBMITTED = "OpMark", "published", "baseline", "submitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardDevice:
    """A device of an instance's cluster; `bundle` is the predictor of its costs, where the problem names it."""

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

    `costs_from` is the least certain source of its devices' costs. `facts` are further pairs to show. `kinds` are
    (kind, number of units, share of the time on their fastest devices).
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
    costs_from: str = ""
    provenance: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    machines: tuple[BoardDevice, ...] = ()
    kinds: tuple[tuple[str, int, float], ...] = ()

    @property
    def headroom(self) -> float | None:
        """The extra cost of the best single device over the best known cost, as a fraction of the latter."""
        if self.best_single is None or not self.best_known:
            return None
        return self.best_single / self.best_known - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an entry on one instance; an invalid one has a reason and no cost.

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
    timeline: GanttTimeline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A further column of the ranking, with its explanation."""

    name: str
    value: float | None
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardEntry:
    """A row of the board. `low` and `high` are the score's 95 % interval; all entries have the same figures.

    `origin` is `OURS`, `PUBLISHED`, `BASELINE` or `SUBMITTED`. A published algorithm has a `paper`, and a submission
    the day of its signature (`submitted`, such as 2026-11-21).
    An entry that `recalls` answers is clearly better on stored instances than on those drawn for it.
    """

    rank: int
    name: str
    score: float
    low: float
    high: float
    outcomes: tuple[Outcome, ...]
    description: str = ""
    figures: tuple[Figure, ...] = ()
    origin: str = SUBMITTED
    paper: Paper | None = None
    submitted: str = ""
    recalls: bool = False

    def outcome(self, instance: str) -> Outcome | None:
        """The outcome on `instance`, None where the entry was not tried."""
        return next((outcome for outcome in self.outcomes if outcome.instance == instance), None)

    @property
    def valid(self) -> int:
        """The number of instances with a valid solution."""
        return sum(outcome.cost is not None for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One track, ready to be shown. `name` is its folder, `objective` lists those of its problems.

    Entries are in order of rank.
    """

    name: str
    title: str
    description: str
    version: str
    semantics: str
    objective: str
    instances: tuple[Instance, ...]
    entries: tuple[BoardEntry, ...]
    note: str = ""

    def instance(self, name: str) -> Instance:
        """The instance called `name`."""
        return next(instance for instance in self.instances if instance.name == name)


def format_cost(cost: float | None, unit: str) -> str:
    """A cost of a problem whose unit is `unit`, with a readable prefix; a dash for None."""
    return "–" if cost is None else shown(round(cost), unit)


def gap(outcome: Outcome, instance: Instance) -> float | None:
    """The distance of a cost to the proven lower bound, as a fraction of the bound."""
    if outcome.cost is None or not instance.bound:
        return None
    return outcome.cost / instance.bound - 1


def rows_by_cost(board: Board, instance: str) -> list[tuple[BoardEntry, Outcome]]:
    """The entries that were tried on `instance`: best first, invalid last."""
    tried: list[tuple[BoardEntry, Outcome]] = []
    for entry in board.entries:
        outcome = entry.outcome(instance)
        if outcome is not None:
            tried.append((entry, outcome))
    return sorted(tried, key=_by_cost)


def _by_cost(row: tuple[BoardEntry, Outcome]) -> tuple[float, int, str]:
    entry, outcome = row
    return (float("inf") if outcome.cost is None else outcome.cost, entry.rank, entry.name)
