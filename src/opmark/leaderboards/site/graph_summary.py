"""Summarise a problem: facts of its graph, shares of its kinds, and its devices."""

from collections import Counter

from opmark.core.hardware.cluster import PROVENANCES
from opmark.core.units import counted, format_bytes, format_ns
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.site.board import BoardDevice
from opmark.leaderboards.site.timeline import operator


def graph_facts(problem: Problem) -> tuple[tuple[str, str], ...]:
    """Tensors, weights, depth, workload, phases and bounds, as (name, text) pairs."""
    phases = Counter(unit.phase for unit in problem.units)
    facts = [
        ("tensors", f"{len(problem.tensors)}, {format_bytes(sum(tensor.size_bytes for tensor in problem.tensors))}"),
        ("weights", format_bytes(sum(problem.weights.values()))),
        ("longest path", counted(depth(problem), "unit")),
        ("memory", problem.memory_mode),
        ("objective", problem.objective),
    ]
    if problem.in_micro_batches:
        facts.append(("micro-batches", str(problem.micro_batches)))
    if problem.arrivals:
        facts.append(("requests", str(sum(len(stream.arrival_ns) for stream in problem.arrivals))))
    if len(phases) > 1:
        facts.append(("phases", ", ".join(f"{count} {phase}" for phase, count in phases.items())))
    if problem.reference:
        facts += [
            (f"bound: {name.replace('_', ' ')}", format_ns(value) if problem.unit != "$" else f"${value / 1e12:.4g}")
            for name, value in problem.reference.bounds.items()
        ]
    return tuple(facts)


def cost_facts(problem: Problem) -> tuple[tuple[str, str], ...]:
    """The predictor behind the costs of each type of device, as (name, text) pairs.

    The source of costs is that of the devices: early problems call tables that others published measured.
    """
    facts = []
    for key, predictor in sorted(problem.provenance.bundles.items()):
        own = [device for device in problem.cluster.devices if key in {device.target, device.type}]
        if not own:
            continue
        word, _, rest = predictor.partition(": ")
        source = own[0].provenance
        text = f"{source}: {rest}" if rest and word in PROVENANCES else predictor
        facts.append((f"costs of {', '.join(sorted({device.type for device in own}))}", text))
    return tuple(facts)


def depth(problem: Problem) -> int:
    """The number of units on the longest path."""
    arrays = problem.arrays
    names = [unit.name for unit in problem.units]
    readers: dict[str, list[str]] = {name: [] for name in names}
    for tensor in problem.tensors:
        if tensor.producer:
            readers[tensor.producer] += tensor.consumers
    longest = dict.fromkeys(names, 1)
    for number in arrays.topological.tolist():
        for reader in readers[names[number]]:
            longest[reader] = max(longest[reader], longest[names[number]] + 1)
    return max(longest.values())


def kind_shares(problem: Problem) -> tuple[tuple[str, int, float], ...]:
    """(kind, number of units, share of the time), each unit on its fastest device; the largest share first."""
    count: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for unit in problem.units:
        kind = unit.kind or operator(unit.name)
        count[kind] += 1
        spent[kind] += min(unit.exec_ns.values())  # type: ignore[assignment]  # times may be fractions of a ns
    total = sum(spent.values()) or 1
    return tuple((kind, count[kind], spent[kind] / total) for kind in sorted(count, key=lambda k: (-spent[k], k)))


def machines_of(problem: Problem) -> tuple[BoardDevice, ...]:
    """The devices of the cluster, each with the predictor that the problem names for it."""
    bundles = problem.provenance.bundles
    return tuple(
        BoardDevice(
            name=device.name,
            type=device.type,
            memory_bytes=device.memory_bytes,
            provenance=device.provenance,
            slots=device.slots,
            dispatch_ns=device.dispatch_ns,
            price_per_hour=device.price_per_hour,
            bundle=bundles.get(device.target, "") or bundles.get(device.type, ""),
        )
        for device in problem.cluster.devices
    )
