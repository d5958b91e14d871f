"""Findings about the units, tensors, weights and cluster of a problem: all that compiling it relies on."""

from collections.abc import Iterator

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import LIMIT
from opmark.leaderboards.problem.fields import AXES, PARTS_AT_MOST, PHASES, ProblemFields, Tensor, Unit, UnitSplit
from opmark.leaderboards.problem.graph import cycle_finding, numbered

# The factors of an interval stay below this.
FACTOR_BELOW = 2**20
_RANGE = "must not be negative, and below 2^53"
_KNOWN = "graph_findings"


def graph_findings(problem: ProblemFields) -> list[str]:
    """One sentence for everything that is wrong, worked out once; a cycle is looked for in sound graphs only."""
    known = problem.worked_out.get(_KNOWN)
    if not isinstance(known, list):
        known = problem.cluster.problems() or [*_content_findings(problem)] or cycle_finding(problem)
        keep_graph_findings(problem, known)
    return known


def keep_graph_findings(problem: ProblemFields, findings: list[str]) -> None:
    """Let `graph_findings` give these findings about a problem."""
    problem.worked_out[_KNOWN] = findings


def refuse(findings: list[str], where: str) -> None:
    """Raise one `ContentError` that names the first ten findings, if there are any."""
    if findings:
        more = f" (and {len(findings) - 10} more)" if len(findings) > 10 else ""
        raise ContentError("; ".join(findings[:10]) + more, where=where)


def unit_findings(unit: Unit) -> Iterator[str]:
    """One sentence for each wrong number of a unit, and for a phase that does not exist."""
    key = f"units.{unit.name}"
    for type_name, value in unit.exec_ns.items():
        if not 0 <= value < LIMIT:
            yield f"{key}.exec_ns.{type_name}: must be a number of ns from 0 to 2^53, not {value}"
    for type_name, row in unit.split_ns.items():
        if type_name not in unit.exec_ns:
            yield f"{key}.split_ns.{type_name}: the unit has no exec_ns for that type"
        if any(not 0 <= value < LIMIT for value in row):
            yield f"{key}.split_ns.{type_name}: must be numbers of ns from 0 to 2^53"
    for type_name, (low, high) in unit.interval.items():
        if not 0 < low <= 1 <= high < FACTOR_BELOW:
            yield f"{key}.interval.{type_name}: must be two factors around 1, not {low} and {high}"
    if not 0 <= unit.workspace_bytes < LIMIT:
        yield f"{key}.workspace_bytes: {_RANGE}, not {unit.workspace_bytes}"
    if unit.phase not in PHASES:
        yield f"{key}.phase: one of {', '.join(PHASES)}, not {unit.phase!r}"
    if unit.splits and unit.colocation:
        yield f"{key}.splits: a unit of a colocation class cannot be split"
    ways = [(split.axis, split.parts) for split in unit.splits]
    if len(set(ways)) < len(ways):
        yield f"{key}.splits: an axis appears twice with as many parts"
    for number, split in enumerate(unit.splits):
        yield from (f"{key}.splits.{number}.{text}" for text in _split_findings(split))
        # Bounds rely on it: parts run where the unit runs.
        for type_name in sorted({*split.exec_ns, *split.join_ns, *split.cut_ns} - unit.exec_ns.keys()):
            yield f"{key}.splits.{number}: the unit has no exec_ns for {type_name!r}"


def _split_findings(split: UnitSplit) -> Iterator[str]:
    if split.axis not in AXES:
        yield f"axis: one of {', '.join(AXES)}, not {split.axis!r}"
    if not 2 <= split.parts <= PARTS_AT_MOST:
        yield f"parts: must be from 2 to {PARTS_AT_MOST}, not {split.parts}"
    for name in ("exec_ns", "join_ns", "cut_ns"):
        table = getattr(split, name)
        if not table and name != "cut_ns":
            yield f"{name}: a time for at least one device type is needed"
        for type_name, value in table.items():
            if not 0 <= value < LIMIT:
                yield f"{name}.{type_name}: must be a number of ns from 0 to 2^53, not {value}"
    for name, share in (("input_share", split.input_share), ("weight_share", split.weight_share)):
        if not 1 <= share * split.parts <= split.parts:
            yield f"{name}: must be from 1 / parts to 1, not {share}"
    if split.cut_ns and split.input_share == 1:
        yield "cut_ns: parts that read whole inputs have nothing to cut"


def _content_findings(problem: ProblemFields) -> Iterator[str]:
    if not problem.units:
        yield "units: at least one is needed"
    yield from (
        f"weights.{name}: {_RANGE}, not {size}" for name, size in problem.weights.items() if not 0 <= size < LIMIT
    )
    graph = numbered(problem)
    types = {device.type for device in problem.cluster.devices}
    # A million units are checked one by one: sentences are written for wrong ones only.
    for unit in problem.units:
        if types.isdisjoint(unit.exec_ns):
            known = ", ".join(sorted(types))
            yield f"units.{unit.name}.exec_ns: runs on no device of the cluster (needs one of {known})"
        rarely = bool(unit.split_ns or unit.interval or unit.splits)
        if rarely or not 0 <= unit.workspace_bytes < LIMIT or unit.phase not in PHASES:
            yield from unit_findings(unit)
            continue
        for value in unit.exec_ns.values():
            if not 0 <= value < LIMIT:
                yield from unit_findings(unit)
                break
    yield from _repeated("units", [unit.name for unit in problem.units])
    yield from _repeated("tensors", [tensor.name for tensor in problem.tensors])
    if not graph.names_known:
        for unit in problem.units:
            unknown = [name for name in unit.weights if name not in problem.weights]
            yield from (f"units.{unit.name}.weights: no weight is called {name!r}" for name in unknown)
    row, reader = graph.tensor_of_consumer, graph.consumer_units
    twice = bool(((row[1:] == row[:-1]) & (reader[1:] == reader[:-1])).any())
    yield from _tensor_findings(problem, every=twice or not graph.names_known)


def _repeated(key: str, names: list[str]) -> Iterator[str]:
    """One sentence for each name that appears once more."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                yield f"{key}.{name}: the name appears twice"
            seen.add(name)


def _tensor_findings(problem: ProblemFields, *, every: bool) -> Iterator[str]:
    """The findings about all tensors, or only about those whose names and readers are not known to be right."""
    units = {unit.name for unit in problem.units} if every else set()
    devices = {device.name for device in problem.cluster.devices}
    for tensor in problem.tensors:
        if every or not 0 <= tensor.size_bytes < LIMIT or tensor.home or tensor.boundary_ns:
            yield from _sentences(tensor, units if every else {tensor.producer, *tensor.consumers}, devices)


def _sentences(tensor: Tensor, units: set[str], devices: set[str]) -> Iterator[str]:
    key = f"tensors.{tensor.name}"
    if not 0 <= tensor.size_bytes < LIMIT:
        yield f"{key}.size_bytes: {_RANGE}, not {tensor.size_bytes}"
    if tensor.producer and tensor.producer not in units:
        yield f"{key}.producer: no unit is called {tensor.producer!r}"
    yield from (f"{key}.consumers: no unit is called {name!r}" for name in tensor.consumers if name not in units)
    if len(set(tensor.consumers)) < len(tensor.consumers):
        yield f"{key}.consumers: a unit appears twice"
    if tensor.home and tensor.producer:
        yield f"{key}.home: only a graph input has one"
    if tensor.home and tensor.home not in devices:
        yield f"{key}.home: no device is called {tensor.home!r}"
    for type_name, value in tensor.boundary_ns.items():
        if not 0 <= value < LIMIT:
            yield f"{key}.boundary_ns.{type_name}: must be a number of ns from 0 to 2^53, not {value}"
