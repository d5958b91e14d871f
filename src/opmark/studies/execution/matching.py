"""The kernels of each unit of a stored problem in graphs that were captured anew.

A runtime may number the kernels that it inserts in another order each time, so that equal names can mean different
kernels. Units are matched by the units they read from, and by their names without numbers.
"""

import re
from collections.abc import Mapping

import numpy as np

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph
from opmark.leaderboards.making.units import make_problem, unit_kernels
from opmark.leaderboards.problem.problem import Problem

_NUMBER = re.compile(r"(_token)?([_#]\d+)*$")
Units = dict[str, dict[str, tuple[int, ...]]]


class _Free:
    """The prediction of a target on which every kernel takes no time."""

    total_ns = 0.0

    def __init__(self, graph: Graph) -> None:
        self.node_ns = np.zeros(len(graph.nodes))

    @classmethod
    def network(cls, graph: Graph) -> "_Free":
        """The prediction for a graph."""
        return cls(graph)


def matched_units(problem: Problem, graphs: Mapping[str, Graph]) -> Units:
    """The node numbers of each unit of `problem` by target; `graphs` are by target name.

    Raises `ContentError` if the problem was made of other kernels, or if its units were joined to larger ones.
    """
    kernels = unit_kernels(graphs, problem.cluster)
    fresh = make_problem(problem.name, graphs, problem.cluster, dict.fromkeys(graphs, _Free))
    stored_before, fresh_before = _sources(problem), _sources(fresh)
    waiting: dict[tuple[frozenset[str], str], list[str]] = {}
    for unit in problem.units:
        waiting.setdefault((stored_before[unit.name], _stem(unit.name)), []).append(unit.name)
    names: dict[str, str] = {"": ""}
    for number in fresh.arrays.topological.tolist():
        name = fresh.units[number].name
        key = (frozenset(names[source] for source in fresh_before[name]), _stem(name))
        free = waiting.get(key, [])
        if not free:
            raise ContentError(
                f"its units are not the kernels that run here: nothing in it equals {name!r}",
                where=problem.name,
                hint="make it on this machine with `opmark leaderboards make-problem`, and give the same --batch and "
                "--size here",
            )
        names[name] = free.pop(free.index(name) if name in free else 0)
    left = [name for rest in waiting.values() for name in rest]
    if left:
        raise ContentError(f"the network has no unit {left[0]!r} here", where=problem.name)
    return {names[name]: own for name, own in kernels.items()}


def _sources(problem: Problem) -> dict[str, frozenset[str]]:
    """The units that each unit reads from, "" for a graph input."""
    found: dict[str, set[str]] = {unit.name: set() for unit in problem.units}
    for tensor in problem.tensors:
        for name in tensor.consumers:
            found[name].add(tensor.producer)
    return {name: frozenset(sources) for name, sources in found.items()}


def _stem(name: str) -> str:
    return _NUMBER.sub("", name)
