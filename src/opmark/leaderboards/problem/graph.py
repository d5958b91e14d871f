"""The graph of a problem before it is compiled: numbered edges, cycles, and units that must share a device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import Any

import numpy as np

from opmark.leaderboards.problem.fields import ProblemFields
from opmark.leaderboards.problem.integers import Integers

# The number of a name that nothing has.
UNKNOWN = -2
_KNOWN, _CLASSES = "numbered", "classes"


@dataclass(frozen=True, kw_only=True)
class NumberedGraph:
    """The graph by numbers: the producer of each tensor (-1: graph input), and consumers and weights in rows.

    `consumer_units` are in compressed rows per tensor, `weight_ids` per unit, both ascending within a row.
    """

    producer: Integers
    consumer_offsets: Integers
    consumer_units: Integers
    weight_offsets: Integers
    weight_ids: Integers

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.weight_offsets) - 1

    @property
    def tensors(self) -> int:
        """The number of tensors."""
        return len(self.producer)

    @property
    def tensor_of_consumer(self) -> Integers:
        """The tensor of each entry of `consumer_units`."""
        return np.repeat(np.arange(len(self.producer)), np.diff(self.consumer_offsets))

    @property
    def names_known(self) -> bool:
        """True if every name that a unit or tensor uses is that of a unit or weight."""
        parts = (self.producer, self.consumer_units, self.weight_ids)
        return all(int(part.min(initial=0)) > UNKNOWN for part in parts)


def numbered(problem: ProblemFields) -> NumberedGraph:
    """The graph of a problem by numbers, worked out once."""
    known = problem.worked_out.get(_KNOWN)
    if not isinstance(known, NumberedGraph):
        known = _from_names(problem)
        keep_numbered(problem, known)
    return known


def keep_numbered(problem: ProblemFields, graph: NumberedGraph) -> None:
    """Let `numbered` give this graph for a problem."""
    problem.worked_out[_KNOWN] = graph


def sorted_rows(lengths: Integers, values: Integers, below: int) -> tuple[Integers, Integers]:
    """Compressed rows of values below `below`, ascending within a row: the offset of each row, and all rows."""
    # Sorting whole numbers that begin with the row's own sorts all rows at once.
    base = np.repeat(np.arange(len(lengths)), lengths) * (below + 1)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.sort(base + values) - base


def _from_names(problem: ProblemFields) -> NumberedGraph:
    units = dict(zip(problem.unit_names, count()))
    consumer_offsets, consumer_units = _rows([tensor.consumers for tensor in problem.tensors], units)
    weights = dict(zip(problem.weights, count()))
    weight_offsets, weight_ids = _rows([_distinct(unit.weights) for unit in problem.units], weights)
    makers = {**units, "": -1}
    producers = (tensor.producer for tensor in problem.tensors)
    return NumberedGraph(
        producer=np.fromiter(map(makers.get, producers, repeat(UNKNOWN)), dtype=np.int64),
        consumer_offsets=consumer_offsets,
        consumer_units=consumer_units,
        weight_offsets=weight_offsets,
        weight_ids=weight_ids,
    )


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) < 2 else tuple(dict.fromkeys(names))


def _rows(rows: Sequence[Sequence[str]], number: Mapping[str, int]) -> tuple[Integers, Integers]:
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    found = np.fromiter(map(number.get, chain.from_iterable(rows), repeat(UNKNOWN)), dtype=np.int64)
    return sorted_rows(lengths, found, len(number))


def cycle_finding(problem: ProblemFields) -> list[str]:
    """One sentence that names a cycle, or nothing."""
    graph = numbered(problem)
    producer = graph.producer[graph.tensor_of_consumer]
    if bool((producer < graph.consumer_units).all()):
        return []  # every unit stands behind all that it reads from
    before: dict[str, list[str]] = {unit.name: [] for unit in problem.units}
    for tensor in problem.tensors:
        if tensor.producer:
            for name in tensor.consumers:
                before[name].append(tensor.producer)
    cycle = named_cycle(before)
    return [f"the graph has a cycle: {cycle}"] if cycle else []


def named_cycle(before: Mapping[str, Sequence[str]]) -> str:
    """One cycle of a graph, given by the predecessors of each node, as `a → b → a`; empty if there is none."""
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return " → ".join(error.args[1])
    return ""


def disjoint_sets(members: Iterable[Any] = ()) -> Any:
    """SciPy's `DisjointSet` of `members`, without the rest of its package, whose imports take longer than most uses."""
    try:
        from scipy._lib._disjoint_set import DisjointSet
    except ImportError:  # it may move: only its public place is promised
        from scipy.cluster.hierarchy import DisjointSet

    return DisjointSet(members)


def class_names(problem: ProblemFields) -> list[str]:
    """The colocation class of each unit, "" for none; joined classes are called after their first unit's.

    Units that name a weight which an update unit names (its forward, backward and update) belong together.
    """
    known: list[str] | None = problem.worked_out.get(_CLASSES)
    if known is None:  # every answer to the problem asks for them
        known = problem.worked_out[_CLASSES] = _joined_classes(problem)
    return known


def _joined_classes(problem: ProblemFields) -> list[str]:
    updated = problem.updated_weights
    if not updated and not any(unit.colocation for unit in problem.units):
        return [""] * len(problem.units)
    joined = disjoint_sets()
    first: list[str] = []
    for unit in problem.units:
        keys = [f"class {unit.colocation}"] if unit.colocation else []
        keys += [f"weight {name}" for name in unit.weights if name in updated]
        for key in keys:
            joined.add(key)
            joined.merge(keys[0], key)
        first.append(keys[0] if keys else "")
    shown: dict[str, str] = {}
    return [shown.setdefault(joined[key], key.partition(" ")[2]) if key else "" for key in first]
