"""Read the journal of a measuring run and fold it into measurements."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.hardware.link import LinkMeasurement, fold_link
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import fold_kernel, fold_network
from opmark.core.kernels.fusion import FusionMeasurement, fold_fusion
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.estimate import median
from opmark.core.measurements.host_clock import HostClock, host_clock, usual_ns
from opmark.core.measurements.lines import records_of
from opmark.core.measurements.measurement import Measurement, NetworkMeasurement
from opmark.core.measurements.records import (
    Block,
    Done,
    FusionRound,
    FusionTrial,
    Header,
    KernelTrial,
    LinkTrial,
    NetworkTrial,
    Overhead,
    Record,
    Sentinels,
    Session,
    Transfer,
    repeat_key,
    trial_key,
)

# Older records do not tell drift from a change of the clock: sentinels that differ by more than this drifted.
_OFF = 0.03
# No trial is repeated more often than this.
_REPEATS_AT_MOST = 64


@dataclass(frozen=True, kw_only=True)
class Journal:
    """Everything that a run wrote; measurements are folded from its blocks.

    Blocks of rejected rounds are left out. Every other block has the clock ratio of its round, relative to the usual
    sentinel readings of this journal or of those given to `beside`. `size_bytes` is the end of the last whole record.
    """

    path: Path
    header: Header
    sessions: tuple[Session, ...] = ()
    overheads: tuple[Overhead, ...] = ()
    trials: Mapping[str, KernelTrial | NetworkTrial] = field(default_factory=dict)
    blocks: Mapping[str, tuple[Block, ...]] = field(default_factory=dict)
    sentinels: tuple[Sentinels, ...] = ()
    done: Mapping[str, Done] = field(default_factory=dict)
    rounds: int = 0
    size_bytes: int = 0
    fusion_trials: Mapping[str, FusionTrial] = field(default_factory=dict)
    fusion_rounds: Mapping[str, tuple[FusionRound, ...]] = field(default_factory=dict)
    link_trials: Mapping[str, LinkTrial] = field(default_factory=dict)
    transfers: Mapping[str, tuple[Transfer, ...]] = field(default_factory=dict)

    @property
    def environment(self) -> Environment:
        """The machine. Raises `ContentError` if no run was started."""
        if not self.sessions:
            raise ContentError("nothing was measured yet", where=str(self.path))
        return self.sessions[0].environment

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """Every measured target, once."""
        return tuple({target.name: target for session in self.sessions for target in session.targets}.values())

    @cached_property
    def overhead_ns(self) -> dict[str, float]:
        """The fixed cost of a call on each target, in ns: the median over worker processes."""
        found: dict[str, list[float]] = defaultdict(list)
        for overhead in self.overheads:
            found[overhead.target].append(overhead.ns)
        return {target: median(values) for target, values in found.items()}

    @cached_property
    def drifted_rounds(self) -> frozenset[int]:
        """Rounds in which the machine drifted and which were accepted because no attempt was left."""
        marked = (item for item in self.sentinels if item.accepted and item.drift > 0)
        return frozenset(
            item.round for item in marked if item.clock_ratio is not None or self._clocks[item.round].off > _OFF
        )

    @cached_property
    def usual_ns(self) -> dict[str, dict[str, float]]:
        """The usual reading of each target's sentinels, in ns by sentinel."""
        return usual_of([self])

    def beside(self, usual: Mapping[str, Mapping[str, float]]) -> "Journal":
        """This journal with clock ratios relative to the `usual` readings, in ns by target and sentinel."""
        clocks = _clocks(self.sentinels, usual)
        blocks = {
            trial: tuple(
                at_clock(block, clocks[block.round].ratio) if block.round in clocks else block for block in items
            )
            for trial, items in self.blocks.items()
        }
        return replace(self, blocks=blocks)

    @cached_property
    def _clocks(self) -> dict[int, HostClock]:
        return _clocks(self.sentinels, self.usual_ns)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """One row per finished kernel trial, in the order of their first records."""
        return tuple(
            fold_kernel(
                trial,
                self.done[trial.trial],
                self.blocks.get(trial.trial, ()),
                overhead_ns=self.overhead_ns.get(trial.target, 0.0),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for trial in self.trials.values()
            if isinstance(trial, KernelTrial) and trial.trial in self.done
        )

    @cached_property
    def networks(self) -> tuple[NetworkMeasurement, ...]:
        """One row per finished network trial."""
        return tuple(
            fold_network(
                trial,
                self.done[trial.trial],
                self.blocks.get(trial.trial, ()),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for trial in self.trials.values()
            if isinstance(trial, NetworkTrial) and trial.trial in self.done
        )

    @cached_property
    def fusions(self) -> tuple[FusionMeasurement, ...]:
        """One row per finished pair of operators at one shape."""
        return tuple(
            fold_fusion(
                trial,
                self.done[key],
                self.fusion_rounds.get(key, ()),
                overhead_ns=self.overhead_ns.get(trial.target, 0.0),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for key, trial in self.fusion_trials.items()
            if key in self.done
        )

    @cached_property
    def links(self) -> tuple[LinkMeasurement, ...]:
        """One row per finished link."""
        return tuple(
            fold_link(
                trial,
                self.done[key],
                self.transfers.get(key, ()),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for key, trial in self.link_trials.items()
            if key in self.done
        )


def read_journal(path: Path) -> Journal:
    """Read the journal at `path`; an incomplete last line, left by a killed run, is ignored.

    Raises `ContentError` naming the file and the damaged line, or if the sessions ran on different machines.
    """
    records, size_bytes = read_records(path)
    if not records or not isinstance(records[0], Header):
        raise ContentError("not a journal: the first line is not its header", where=f"{path}:1")
    _check_trials(path, records)
    rejected = {record.round for record in records if isinstance(record, Sentinels) and not record.accepted}
    blocks: dict[str, list[Block]] = defaultdict(list)
    for record in records:
        if isinstance(record, Block) and record.round not in rejected:
            blocks[record.trial].append(record)
    rounds: dict[str, list[FusionRound]] = defaultdict(list)
    transfers: dict[str, list[Transfer]] = defaultdict(list)
    for record in records:
        if isinstance(record, FusionRound):
            rounds[record.trial].append(record)
        elif isinstance(record, Transfer):
            transfers[record.trial].append(record)
    sessions = tuple(record for record in records if isinstance(record, Session))
    _check_one_machine(path, sessions)
    found = Journal(
        path=path,
        header=records[0],
        sessions=sessions,
        overheads=tuple(record for record in records if isinstance(record, Overhead)),
        trials={record.trial: record for record in records if isinstance(record, KernelTrial | NetworkTrial)},
        blocks={trial: tuple(items) for trial, items in blocks.items()},
        sentinels=tuple(record for record in records if isinstance(record, Sentinels)),
        done={record.trial: record for record in records if isinstance(record, Done)},
        rounds=1 + max((record.round for record in records if isinstance(record, Block | Sentinels)), default=-1),
        size_bytes=size_bytes,
        fusion_trials={record.trial: record for record in records if isinstance(record, FusionTrial)},
        fusion_rounds={trial: tuple(items) for trial, items in rounds.items()},
        link_trials={record.trial: record for record in records if isinstance(record, LinkTrial)},
        transfers={trial: tuple(items) for trial, items in transfers.items()},
    )
    return found.beside(found.usual_ns)


def usual_of(journals: Iterable[Journal]) -> dict[str, dict[str, float]]:
    """The usual reading of each target's sentinels over all `journals`, in ns by sentinel.

    Labels of several journals are comparable only relative to one clock.
    """
    readings: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for journal in journals:
        for item in journal.sentinels:
            if item.accepted:
                readings[item.target].append(item.ns)
    return {target: usual_ns(found) for target, found in readings.items()}


def _clocks(sentinels: Sequence[Sentinels], usual: Mapping[str, Mapping[str, float]]) -> dict[int, HostClock]:
    return {item.round: host_clock(item.ns, usual.get(item.target, {})) for item in sentinels}


def at_clock(block: Block, ratio: float | None) -> Block:
    """`block` with the clock `ratio` of its round; a block by a device's own clock stays unchanged.

    Returns the same object if nothing changes: ratios are set when a journal is read, and again for a whole release.
    """
    if ratio is None or ratio == block.clock_ratio or block.enqueue_ns is not None:
        return block
    return replace(block, clock_ratio=ratio)


def read_records(path: Path) -> tuple[list[Record], int]:
    """Every whole record of `path` and their size in bytes. Raises `ContentError` naming file and line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ContentError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return records_of(path, content)


def _check_trials(path: Path, records: Sequence[Record]) -> None:
    """Refuse kernels under the key of another kernel, and samples of trials that were never announced."""
    targets: dict[str, dict[str, Target]] = defaultdict(dict)
    known: set[str] = set()
    for number, record in enumerate(records, start=1):
        if isinstance(record, Session):
            for target in record.targets:
                targets[target.name][target.id] = target
        elif isinstance(record, KernelTrial):
            firsts = [trial_key(target, record.kernel) for target in targets[record.target].values()]
            keys = (repeat_key(first, again) for first in firsts for again in range(_REPEATS_AT_MOST))
            if record.trial not in keys:
                raise ContentError(
                    f"trial {record.trial!r} is not the key of its kernel on {record.target}", where=f"{path}:{number}"
                )
            known.add(record.trial)
        elif isinstance(record, NetworkTrial | FusionTrial | LinkTrial):
            known.add(record.trial)
        elif isinstance(record, Block | Done | FusionRound | Transfer) and record.trial not in known:
            raise ContentError(f"no trial is called {record.trial!r} before this record", where=f"{path}:{number}")


def _check_one_machine(path: Path, sessions: Sequence[Session]) -> None:
    for number, session in enumerate(sessions[1:], start=2):
        differences = sessions[0].environment.differences(session.environment)
        if differences:
            name, (first, other) = next(iter(differences.items()))
            raise ContentError(
                f"session {number} ran on another machine: {name} is {other!r}, was {first!r}", where=str(path)
            )
