"""How many kernels each kind gets: in proportion to the time that real networks spend in it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.core.kind import FLOATING
from opmark.core.work import Work
from opmark.kinds import KINDS

# A plain core: operations and bytes per nanosecond, and what any kernel costs at least. Only shares depend on them,
# and within a factor of two of the truth they move none of those by more than a few percent.
_OPERATIONS_PER_NS = 20.0
_BYTES_PER_NS = 8.0
_KERNEL_NS = 2_000.0
# What an operator may be missed by and no network's prediction shows it.
_FELT_SHARE = 0.005
# An element type that a runtime computes with is not the only one in its kernels.
_EIGHT_BITS = frozenset({"int8", "uint8"})


def rough_ns(work: Work) -> float:
    """What a kernel takes on a plain core by a roofline: a fixed cost, its arithmetic and its traffic in turn."""
    return _KERNEL_NS + work.flops / _OPERATIONS_PER_NS + work.moved_bytes / _BYTES_PER_NS


def rough_network_ns(graph: Graph) -> float:
    """The same of a whole network."""
    return sum(rough_ns(node.work) for node in graph.costly)


def asked_dtype(kernel: Kernel, dtypes: Sequence[str]) -> str:
    """Under which of the asked `dtypes` a kernel counts: its own; `int8` for any eight bits; else the first.

    So the integer arithmetic of positions and masks stands with the floating-point kernels it occurs beside.
    """
    own = kernel.params.get("dtype", dtypes[0])
    if own in _EIGHT_BITS and "int8" in dtypes:
        return "int8"
    return str(own) if own in dtypes else dtypes[0]


def operator_of(kernel: Kernel) -> str:
    """Which operator of its kind a kernel is: `local-response` of the norms; empty where a kind is one operator."""
    return str(kernel.params.get("op", ""))


def has_dtype(kind: str, dtype: str, weights: Mapping[tuple[str, str], float]) -> bool:
    """Whether kernels of `kind` are asked for in `dtype`: where a network has them, else where such kernels exist.

    Where networks say what there is, whole numbers that none of them has are not asked for.
    """
    if weights.get((kind, dtype), 0.0) > 0:
        return True
    return dtype in KINDS.load(kind).dtypes and (dtype in FLOATING or not weights)


def time_shares(graphs: Iterable[Graph], dtypes: Sequence[str]) -> dict[tuple[str, str], float]:
    """(kind, asked element type) → its share of the networks' time by `rough_ns`.

    Every network counts the same, so that a few large ones do not decide; and what a call of every kernel costs is
    part of it, so that the many small kernels of a network do count.
    """
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for graph in graphs:
        whole = rough_network_ns(graph)
        for node in graph.costly:
            totals[node.kernel.kind, asked_dtype(node.kernel, dtypes)] += rough_ns(node.work) / whole
    everything = sum(totals.values())
    return {key: value / everything for key, value in totals.items()}


def felt_operators(graphs: Iterable[Graph], dtypes: Sequence[str]) -> dict[tuple[str, str], frozenset[str]]:
    """(kind, asked element type) → its operators that take a felt part of some network's time by `rough_ns`."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for graph in graphs:
        spent: dict[tuple[str, str, str], float] = defaultdict(float)
        for node in graph.costly:
            kernel = node.kernel
            spent[kernel.kind, asked_dtype(kernel, dtypes), operator_of(kernel)] += rough_ns(node.work)
        least_ns = _FELT_SHARE * rough_network_ns(graph)
        for (kind, dtype, operator), ns in spent.items():
            if ns >= least_ns:
                found[kind, dtype].add(operator)
    return {key: frozenset(operators) for key, operators in found.items()}


def shares(weights: Mapping[str, float], total: int, at_least: int | Mapping[str, int]) -> dict[str, int]:
    """`total` dealt out in proportion to `weights`, at least `at_least` each, so that they sum to it.

    The floor, one for all or by name, is lifted from the proportion, not added to it: only kinds below it gain. Where
    `total` is less than all floors together they are all given. Without any weight all get the same.
    """
    if not weights or not total:
        return {}
    floors = dict.fromkeys(weights, at_least) if isinstance(at_least, int) else at_least
    weighed = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
    lifted: set[str] = set()
    while True:
        spare = max(0, total - sum(floors[name] for name in lifted))
        rest = sum(weight for name, weight in weighed.items() if name not in lifted)
        low = {
            name
            for name, weight in weighed.items()
            if name not in lifted and (not rest or spare * weight / rest < floors[name])
        }
        if not low:
            break
        lifted |= low
    exact = {name: floors[name] if name in lifted else spare * weight / rest for name, weight in weighed.items()}
    counts = {name: int(value) for name, value in exact.items()}
    owed = max(0, total - sum(counts.values()))
    by_remainder = sorted(exact, key=lambda name: (counts[name] - exact[name], name))
    for name in [name for name in by_remainder if name not in lifted][:owed]:
        counts[name] += 1
    return counts


def deal_out(
    wanted: Mapping[str, int],
    weights: Mapping[str, float],
    draw: Callable[[str, int], Sequence[Kernel]],
) -> dict[str, Sequence[Kernel]]:
    """`draw` as many of every name as `wanted`; what one cannot give is asked of the others, by weight, in turn.

    `draw` gives fewer kernels than asked for only where there are no more, and more only where floors ask for them.
    """
    asked = dict(wanted)
    drawn = {name: draw(name, count) for name, count in asked.items()}
    while True:
        short = sum(wanted.values()) - sum(len(kernels) for kernels in drawn.values())
        able = {name: weights.get(name, 0.0) for name, count in asked.items() if len(drawn[name]) >= count and count}
        if short <= 0 or not able:
            return drawn
        for name, more in shares(able, short, 0).items():
            if more:
                asked[name] += more
                drawn[name] = draw(name, asked[name])
