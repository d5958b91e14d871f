"""Read the journal of a measuring run and fold it into measurements."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from opmark.core.errors import ContentError
from opmark.core.hardware.link import LinkMeasurement, fold_link
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import TrialLabels, fold_kernel, fold_network, look_of
from opmark.core.kernels.fusion import FusionMeasurement, fold_fusion
from opmark.core.measurements.calm_readings import calm_and_fastest_readings, is_calm
from opmark.core.measurements.counted_blocks import counted_blocks
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.estimate import median
from opmark.core.measurements.labelling import (
    HOT_EFFECT,
    LASTING_EFFECT,
    ROTATED_FAST,
    ROTATED_SHARED,
    Label,
    labels_of,
)
from opmark.core.measurements.lines import records_of
from opmark.core.measurements.looks import FAST
from opmark.core.measurements.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.core.measurements.own_work import beside_own_work
from opmark.core.measurements.records import (
    HOT,
    LABELS,
    NETWORK,
    ROTATED,
    Block,
    CorunTrial,
    CorunTurns,
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
    Trial,
    repeat_key,
    trial_key,
)
from opmark.core.reading import LARGE_BYTES, PACKED, read_content

_Row = TypeVar("_Row", Measurement, NetworkMeasurement, FusionMeasurement, LinkMeasurement)
# No trial is repeated more often than this.
_REPEATS_AT_MOST = 64


@dataclass(frozen=True, kw_only=True)
class Journal:
    """Everything that a run wrote; measurements are folded from its blocks.

    Labels are told at the calm readings of this journal's sentinels, or at those given to `beside`. Blocks that
    do not count are left out (`counted_blocks`). `size_bytes` is the end of the last whole record.
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
    reference: Mapping[str, Mapping[str, float]] | None = None

    @property
    def name(self) -> str:
        """The name by which rows call this journal: of its file, without the ending of a packed one."""
        return self.path.name.removesuffix(PACKED)

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

    @property
    def calm_ns(self) -> dict[str, dict[str, float]]:
        """The calm readings of each target's sentinels, in ns by sentinel."""
        return self._calm_and_fastest_ns[0]

    @property
    def fastest_ns(self) -> dict[str, dict[str, float]]:
        """The fastest readings of each target's sentinels, in ns by sentinel, also of a machine that is seldom calm."""
        return self._calm_and_fastest_ns[1]

    @cached_property
    def _calm_and_fastest_ns(self) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
        return calm_and_fastest_of([self])

    def beside(self, calm: Mapping[str, Mapping[str, float]]) -> "Journal":
        """This journal with labels at the `calm` readings, in ns by target and sentinel."""
        return replace(self, reference=calm)

    def grown(self, trials: Iterable[Trial], blocks: Mapping[str, Sequence[Block]]) -> "Journal":
        """This journal with more `trials`, and with these `blocks` in place of its own of the same trials."""
        known = {**self.trials, **{trial.trial: trial for trial in trials}}
        return replace(self, trials=known, blocks={**self.blocks, **{key: tuple(own) for key, own in blocks.items()}})

    @cached_property
    def labels(self) -> dict[str, TrialLabels]:
        """The labels of every trial that was measured, finished or not."""
        return labels_of_trials(
            self.trials,
            self.blocks,
            calm=self.calm_ns if self.reference is None else self.reference,
            rounds={item.round: item.ns for item in self.sentinels},
            overhead_ns=self.overhead_ns,
        )

    @cached_property
    def measured(self) -> frozenset[str]:
        """The trials with a row: those with a label, and those that could not be measured."""
        lost = {key for key, done in self.done.items() if done.status not in USABLE}
        return frozenset({*lost, *self.labels} & self.trials.keys())

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """One row per kernel trial that was measured, in the order of their first records."""
        rows = {
            trial.trial: fold_kernel(
                trial,
                self.done.get(trial.trial),
                self.labels.get(trial.trial),
                overhead_ns=self.overhead_ns.get(trial.target, 0.0),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for trial in self.trials.values()
            if isinstance(trial, KernelTrial) and trial.trial in self.measured
        }
        return tuple(self._placed(trial, row) for trial, row in rows.items())

    @cached_property
    def networks(self) -> tuple[NetworkMeasurement, ...]:
        """One row per network trial that was measured."""
        rows = {
            trial.trial: fold_network(
                trial,
                self.done.get(trial.trial),
                self.labels.get(trial.trial),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for trial in self.trials.values()
            if isinstance(trial, NetworkTrial) and trial.trial in self.measured
        }
        return tuple(self._placed(trial, row) for trial, row in rows.items())

    @cached_property
    def fusions(self) -> tuple[FusionMeasurement, ...]:
        """One row per finished pair of operators at one shape."""
        rows = {
            key: fold_fusion(
                trial,
                self.done[key],
                self.fusion_rounds.get(key, ()),
                overhead_ns=self.overhead_ns.get(trial.target, 0.0),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for key, trial in self.fusion_trials.items()
            if key in self.done
        }
        return tuple(self._placed(trial, row) for trial, row in rows.items())

    @cached_property
    def links(self) -> tuple[LinkMeasurement, ...]:
        """One row per finished link."""
        rows = {
            key: fold_link(
                trial,
                self.done[key],
                self.transfers.get(key, ()),
                suite=self.header.suite,
                environment_id=self.environment.id,
            )
            for key, trial in self.link_trials.items()
            if key in self.done
        }
        return tuple(self._placed(trial, row) for trial, row in rows.items())

    def _placed(self, trial: str, row: _Row) -> _Row:
        """`row` with the name of this journal and the time of its first look."""
        times = [block.at_s for block in self.blocks.get(trial, ()) if block.at_s is not None]
        first = datetime.fromtimestamp(min(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else None
        return replace(row, journal=self.name, measured_at=first)


def read_journal(path: Path) -> Journal:
    """Read the journal at `path`; an incomplete last line, left by a killed run, is ignored.

    Raises `ContentError` naming the file and the damaged line, or if the sessions ran on different machines.
    """
    records, size_bytes = read_records(path)
    if not records or not isinstance(records[0], Header):
        raise ContentError("not a journal: the first line is not its header", where=f"{path}:1")
    _check_trials(path, records)
    blocks: dict[str, list[Block]] = defaultdict(list)
    for block in counted_blocks(records):
        blocks[block.trial].append(block)
    rounds: dict[str, list[FusionRound]] = defaultdict(list)
    transfers: dict[str, list[Transfer]] = defaultdict(list)
    for record in records:
        if isinstance(record, FusionRound):
            rounds[record.trial].append(record)
        elif isinstance(record, Transfer):
            transfers[record.trial].append(record)
    sessions = tuple(record for record in records if isinstance(record, Session))
    _check_one_machine(path, sessions)
    return Journal(
        path=path,
        header=records[0],
        sessions=sessions,
        overheads=tuple(record for record in records if isinstance(record, Overhead)),
        trials={record.trial: record for record in records if isinstance(record, KernelTrial | NetworkTrial)},
        blocks={trial: tuple(items) for trial, items in blocks.items()},
        sentinels=tuple(record for record in records if isinstance(record, Sentinels)),
        done=_ends(records),
        rounds=1 + max((record.round for record in records if isinstance(record, Block | Sentinels)), default=-1),
        size_bytes=size_bytes,
        fusion_trials={record.trial: record for record in records if isinstance(record, FusionTrial)},
        fusion_rounds={trial: tuple(items) for trial, items in rounds.items()},
        link_trials={record.trial: record for record in records if isinstance(record, LinkTrial)},
        transfers={trial: tuple(items) for trial, items in transfers.items()},
    )


def _ends(records: Iterable[Record]) -> dict[str, Done]:
    """The ends of trials: one that failed and was measured later has none."""
    found: dict[str, Done] = {}
    for record in records:
        if isinstance(record, Done):
            found[record.trial] = record
        elif isinstance(record, Block) and record.trial in found and found[record.trial].status not in USABLE:
            del found[record.trial]
    return found


def calm_of(journals: Iterable[Journal]) -> dict[str, dict[str, float]]:
    """The calm readings of each target's sentinels over all `journals`, as `calm_readings` gives them.

    Labels of several journals are comparable only at one state.
    """
    return calm_and_fastest_of(journals)[0]


def calm_and_fastest_of(
    journals: Iterable[Journal],
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """The same, and the fastest readings, as `calm_and_fastest_readings` gives them."""
    others: dict[str, list[tuple[str, float]]] = defaultdict(list)
    beside: dict[str, list[Block]] = defaultdict(list)
    for journal in journals:
        for item in journal.sentinels:
            if item.accepted:
                others[item.target] += item.ns.items()
        for key, blocks in journal.blocks.items():
            beside[journal.trials[key].target] += blocks
    found = {target: calm_and_fastest_readings(beside[target], others[target]) for target in {**others, **beside}}
    calm, fastest = ({target: both[which] for target, both in found.items() if both[which]} for which in (0, 1))
    return calm, fastest


def labels_of_trials(
    trials: Mapping[str, KernelTrial | NetworkTrial],
    blocks: Mapping[str, Sequence[Block]],
    *,
    calm: Mapping[str, Mapping[str, float]],
    rounds: Mapping[int, Mapping[str, float]],
    overhead_ns: Mapping[str, float],
) -> dict[str, TrialLabels]:
    """The labels of all trials with a main label; those of one kind on one target help each other."""
    labels: dict[str, dict[str, Label]] = defaultdict(dict)
    for target in sorted({trials[key].target for key in blocks if key in trials}):
        own = [key for key in blocks if key in trials and trials[key].target == target]
        told_at = calm.get(target, {})
        # Readings a second away do not show calm samples.
        at_calm = is_calm((block for key in own for block in blocks[key]), told_at)
        for which in LABELS:
            looks = {
                key: [
                    look_of(block, told_at, rounds.get(block.round), overhead_ns.get(target, 0.0), calm=at_calm)
                    for block in blocks[key]
                    if block.label == which
                ]
                for key in own
            }
            groups = {key: _group(trials[key]) for key in own}
            if at_calm:
                looks, beyond = beside_own_work(looks, groups)
                groups = beyond if which == HOT else groups
            told = labels_of(
                looks,
                groups,
                lasting=HOT_EFFECT if which == HOT else LASTING_EFFECT,
                calm=at_calm,
                shared=ROTATED_SHARED if which == ROTATED else 0.0,
                fast=ROTATED_FAST if which == ROTATED else FAST,
            )
            for key, found in told.items():
                labels[key][which] = found
    return {
        key: TrialLabels(labels=found, blocks=blocks[key])
        for key, found in labels.items()
        if HOT in found or NETWORK in found
    }


def _group(trial: KernelTrial | NetworkTrial) -> str:
    return trial.kernel.kind if isinstance(trial, KernelTrial) else NETWORK


def read_records(path: Path) -> tuple[list[Record], int]:
    """Every whole record of `path`, which may be packed, and their size in bytes.

    Raises `ContentError` naming file and line.
    """
    return records_of(path, read_content(path, at_most=LARGE_BYTES))


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
        elif isinstance(record, NetworkTrial | FusionTrial | LinkTrial | CorunTrial):
            known.add(record.trial)
        elif isinstance(record, Block | Done | FusionRound | Transfer | CorunTurns) and record.trial not in known:
            raise ContentError(f"no trial is called {record.trial!r} before this record", where=f"{path}:{number}")


def _check_one_machine(path: Path, sessions: Sequence[Session]) -> None:
    for number, session in enumerate(sessions[1:], start=2):
        differences = sessions[0].environment.differences(session.environment)
        if differences:
            name, (first, other) = next(iter(differences.items()))
            raise ContentError(
                f"session {number} ran on another machine: {name} is {other!r}, was {first!r}", where=str(path)
            )
