"""Executed placements as they are stored: `leaderboards/fidelity/<device>/<problem>.json`, one file per problem."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from opmark.core.canonical import canonical_json, plain
from opmark.core.files import write_sealed
from opmark.core.measurements.looks import STATES
from opmark.core.schema import load
from opmark.core.slug import Slug
from opmark.leaderboards.problem.placement import Solution

SCHEMA = 1
FOLDER = "fidelity"
PROBLEMS = "problems"
# A machine is never e^20 times as slow as usual.
_STATE_AT_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedPlacement:
    """One placement and its executions: `visits_ns` are the makespans of each visit, the visits some minutes apart.

    `placers` all gave this placement. `states` are the states of the machine beside each execution of each visit, as
    logarithms of the sentinels' readings over their usual ones; older records have none. The parts of measured minus
    predicted are those of the last visit. A placement that cannot be executed has a `reason` and no visits.
    """

    placers: tuple[str, ...]
    solution: Solution
    predicted_ns: int
    visits_ns: tuple[tuple[int, ...], ...] = ()
    states: tuple[tuple[tuple[float, ...], ...], ...] = ()
    outputs_equal: bool = True
    kernels_ns: int = 0
    transfers_ns: int = 0
    waiting_ns: int = 0
    slowdown_ns: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if any(not visit or min(visit) <= 0 for visit in self.visits_ns):
            raise ValueError("visits_ns: every visit needs executions, and each of them a positive time")
        if self.visits_ns and self.predicted_ns <= 0:
            raise ValueError(f"predicted_ns: must be positive, not {self.predicted_ns}")
        if self.states and [len(visit) for visit in self.states] != [len(visit) for visit in self.visits_ns]:
            raise ValueError("states: one is needed for each execution of visits_ns")
        if any(len(row) != len(STATES) for visit in self.states for row in visit):
            raise ValueError(f"states: each is a pair of {' and '.join(STATES)}")
        if any(abs(state) > _STATE_AT_MOST for visit in self.states for row in visit for state in row):
            raise ValueError(f"states: a logarithm lies between -{_STATE_AT_MOST} and {_STATE_AT_MOST}")

    @property
    def visit_medians_ns(self) -> list[float]:
        """The median makespan of each visit, as the clock told it."""
        return [median(visit) for visit in self.visits_ns]

    @property
    def counts(self) -> bool:
        """True if it was executed, with the outputs of the undivided network."""
        return bool(self.visits_ns) and self.outputs_equal


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityRecord:
    """All executed placements of one problem on one machine; `device` is the machine's name.

    `dimensions` are the sizes of the network, `problem_id` the hash of everything that decides its costs. `usual_ns`
    are the readings of each device's sentinels at the state of the labels, and `cut_costs` are the measured costs of
    a cut that the problem contains, by target.
    """

    device: Slug
    track: Slug
    problem: Slug
    problem_id: str
    model: str
    dimensions: Mapping[str, int] = field(default_factory=dict)
    placements: tuple[ExecutedPlacement, ...] = ()
    usual_ns: tuple[Mapping[str, float], ...] = ()
    cut_costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def executed(self) -> tuple[ExecutedPlacement, ...]:
        """The placements that count."""
        return tuple(one for one in self.placements if one.counts)


def record_path(leaderboards: Path, device: str, problem: str) -> Path:
    """The file of a problem's record."""
    return leaderboards / FOLDER / device / f"{problem}.json"


def problem_path(leaderboards: Path, device: str, problem: str) -> Path:
    """The file of an executed problem itself."""
    return leaderboards / FOLDER / device / PROBLEMS / f"{problem}.json.gz"


def save_record(record: FidelityRecord, path: Path) -> None:
    """Write `record` to `path`, whole or not at all; without indents, which would be half of the file."""
    write_sealed(path, canonical_json({"schema": SCHEMA, **plain(record)}) + "\n")


def load_record(path: Path) -> FidelityRecord:
    """The record in `path`. Raises `ContentError` naming the file and every wrong key."""
    return load(path, FidelityRecord, schema=SCHEMA, sealed=True)


def stored_records(leaderboards: Path) -> Iterator[FidelityRecord]:
    """Every record, by device and problem."""
    for path in sorted((leaderboards / FOLDER).glob("*/*.json")):
        yield load_record(path)
