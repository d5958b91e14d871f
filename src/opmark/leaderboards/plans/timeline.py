"""A training plan as a placement problem: every pass of every micro-batch, every message, the gradients, the update.

A device is a tensor-parallel group, beside it stands its network card. The passes follow the 1F1B schedule; between two
passes a group exchanges what DeepSpeed's pipeline engine exchanges there (deepspeed/runtime/pipe/schedule.py,
`TrainSchedule`): before a forward pass it sends and then receives, between a forward and a backward pass it receives
the gradient before it sends the activation. A message leaves when its sender reaches that point. `early` of it need
not wait for the receiver to ask, because buffers on the way take it; the rest does. Only the receiver waits.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.plans.bandwidths import Bandwidth, Bandwidths
from opmark.leaderboards.plans.layer_times import LayerTime, TrainedModel
from opmark.leaderboards.plans.training_plan import StageReplica, TrainingPlan
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.pipeline_schedule import DEFAULT_SCHEDULE, PIPELINE_SCHEDULES
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS

ENOUGH_BYTES = 2**60
# A link that takes no time.
_FREE = ((0, 0), (ENOUGH_BYTES, 0))
_FREE_RATE = 1e15
CARD = "card"
NS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCosts:
    """The costs of the steps of a plan; stage and replica index `passes`.

    `exchange_s` is what a group spends on each message that it receives, `output_bytes` the size of a message between
    stages, `gradient_bytes` those of a stage in all its GPUs, `tied_bytes` those that first and last stage share.
    """

    model: TrainedModel
    passes: Sequence[Sequence[LayerTime]]
    exchange_s: float
    early: float
    output_bytes: int
    gradient_bytes: Sequence[int]
    tied_bytes: int = 0


class Pass(NamedTuple):
    """A pass of one micro-batch at its place in the schedule."""

    tick: int
    backward: bool
    number: int

    def message(self, boundary: int, chain: int) -> str:
        """The name of the message for this pass, or from it, over the boundary after a stage."""
        return f"{'g' if self.backward else 'a'}{boundary}.{chain}.{self.number}"


@dataclass(slots=True)
class PlanTimeline:
    """The problem of one plan under construction; `transfers` False makes all messages free."""

    plan: TrainingPlan
    costs: PlanCosts
    bandwidths: Bandwidths
    transfers: bool = True
    units: list[Unit] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    order: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    messages: dict[tuple[int, int], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def made(self) -> tuple[Problem, Placement]:
        """The problem, and the placement that runs it as the plan says."""
        last: dict[tuple[int, int], str] = {}
        for chain in range(self.plan.chains):
            for stage in range(len(self.plan.stages)):
                last[stage, chain] = self._chain_stage(stage, chain)
        self._tied(last)
        for stage in range(len(self.plan.stages)):
            self._reduce_and_update(stage, last)
        problem = Problem(
            name=self.plan.path.stem,
            cluster=self._cluster(),
            units=tuple(self.units),
            tensors=tuple(self.tensors),
            memory_mode="sum",
        )
        orders = {device: row for device, row in self.order.items() if row}
        return problem, Placement(device=np.array(self.place, dtype=np.int64), order=orders)

    def _group(self, stage: int, chain: int) -> int:
        return 2 * (stage * self.plan.chains + chain)

    def _add(self, name: str, device: int, seconds: float, phase: str = "forward") -> str:
        card = device % 2 == 1
        self.units.append(Unit(name=name, exec_ns={CARD if card else "group": round(seconds * NS)}, phase=phase))
        self.place.append(device)
        if not card:
            self.order[device].append(len(self.units) - 1)
        return name

    def _signal(self, source: str, destination: str, size_bytes: int = 0) -> None:
        name = f"{source}>{destination}"
        self.tensors.append(Tensor(name=name, size_bytes=size_bytes, producer=source, consumers=(destination,)))

    def _chain_stage(self, stage: int, chain: int) -> str:
        """Everything that a group does until its last gradient is there; the name of the last thing."""
        device, time = self._group(stage, chain), self.costs.passes[stage][chain]
        before: Pass | None = None
        for one in self._passes(stage):
            self._exchange(stage, chain, before, one)
            phase, seconds = ("backward", time.backward_s) if one.backward else ("forward", time.forward_s)
            self._add(f"{phase[0]}{stage}.{chain}.{one.number}", device, seconds, phase)
            before = one
        self._exchange(stage, chain, before, None)
        return self.units[-1].name

    def _passes(self, stage: int) -> list[Pass]:
        count, stages = self.plan.micro_batches, len(self.plan.stages)
        tick, behind = PIPELINE_SCHEDULES.load(DEFAULT_SCHEDULE).tick, stages - stage
        return sorted(
            Pass(tick(number, count, backward=backward, behind=behind, stages=stages), backward, number)
            for backward in (False, True)
            for number in range(count)
        )

    def _exchange(self, stage: int, chain: int, before: Pass | None, after: Pass | None) -> None:
        adjacent = before is not None and after is not None and after.tick == before.tick + 1
        if adjacent and before and after and not before.backward and after.backward:
            self._receive(stage, chain, after)
            self._send(stage, chain, before)
        else:
            self._send(stage, chain, before)
            self._receive(stage, chain, after)

    def _send(self, stage: int, chain: int, done: Pass | None) -> None:
        """The early part leaves from the group through its card; the rest from the card, once the receiver asked."""
        if done is None or not 0 <= (to := stage - 1 if done.backward else stage + 1) < len(self.plan.stages):
            return
        device, message = self._group(stage, chain), done.message(min(stage, to), chain)
        size = self.costs.output_bytes if self.transfers else 0
        first = round(self.costs.early * size)
        sent = self._add(f"{message}.send", device, 0.0)
        self._signal(sent, f"{message}.receive", first)
        if size > first:
            rest = self._add(f"{message}.rest", device + 1, 0.0)
            self._signal(sent, rest)
            self._signal(f"{message}.ask", rest)
            self._signal(rest, f"{message}.receive", size - first)
        if size:
            whole = self._bandwidth(device, self._group(to, chain)).seconds(size)
            row = self.messages[device, self._group(to, chain)]
            row[first] = round(whole * NS * first / size)
            row[size - first] = round(whole * NS * (size - first) / size)

    def _receive(self, stage: int, chain: int, coming: Pass | None) -> None:
        if coming is None or not 0 <= (source := stage + 1 if coming.backward else stage - 1) < len(self.plan.stages):
            return
        device, message = self._group(stage, chain), coming.message(min(stage, source), chain)
        replica = self.plan.replicas[stage][chain]
        if self.transfers and self.costs.early < 1:
            self._add(f"{message}.ask", device, 0.0)
        gather = gather_s(replica, self.costs.output_bytes, self.bandwidths) + self.costs.exchange_s
        self._add(f"{message}.receive", device, gather if self.transfers else 0.0)

    def _tied(self, last: dict[tuple[int, int], str]) -> None:
        """First and last stage of each chain add up the gradients of the weight that they share."""
        ends = (0, len(self.plan.stages) - 1)
        if self.costs.tied_bytes and self.transfers and ends[1]:
            for chain in range(self.plan.chains):
                self._ring(f"tied.{chain}", [(end, chain) for end in ends], self.costs.tied_bytes, last)

    def _reduce_and_update(self, stage: int, last: dict[tuple[int, int], str]) -> None:
        members = [(stage, chain) for chain in range(self.plan.chains)]
        self._ring(f"gradients.{stage}", members, self.costs.gradient_bytes[stage] if self.transfers else 0, last)
        for chain in range(self.plan.chains):
            seconds = self.costs.passes[stage][chain].update_s
            self._add(f"u{stage}.{chain}", self._group(stage, chain), seconds, "update")

    def _ring(
        self, name: str, members: Sequence[tuple[int, int]], size_bytes: int, last: dict[tuple[int, int], str]
    ) -> None:
        """A ring all-reduce among groups; `last` names what each has done last, before and after."""
        rounds = SYNCHRONISATIONS.load("ring-all-reduce").rounds(len(members), size_bytes)
        for step, sent in enumerate(rounds):
            now = {
                place: self._add(f"{name}.{step}.{number}", self._group(*place), 0.0, "backward")
                for number, place in enumerate(members)
            }
            for source, destination, size in sent:
                self._signal(last[members[source]], now[members[destination]], size)
                pair = self._group(*members[source]), self._group(*members[destination])
                self.messages[pair][size] = round(self._bandwidth(*pair).seconds(size) * NS)
            last |= now

    def _bandwidth(self, source: int, destination: int) -> Bandwidth:
        ends = [self.plan.replicas[row][chain] for row, chain in map(self._place_of, (source, destination))]
        sender, receiver = ((one.zone, one.gpu, one.tensor_parallel) for one in ends)
        return self.bandwidths.between(sender, receiver)

    def _place_of(self, device: int) -> tuple[int, int]:
        return divmod(device // 2, self.plan.chains)

    def _cluster(self) -> Cluster:
        """Every group hands messages to its card at once; a card sends one message at a time."""
        names = [
            f"{stage}.{chain}{end}"
            for stage in range(len(self.plan.stages))
            for chain in range(self.plan.chains)
            for end in ("", ".card")
        ]
        devices = tuple(
            Device(name=name, type=CARD if number % 2 else "group", memory_bytes=ENOUGH_BYTES, provenance="imported")
            for number, name in enumerate(names)
        )
        links = [_link(names[group], names[group + 1]) for group in range(0, len(names), 2)]
        pairs = self.messages if self.transfers else self._neighbours()
        for source, destination in sorted({*pairs, *self._neighbours()}):
            rows = sorted((self.messages.get((source, destination)) or {}).items())
            points = tuple([(0, 0), *((size, ns) for size, ns in rows if size > 0)] if self.transfers else _FREE)
            card, group = names[source + 1], names[destination]
            rate = rows[-1][0] / max(rows[-1][1], 1) * NS if self.transfers and rows and rows[-1][0] else _FREE_RATE
            links.append(_link(card, group, rate=rate, points=points, port=card))
            links.append(_link(group, card))
        return Cluster(name=self.plan.path.stem, devices=devices, links=tuple(links))

    def _neighbours(self) -> list[tuple[int, int]]:
        groups = [
            (self._group(stage, chain), self._group(stage + 1, chain))
            for stage in range(len(self.plan.stages) - 1)
            for chain in range(self.plan.chains)
        ]
        rings = [
            (self._group(stage, chain), self._group(stage, (chain + 1) % self.plan.chains))
            for stage in range(len(self.plan.stages))
            for chain in range(self.plan.chains)
            if self.plan.chains > 1
        ]
        return [*groups, *((b, a) for a, b in groups), *rings]


def _link(
    source: str,
    destination: str,
    *,
    rate: float = _FREE_RATE,
    points: tuple[tuple[int, int], ...] = _FREE,
    port: str = "",
) -> Link:
    return Link(
        source=source, destination=destination, latency_ns=0, bandwidth_bytes_per_s=rate, points=points, port=port
    )


def gather_s(replica: StageReplica, size_bytes: int, bandwidths: Bandwidths) -> float:
    """The GPUs of a group each receive a part of a message and pass the parts around a ring."""
    degree = replica.tensor_parallel
    if degree == 1:
        return 0.0
    return (degree - 1) * bandwidths.within(replica.gpu, degree).seconds(size_bytes / degree)
