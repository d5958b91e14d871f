"""Merge groups of a problem's units into single units: their costs, memory and tensors add up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opmark.leaderboards.making.prediction_error import weighted_interval
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.graph import disjoint_sets
from opmark.leaderboards.problem.problem import Problem


class NamedSets:
    """Disjoint sets of names; a merged set keeps the name of the set that it was merged into."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sets = disjoint_sets(names)
        self._name: dict[str, str] = {}

    def name(self, member: str) -> str:
        """The name of the set that holds `member`."""
        root: str = self._sets[member]
        return self._name.get(root, root)

    def merge(self, one: str, other: str) -> None:
        """Merge the set of `other` into the set of `one`."""
        kept = self.name(one)
        if self._sets.merge(one, other):
            self._name[self._sets[one]] = kept


def joined(problem: Problem, group: Mapping[str, str]) -> Problem:
    """`problem` with the units of each group as one unit; `group` maps a unit's name to the name of its group.

    Times add up. The workspace is the peak of the tensors that live inside the group while its members run in order.
    Tensors of one group with the same readers become one. There must be no cycle between groups.
    """
    if all(name == key for name, key in group.items()):
        return problem
    order = _order(problem)
    members: dict[str, list[Unit]] = {}
    for unit in sorted(problem.units, key=lambda unit: order[unit.name]):
        members.setdefault(group[unit.name], []).append(unit)
    weights = _weights(problem, group)
    inside: dict[str, list[Tensor]] = {}
    outside: list[Tensor] = []
    for tensor in problem.tensors:
        own = group.get(tensor.producer, "")
        readers = tuple(dict.fromkeys(group[name] for name in tensor.consumers))
        if own and all(name == own for name in readers) and not tensor.output:
            inside.setdefault(own, []).append(tensor)
        else:
            others = tuple(name for name in readers if name != own)
            outside.append(replace(tensor, producer=own, consumers=others))
    units = tuple(_unit(name, units, inside.get(name, []), weights, order) for name, units in members.items())
    sizes: dict[str, int] = {}
    for name, size in problem.weights.items():
        sizes[weights[name]] = sizes.get(weights[name], 0) + size
    used = {name for unit in units for name in unit.weights}
    return checked(
        replace(
            problem,
            units=units,
            tensors=tuple(_bundled(outside)),
            weights={name: size for name, size in sizes.items() if name in used},
        ),
        problem.name,
    )


def _unit(
    name: str,
    members: Sequence[Unit],
    inside: Sequence[Tensor],
    weights: Mapping[str, str],
    order: Mapping[str, int],
) -> Unit:
    types = [kind for kind in members[0].exec_ns if all(kind in unit.exec_ns for unit in members)]
    costliest = max(members, key=lambda unit: (max(unit.exec_ns.values()), -order[unit.name]))
    known = [kind for kind in types if any(kind in unit.interval for unit in members)]
    return Unit(
        name=name,
        exec_ns={kind: sum(unit.exec_ns[kind] for unit in members) for kind in types},
        weights=tuple(sorted({weights[weight] for unit in members for weight in unit.weights})),
        workspace_bytes=_peak_bytes(members, inside),
        colocation=next((unit.colocation for unit in members if unit.colocation), ""),
        phase=members[0].phase,
        kind=costliest.kind,
        interval={
            kind: weighted_interval([(unit.exec_ns[kind], unit.interval.get(kind, (1.0, 1.0))) for unit in members])
            for kind in known
        },
        shape_group=costliest.shape_group,
    )


def _peak_bytes(members: Sequence[Unit], inside: Sequence[Tensor]) -> int:
    """The largest number of bytes alive inside a group whose members run one after the other."""
    place = {unit.name: number for number, unit in enumerate(members)}
    change = [0] * (len(members) + 1)
    for tensor in inside:
        change[place[tensor.producer]] += tensor.size_bytes
        change[max((place[name] for name in tensor.consumers), default=place[tensor.producer]) + 1] -= tensor.size_bytes
    alive, peak = 0, 0
    for unit, delta in zip(members, change, strict=False):
        alive += delta
        peak = max(peak, alive + unit.workspace_bytes)
    return peak


def _weights(problem: Problem, group: Mapping[str, str]) -> dict[str, str]:
    """The new name of each weight: weights with the same reading groups become one, named after the first."""
    readers: dict[str, set[str]] = {name: set() for name in problem.weights}
    for unit in problem.units:
        for name in unit.weights:
            readers[name].add(group[unit.name])
    first: dict[tuple[str, ...], str] = {}
    return {name: first.setdefault(tuple(sorted(found)), name) for name, found in readers.items()}


def _bundled(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Merge the tensors of one producer with the same readers; graph inputs and outputs stay as they are."""
    found: dict[tuple[object, ...], Tensor] = {}
    for tensor in tensors:
        if not tensor.consumers and not tensor.output:
            continue
        single = tensor.output or not tensor.producer
        key = (tensor.name,) if single else (tensor.producer, tuple(sorted(tensor.consumers)))
        before = found.get(key)
        if before is None:
            found[key] = tensor
            continue
        boundary = {
            kind: before.boundary_ns.get(kind, 0) + tensor.boundary_ns.get(kind, 0)
            for kind in {**before.boundary_ns, **tensor.boundary_ns}
        }
        found[key] = replace(before, size_bytes=before.size_bytes + tensor.size_bytes, boundary_ns=boundary)
    return list(found.values())


def _order(problem: Problem) -> dict[str, int]:
    """The position of each unit in a topological order."""
    return {problem.units[number].name: place for place, number in enumerate(problem.arrays.topological.tolist())}
