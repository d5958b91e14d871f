"""The stop rule: the blocks that a trial still needs, and its verdict."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

from opmark.bench.clock.gpu import MOST_DISCARDED, unsteady_share
from opmark.bench.clock.protocol import MeasuringProtocol
from opmark.core.kernels.folding import RESOLUTION_NS, Folded, fold
from opmark.core.measurements.estimate import median
from opmark.core.measurements.measurement import LOW_QUALITY, OK
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, Block, Done, NetworkTrial, Trial


@dataclass(kw_only=True)
class OpenTrial:
    """A trial without a verdict. `wanted` is the number of blocks per process; `spent_s` is the time spent so far."""

    trial: Trial
    wanted: dict[int, int]
    blocks: list[Block] = field(default_factory=list)
    spent_s: float = 0.0
    extensions: int = 0

    @property
    def label(self) -> str:
        """The main label of its blocks."""
        return NETWORK if isinstance(self.trial, NetworkTrial) else HOT

    def owed(self, process: int) -> tuple[str, ...]:
        """The labels that `process` must measure in its next round."""
        taken = sum(1 for block in self.blocks if block.label == self.label and block.process == process)
        labels = [self.label] if taken < self.wanted.get(process, 0) else []
        # Rotated samples are taken once, in the first process, after its first hot block.
        if self.label == HOT and process == 0 and not any(block.label == ROTATED for block in self.blocks):
            labels.append(ROTATED)
        return tuple(labels)

    @property
    def processes_owing(self) -> list[int]:
        """The processes with blocks left to measure."""
        return [process for process in sorted({0, *self.wanted}) if self.owed(process)]


def begin(trial: Trial, blocks: Collection[Block], protocol: MeasuringProtocol) -> OpenTrial:
    """Open `trial` with the blocks of an earlier run."""
    wanted = dict.fromkeys(range(protocol.processes), protocol.blocks)
    return OpenTrial(trial=trial, wanted=wanted, blocks=list(blocks))


def judge(
    state: OpenTrial, protocol: MeasuringProtocol, *, overhead_ns: float, drifted: Collection[int], final: bool
) -> Done | None:
    """The verdict on a trial with all its blocks; None if it needs more, which are added to `wanted`.

    With `final`, no blocks are added: a trial with at least half of its blocks gets its verdict, and one with fewer
    stays open.
    """
    folded = fold(state.blocks, state.label, overhead_ns)
    planned = protocol.blocks * protocol.processes
    taken = sum(1 for block in state.blocks if block.label == state.label)
    if folded is None or (final and 2 * taken < planned):
        return None
    doubts = _doubts(state, folded, protocol, drifted)
    if not doubts:
        return Done(trial=state.trial.trial, status=OK)
    can_go_on = not final and state.spent_s < protocol.trial_limit_s and folded.latency_ns > RESOLUTION_NS
    if can_go_on and _extend(state, folded, protocol):
        return None
    return Done(trial=state.trial.trial, status=LOW_QUALITY, reason="; ".join(doubts))


def _doubts(state: OpenTrial, folded: Folded, protocol: MeasuringProtocol, drifted: Collection[int]) -> list[str]:
    doubts = []
    if folded.latency_ns <= RESOLUTION_NS:
        doubts.append("shorter than the clock can resolve")
    elif state.label == HOT and folded.samples >= 5 and folded.half_width > protocol.half_width:
        name = "median" if folded.label_quantile == 0.5 else f"{100 * folded.label_quantile:.0f}th percentile"
        doubts.append(f"{name} known to ±{folded.half_width:.1%} only")
    if not _agree(state, protocol):
        doubts.append(f"processes differ by {folded.variation or 0:.1%}")
    if folded.clean_fraction == 0:
        doubts.append("every sample was interrupted")
    moved = unsteady_share([mhz for block in state.blocks if block.label == state.label for mhz in block.clocks_mhz])
    if moved > MOST_DISCARDED:
        doubts.append(f"the device's clock differed from its median in {moved:.0%} of samples")
    off = sum(1 for block in state.blocks if block.round in drifted)
    if 2 * off > len(state.blocks):
        doubts.append("the machine drifted in most rounds, by its sentinels")
    return doubts


def _extend(state: OpenTrial, folded: Folded, protocol: MeasuringProtocol) -> bool:
    """Add a process if the processes disagree, else more blocks. Return False at the limit."""
    if not _agree(state, protocol):
        if len(state.wanted) >= protocol.most_processes:
            return False
        state.wanted[len(state.wanted)] = protocol.blocks
        return True
    if folded.half_width <= protocol.half_width or state.extensions + 1 >= protocol.extension:
        return False
    state.extensions += 1
    for process in state.wanted:
        state.wanted[process] += protocol.blocks
    return True


def _agree(state: OpenTrial, protocol: MeasuringProtocol) -> bool:
    """Return True if two processes have labels within `agreement` of each other, or if there is only one."""
    labels = []
    for process in sorted({block.process for block in state.blocks}):
        own = fold([block for block in state.blocks if block.process == process], state.label, 0.0)
        if own is not None:
            labels.append(own.latency_ns)
    if len(labels) < 2:
        return True
    ordered = sorted(labels)
    gaps = [high - low for low, high in pairwise(ordered)]
    return min(gaps) <= protocol.agreement * median(ordered)
