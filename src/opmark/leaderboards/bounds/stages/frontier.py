"""Is there any way to divide groups over stages so that no server is too busy? Dynamic programming over a frontier.

Groups are placed one after the other. What later groups still need to know of the earlier ones is their stage, where
they make a tensor that has not met all its readers, and the stages that such a tensor has been sent to. Two ways with
the same frontier differ only in their loads. Where there are too many, ways with similar loads are merged to one with
the least load of every server: it allows whatever they allow, so an empty table still proves that there is no way.
Kellerer, Pferschy, Pisinger, "Knapsack problems", 2004, section 3.4, trims lists of states alike; prices of servers
rule out ways whose remaining work no longer fits, like a surrogate constraint (Glover, Operations Research 13, 1965).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.prices import Floats
from opmark.leaderboards.bounds.stages.stage_loads import HOME, StageLoads
from opmark.leaderboards.problem.integers import Integers

Keys = npt.NDArray[np.uint64]
BITS = 63
# Cells of load that are told apart at first, per server; they grow by this factor until there are few enough ways.
CELLS, COARSER = 4096.0, 1.4
# So many times as many ways as asked for are too many, where frontiers alone tell them apart.
KEYS_AT_MOST = 10
# Sums of floating-point numbers may exceed a limit by this share.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Field:
    """Bits of a key: the stage of a group, or the stages that have a tensor."""

    shift: int
    bits: int

    def read(self, keys: Keys) -> npt.NDArray[np.int64]:
        mask = np.uint64((1 << self.bits) - 1)
        found: npt.NDArray[np.int64] = ((keys >> np.uint64(self.shift)) & mask).astype(np.int64)
        return found

    def cleared(self, keys: Keys) -> Keys:
        mask = np.uint64(((1 << self.bits) - 1) << self.shift)
        return keys & ~mask

    def written(self, keys: Keys, values: npt.NDArray[np.int64]) -> Keys:
        return self.cleared(keys) | (values.astype(np.uint64) << np.uint64(self.shift))


class Frontier:
    """The programming for one way to join devices to stages, in one order of the groups."""

    def __init__(self, loads: StageLoads, order: Sequence[int], prices: Floats) -> None:
        self._loads, self._used = loads, loads
        self._order = list(order)
        self._prices = prices
        self._place = {group: place for place, group in enumerate(self._order)}
        self._plan()

    def is_impossible(self, cost: int, *, ways_at_most: int) -> bool:
        """True if no way costs at most `cost`; False says nothing."""
        loads = self._loads
        cap = loads.rate * cost + loads.room
        # Servers that everything together cannot fill need no column.
        tight = np.flatnonzero(loads.most() > cap)
        used = self._used = loads.of_servers(tight)
        prices, cap = self._prices[:, tight], cap[tight]
        most = (prices @ cap) * (1 + ROUNDING)
        least = np.where(used.allowed[:, :, None], used.group @ prices.T, np.inf).min(axis=1)[self._order]
        # Per place, the priced work of the groups that follow.
        left = np.vstack([np.cumsum(least[::-1], axis=0)[::-1], np.zeros(len(prices))])[1:]
        keys = np.zeros(1, dtype=np.uint64)
        table = np.zeros((1, len(cap)), dtype=np.int64)
        cells = CELLS
        for place in range(len(self._order)):
            labels = np.flatnonzero(loads.allowed[self._order[place]]).tolist()
            if not labels:
                return True
            parts = [self._placed(keys, table, place, label) for label in labels]
            keys, table = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
            fits = (table <= cap).all(axis=1)
            keys, table = keys[fits], table[fits]
            fits = (table @ prices.T + left[place] <= most).all(axis=1)
            keys, table = keys[fits], table[fits]
            if not len(keys):
                return True
            keys, table, cells = _merged(keys, table, cap, ways_at_most, max(1.0, min(CELLS, cells * COARSER**2)))
            if len(keys) > KEYS_AT_MOST * ways_at_most:
                return False
        return False

    def _plan(self) -> None:
        """Bits for every stage and every tensor that a later group asks for; tensors that find none are left out."""
        loads, place = self._loads, self._place
        label_bits, mask_bits = max(1, (len(loads.stages) - 1).bit_length()), len(loads.stages)
        spans = []
        for number, tensor in enumerate(loads.tensors):
            members = [place[group] for group in tensor.readers] + (
                [place[tensor.producer]] if tensor.producer != HOME else []
            )
            weight = int(tensor.between.max(initial=0))
            spans.append((weight, number, min(members), max(members)))
        self.stage_of: dict[int, _Field] = {}
        self.sent_of: dict[int, _Field] = {}
        self.known: set[int] = set()
        taken: list[tuple[int, int, int, int]] = []  # shift, bits, first, last place
        for _, number, first, last in sorted(spans, key=lambda item: (-item[0], item[1])):
            tensor = loads.tensors[number]
            trial = list(taken)
            stage = sent = None
            if tensor.producer != HOME and last > place[tensor.producer]:
                stage = self._stage_field(tensor.producer, last, label_bits, trial)
            many = len(tensor.readers) + (tensor.output is not None) > 1
            if (many or first < place.get(tensor.producer, len(place))) and last > first:
                sent = _free(mask_bits, first, last, trial)
            missing = (tensor.producer != HOME and last > place[tensor.producer] and stage is None) or (
                (many or first < place.get(tensor.producer, len(place))) and last > first and sent is None
            )
            if missing:
                continue
            taken = trial
            self.known.add(number)
            if stage is not None:
                self.stage_of[tensor.producer] = stage
            if sent is not None:
                self.sent_of[number] = sent
        self._deaths(spans)

    def _stage_field(self, group: int, last: int, bits: int, trial: list[tuple[int, int, int, int]]) -> _Field | None:
        """The field of a group, which lives until the last reader of its tensors."""
        born = self._place[group]
        old = self.stage_of.get(group)
        if old is not None:
            index = next(i for i, one in enumerate(trial) if one[0] == old.shift and one[2] == born)
            shift, wide, first, until = trial[index]
            if last <= until:
                return old
            clash = any(
                one[0] < shift + wide and shift < one[0] + one[1] and one[2] <= last and first <= one[3]
                for i, one in enumerate(trial)
                if i != index
            )
            if clash:
                return None
            trial[index] = (shift, wide, first, last)
            return old
        return _free(bits, born, last, trial)

    def _deaths(self, spans: Sequence[tuple[int, int, int, int]]) -> None:
        """Per place, the tensors that meet a group there, and the fields that nobody reads any more afterwards."""
        self.met: list[list[int]] = [[] for _ in self._order]
        self.dead: list[list[_Field]] = [[] for _ in self._order]
        stage_ends: dict[int, int] = {}
        for _, number, _, last in spans:
            if number not in self.known:
                continue
            tensor = self._loads.tensors[number]
            for group in {*tensor.readers, tensor.producer} - {HOME}:
                self.met[self._place[group]].append(number)
            if tensor.producer in self.stage_of:
                stage_ends[tensor.producer] = max(stage_ends.get(tensor.producer, 0), last)
            if number in self.sent_of:
                self.dead[last].append(self.sent_of[number])
        for group, last in stage_ends.items():
            self.dead[last].append(self.stage_of[group])

    def _placed(self, keys: Keys, table: Integers, place: int, label: int) -> tuple[Keys, Integers]:
        """All ways with the group of a place in one stage."""
        loads, group = self._used, self._order[place]
        table = table + loads.group[group, label]
        if group in self.stage_of:
            keys = self.stage_of[group].written(keys, np.full(len(keys), label))
        for number in self.met[place]:
            tensor, sent = loads.tensors[number], self.sent_of.get(number)
            mask = sent.read(keys) if sent is not None else np.zeros(len(keys), dtype=np.int64)
            if tensor.producer == group:
                mask = self._made(tensor.between, tensor.output, table, mask, label)
            elif tensor.producer == HOME:
                new = (mask >> label) & 1 == 0
                table[new] += tensor.between[label]
                mask |= 1 << label
            elif self._place[tensor.producer] < place:
                source = self.stage_of[tensor.producer].read(keys)
                new = ((mask >> label) & 1 == 0) & (source != label)
                table[new] += tensor.between[source[new], label]
                mask = np.where(source != label, mask | (1 << label), mask)
            else:
                mask |= 1 << label
            if sent is not None:
                keys = sent.written(keys, mask)
        for field in self.dead[place]:
            keys = field.cleared(keys)
        return keys, table

    def _made(
        self,
        between: Integers,
        output: Integers | None,
        table: Integers,
        mask: npt.NDArray[np.int64],
        label: int,
    ) -> npt.NDArray[np.int64]:
        """The producer comes: readers that stand elsewhere already get the tensor, and the host its output."""
        mask = mask & ~(1 << label)
        for other in range(len(self._loads.stages)):
            table[(mask >> other) & 1 == 1] += between[label, other]
        if output is not None:
            host = self._loads.host
            table[(mask >> host) & 1 == 0] += output[label]
            mask = mask | (1 << host) if host != label else mask
        return mask


def _free(bits: int, first: int, last: int, taken: list[tuple[int, int, int, int]]) -> _Field | None:
    """The lowest bits that nothing else uses from place `first` to `last`; taken from then on."""
    used = sorted((shift, wide) for shift, wide, begin, end in taken if begin <= last and first <= end)
    shift = 0
    for start, wide in used:
        if start >= shift + bits:
            break
        shift = max(shift, start + wide)
    if shift + bits > BITS:
        return None
    taken.append((shift, bits, first, last))
    return _Field(shift, bits)


def _merged(keys: Keys, table: Integers, cap: Integers, most: int, cells: float) -> tuple[Keys, Integers, float]:
    """Ways of one key and of one cell of loads as one way with the least of every load; the cells that suffice."""
    while True:
        label = (keys * np.uint64(0x9E3779B97F4A7C15)) ^ (keys >> np.uint64(29))
        columns = (table * (cells / np.maximum(cap, 1))).astype(np.uint64)
        for number in range(table.shape[1]):
            label = (label ^ columns[:, number]) * np.uint64(0x9E3779B97F4A7C15)
            label ^= label >> np.uint64(31)
        order = np.lexsort((label, keys))
        keys, table, label = keys[order], table[order], label[order]
        first = np.flatnonzero(np.concatenate([[True], (keys[1:] != keys[:-1]) | (label[1:] != label[:-1])]))
        table = np.minimum.reduceat(table, first, axis=0)
        keys = keys[first]
        if len(keys) <= most or cells < 1:
            return keys, table, cells
        cells /= COARSER
