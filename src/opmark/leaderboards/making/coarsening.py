"""Coarsen a problem: join neighbouring units until few enough are left, without making a cycle.

Two rules keep the graph acyclic. A unit may join its only reader or its only maker. A unit on an even level (odd in
the next round) may join a unit on the level right above, while the other readers and makers between the two levels
stay as they are: the acyclic matching of Herrmann et al., "Multilevel algorithms for acyclic partitioning of directed
acyclic graphs", SIAM J. Sci. Comput. 41(4), 2019. Cheap units go first, and no unit grows far beyond its fair share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from opmark.leaderboards.making.merging import NamedSets, joined
from opmark.leaderboards.problem.fields import Unit
from opmark.leaderboards.problem.problem import Problem

# A unit may grow to this many times its fair share of the total; doubled whenever no pair fits any more.
_FAIR = 2.0
_Pair = tuple[str, str]


def coarsened(problem: Problem, units_at_most: int) -> Problem:
    """`problem` with at most `units_at_most` units, or as few as the rules allow; unchanged where it is small enough.

    Units of different phases, or with different sets of supporting device types, are never joined. Units of different
    colocation classes are joined only when no other pair is left; their classes then become one.
    """
    least = {unit.name: min(unit.exec_ns.values()) for unit in problem.units}
    total = sum(least.values())
    limit = _FAIR * total / max(1, units_at_most)
    state = _State(problem, least)
    state.merge(_counters(problem))
    state.merge(state.sinks())
    parity, idle, unite = 0, 0, False
    while len(state.cost) > units_at_most and idle < 2:
        room = len(state.cost) - units_at_most
        pairs = state.chain_pairs(limit, room, unite=unite) or state.level_pairs(limit, room, parity, unite=unite)
        parity = 1 - parity
        idle = 0 if pairs else idle + 1
        state.merge(pairs)
        if unite:
            state.merge(state.sinks())
        if idle == 2 and not unite:
            idle, unite = 0, True
        elif idle == 2 and limit < total:
            idle, limit = 0, 2 * limit
    units = tuple(replace(unit, colocation=state.class_of(unit.name)) for unit in problem.units)
    return joined(replace(problem, units=units), {unit.name: state.joined.name(unit.name) for unit in problem.units})


class _State:
    """The joined units; each keeps the name and the `cost` entry of its first member."""

    def __init__(self, problem: Problem, cost: Mapping[str, float]) -> None:
        self.cost = dict(cost)
        self.joined = NamedSets(self.cost)
        self._alike = {unit.name: _joinable_by(unit) for unit in problem.units}
        self._class = {unit.name: unit.colocation for unit in problem.units}
        self._classes = NamedSets(dict.fromkeys(self._class.values()))
        self._edges = [
            (tensor.producer, reader) for tensor in problem.tensors if tensor.producer for reader in tensor.consumers
        ]
        self._link()

    def class_of(self, name: str) -> str:
        """The current colocation class of a unit."""
        return self._classes.name(self._class[name])

    def sinks(self) -> list[_Pair]:
        """Units of one phase and class without readers: joining them is always safe (the updates of one layer)."""
        first: dict[tuple[object, str], str] = {}
        return [
            (first.setdefault((self._alike[name], self.class_of(name)), name), name)
            for name, readers in self._after.items()
            if self.class_of(name) and not readers
        ]

    def merge(self, pairs: Iterable[_Pair]) -> None:
        """Join each pair; the first unit keeps its name."""
        for one, other in pairs:
            first, second = self.joined.name(one), self.joined.name(other)
            if first != second:
                self.joined.merge(first, second)
                self.cost[first] += self.cost.pop(second)
                own, others = self.class_of(first), self.class_of(second)
                if own and others:
                    self._classes.merge(own, others)
                self._class[first] = own or others
        self._link()

    def chain_pairs(self, limit: float, room: int, *, unite: bool) -> list[_Pair]:
        """Pairs in which one unit is the other's only neighbour on that side."""
        found = [
            (maker, reader)
            for maker, readers in self._after.items()
            for reader in readers
            if (len(readers) == 1 or len(self._before[reader]) == 1) and self._may(maker, reader, limit, unite=unite)
        ]
        return self._matching(found, room, spread=False)

    def level_pairs(self, limit: float, room: int, parity: int, *, unite: bool) -> list[_Pair]:
        """Pairs on neighbouring levels, the lower level being of the given parity."""
        level: dict[str, int] = {}
        for name in TopologicalSorter(self._before).static_order():
            level[name] = max((level[before] + 1 for before in self._before[name]), default=0)
        found = [
            (maker, reader)
            for maker, readers in self._after.items()
            if level[maker] % 2 == parity
            for reader in readers
            if level[reader] == level[maker] + 1 and self._may(maker, reader, limit, unite=unite)
        ]
        return self._matching(found, room, spread=True)

    def _may(self, one: str, other: str, limit: float, *, unite: bool) -> bool:
        own, others = self.class_of(one), self.class_of(other)
        alike = self._alike[one] == self._alike[other] and (unite or own == others or not own or not others)
        return alike and self.cost[one] + self.cost[other] <= limit

    def _matching(self, pairs: list[_Pair], room: int, *, spread: bool) -> list[_Pair]:
        """The cheapest pairs that share no unit; with `spread`, also no pair next to another on its two levels."""
        pairs.sort(key=lambda pair: (self.cost[pair[0]] + self.cost[pair[1]], pair))
        taken: set[str] = set()
        chosen: list[_Pair] = []
        for maker, reader in pairs:
            if len(chosen) == room:
                break
            if maker in taken or reader in taken:
                continue
            chosen.append((maker, reader))
            taken |= {maker, reader}
            if spread:
                taken |= self._after[maker] | self._before[reader]
        return chosen

    def _link(self) -> None:
        self._before: dict[str, set[str]] = {name: set() for name in self.cost}
        self._after: dict[str, set[str]] = {name: set() for name in self.cost}
        for maker, reader in self._edges:
            first, second = self.joined.name(maker), self.joined.name(reader)
            if first != second:
                self._after[first].add(second)
                self._before[second].add(first)


def _counters(problem: Problem) -> list[_Pair]:
    """Units without any tensor, such as a layer's batch counter, each paired with the next unit that runs.

    An optimiser counts its steps before it updates; a normalisation counts its batches before it normalises.
    """
    with_tensors = {name for tensor in problem.tensors for name in (tensor.producer, *tensor.consumers)}
    pairs = []
    following: dict[object, str] = {}
    for unit in reversed(problem.units):
        if unit.name in with_tensors:
            following[_joinable_by(unit)] = unit.name
        elif _joinable_by(unit) in following:
            pairs.append((following[_joinable_by(unit)], unit.name))
    return pairs


def colocated_by_weight(problem: Problem) -> Problem:
    """`problem` with forward, backward and update of each trained weight in one colocation class.

    A class holds every reader of a weight that an update changes, and every producer of a gradient that the update
    reads. A problem without updates is returned unchanged.
    """
    units = {unit.name: unit for unit in problem.units}
    updates = {name for name, unit in units.items() if unit.phase == "update"}
    if not updates:
        return problem
    classes = NamedSets(units)
    first_reader: dict[str, str] = {}
    trained = {weight for name in updates for weight in units[name].weights}
    for name, unit in units.items():
        for weight in trained.intersection(unit.weights):
            classes.merge(first_reader.setdefault(weight, name), name)
    for tensor in problem.tensors:
        for reader in tensor.consumers:
            if tensor.producer and reader in updates:
                classes.merge(tensor.producer, reader)
    members: dict[str, list[str]] = {}
    for name in units:
        members.setdefault(classes.name(name), []).append(name)
    shared = [names for names in members.values() if len(names) > 1]
    class_of = {name: f"w{number}" for number, names in enumerate(shared) for name in names}
    return replace(
        problem,
        units=tuple(replace(unit, colocation=class_of.get(unit.name, unit.colocation)) for unit in problem.units),
    )


def _joinable_by(unit: Unit) -> tuple[str, frozenset[str]]:
    """The phase and device types that units must share to be joined."""
    return unit.phase, frozenset(unit.exec_ns)
