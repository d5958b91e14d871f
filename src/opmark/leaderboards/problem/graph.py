"""The graph of a problem before it is compiled: numbered edges, cycles, and units that must share a device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from opmark.leaderboards.problem.fields import ProblemFields
from opmark.leaderboards.problem.integers import Integers


@dataclass(frozen=True, kw_only=True)
class Edges:
    """The producer of each tensor (-1: graph input), and its consumers, ascending, in compressed rows."""

    producer: Integers
    consumer_offsets: Integers
    consumer_units: Integers

    @property
    def tensor_of_consumer(self) -> Integers:
        """The tensor of each entry of `consumer_units`."""
        return np.repeat(np.arange(len(self.producer)), np.diff(self.consumer_offsets))


def edges_of(problem: ProblemFields) -> Edges:
    """The edges of a problem whose names are known to be right."""
    known = problem.worked_out.get("edges")
    if not isinstance(known, Edges):
        known = problem.worked_out["edges"] = _numbered(problem)
    return known


def _numbered(problem: ProblemFields) -> Edges:
    number = {unit.name: index for index, unit in enumerate(problem.units)}
    tensors = problem.tensors
    producer = np.fromiter(
        (number[tensor.producer] if tensor.producer else -1 for tensor in tensors), dtype=np.int64, count=len(tensors)
    )
    offsets = np.zeros(len(tensors) + 1, dtype=np.int64)
    np.cumsum(
        np.fromiter((len(tensor.consumers) for tensor in tensors), dtype=np.int64, count=len(tensors)), out=offsets[1:]
    )
    readers = chain.from_iterable(tensor.consumers for tensor in tensors)
    units = np.fromiter(map(number.__getitem__, readers), dtype=np.int64, count=int(offsets[-1]))
    row = np.repeat(np.arange(len(tensors)), np.diff(offsets)) * len(number)
    return Edges(producer=producer, consumer_offsets=offsets, consumer_units=np.sort(row + units) - row)


def cycle_finding(problem: ProblemFields) -> list[str]:
    """One sentence that names a cycle, or nothing."""
    edges = edges_of(problem)
    maker = edges.producer[edges.tensor_of_consumer]
    if bool((maker < edges.consumer_units).all()):
        return []  # every unit stands behind all that it reads from
    names = [unit.name for unit in problem.units]
    before: dict[str, list[str]] = {name: [] for name in names}
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


def class_names(problem: ProblemFields) -> list[str]:
    """The colocation class of each unit, "" for none; joined classes are called after their first unit's.

    Units that name a weight which an update unit names (its forward, backward and update) belong together.
    """
    updated = problem.updated_weights
    if not updated and not any(unit.colocation for unit in problem.units):
        return [""] * len(problem.units)
    from scipy.cluster.hierarchy import DisjointSet

    joined = DisjointSet()
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
