"""Fewer, larger units: neighbours are joined until at most so many are left, and the graph stays without cycles.

Two ways of joining keep it so. A unit joins the only one it hands on to, or the only one it reads from. And a unit of
an even (in the next round: odd) level joins one of the level right above it, while the other readers and makers between
the two stay as they are: the acyclic matching of Herrmann et al., "Multilevel algorithms for acyclic partitioning of
directed acyclic graphs", SIAM J. Sci. Comput. 41(4), 2019. Cheap units go first, and none grows far beyond its share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from opmark.leaderboards.making.merging import joined
from opmark.leaderboards.problem.problem import Problem, Unit

# A unit may grow to this many times its fair share of the whole; doubled whenever nothing fits any more.
_FAIR = 2.0


def coarsened(problem: Problem, units_at_most: int) -> Problem:
    """`problem` with at most so many units, or as few as can be had; itself where it is small enough.

    Units of different phases, or of different device types that can run them, stay apart; those of different
    colocation classes as long as others can be joined, then the classes become one.
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
    return joined(replace(problem, units=units), {unit.name: state.find(unit.name) for unit in problem.units})


class _State:
    """The joined units, by the name of the one that stands for them."""

    def __init__(self, problem: Problem, cost: Mapping[str, float]) -> None:
        self.cost = dict(cost)
        self._parent = {unit.name: unit.name for unit in problem.units}
        self._alike = {unit.name: _nature(unit) for unit in problem.units}
        self._class = {unit.name: unit.colocation for unit in problem.units}
        self._united: dict[str, str] = {}
        self._edges = [
            (tensor.producer, reader) for tensor in problem.tensors if tensor.producer for reader in tensor.consumers
        ]
        self._link()

    def find(self, name: str) -> str:
        """The unit that stands for `name`."""
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def class_of(self, name: str) -> str:
        """The colocation class that a unit is in by now."""
        found = self._class[name]
        while found in self._united:
            found = self._united[found]
        return found

    def sinks(self) -> list[tuple[str, str]]:
        """Units of one phase and class that nobody waits for: they can always be one, as the updates of one layer."""
        first: dict[tuple[object, str], str] = {}
        return [
            (first.setdefault((self._alike[name], self.class_of(name)), name), name)
            for name, readers in self._after.items()
            if self.class_of(name) and not readers
        ]

    def merge(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Join each pair; the first keeps its name."""
        for one, other in pairs:
            first, second = self.find(one), self.find(other)
            if first != second:
                self._parent[second] = first
                self.cost[first] += self.cost.pop(second)
                own, others = self.class_of(first), self.class_of(second)
                if own and others and own != others:
                    self._united[others] = own
                self._class[first] = own or others
        self._link()

    def chain_pairs(self, limit: float, room: int, *, unite: bool) -> list[tuple[str, str]]:
        """Pairs of which one is the other's only neighbour on that side."""
        found = [
            (maker, reader)
            for maker, readers in self._after.items()
            for reader in readers
            if (len(readers) == 1 or len(self._before[reader]) == 1) and self._may(maker, reader, limit, unite=unite)
        ]
        return self._matching(found, room, spread=False)

    def level_pairs(self, limit: float, room: int, parity: int, *, unite: bool) -> list[tuple[str, str]]:
        """Pairs on neighbouring levels, the lower one of the given parity."""
        level: dict[str, int] = {}
        for name in self._order():
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

    def _matching(self, pairs: list[tuple[str, str]], room: int, *, spread: bool) -> list[tuple[str, str]]:
        """The cheapest pairs that share no unit; with `spread`, none beside another on its two levels either."""
        pairs.sort(key=lambda pair: (self.cost[pair[0]] + self.cost[pair[1]], pair))
        taken: set[str] = set()
        chosen: list[tuple[str, str]] = []
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
            first, second = self.find(maker), self.find(reader)
            if first != second:
                self._after[first].add(second)
                self._before[second].add(first)

    def _order(self) -> list[str]:
        waiting = {name: len(before) for name, before in self._before.items()}
        order = [name for name, count in waiting.items() if not count]
        for name in order:
            for after in sorted(self._after[name]):
                waiting[after] -= 1
                if not waiting[after]:
                    order.append(after)
        return order


def _counters(problem: Problem) -> list[tuple[str, str]]:
    """Units that read and make no tensor, such as a layer's count of batches, each with the unit that runs next.

    An optimiser counts its steps before it updates, a normalisation its batches before it normalises.
    """
    joined_to = {name for tensor in problem.tensors for name in (tensor.producer, *tensor.consumers)}
    pairs = []
    following: dict[object, str] = {}
    for unit in reversed(problem.units):
        if unit.name in joined_to:
            following[_nature(unit)] = unit.name
        elif _nature(unit) in following:
            pairs.append((following[_nature(unit)], unit.name))
    return pairs


def colocated_by_weight(problem: Problem) -> Problem:
    """Forward, backward and update of a weight in one class: whatever reads a weight that an update changes.

    What hands a gradient to an update belongs there too, as all steps of one update do. A problem without updates
    stays as it is.
    """
    units = {unit.name: unit for unit in problem.units}
    updates = {name for name, unit in units.items() if unit.phase == "update"}
    if not updates:
        return problem
    parent = {name: name for name in units}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    trained = {weight for name in updates for weight in units[name].weights}
    readers: dict[str, list[str]] = {}
    for name, unit in units.items():
        for weight in unit.weights:
            if weight in trained:
                readers.setdefault(weight, []).append(name)
    joins = [(names[0], name) for names in readers.values() for name in names[1:]]
    joins += [
        (tensor.producer, reader)
        for tensor in problem.tensors
        for reader in tensor.consumers
        if tensor.producer and reader in updates
    ]
    for one, other in joins:
        parent[root(other)] = root(one)
    members: dict[str, list[str]] = {}
    for name in units:
        members.setdefault(root(name), []).append(name)
    number = {key: str(index) for index, key in enumerate(key for key, names in members.items() if len(names) > 1)}
    return replace(problem, units=tuple(_in_class(unit, number.get(root(unit.name), "")) for unit in problem.units))


def _in_class(unit: Unit, number: str) -> Unit:
    return replace(unit, colocation=f"w{number}") if number else unit


def _nature(unit: Unit) -> tuple[str, frozenset[str]]:
    """What units that are joined must have in common."""
    return unit.phase, frozenset(unit.exec_ns)
