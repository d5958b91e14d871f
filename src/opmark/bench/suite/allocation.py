"""Allocate kernels to kinds in proportion to the time that real networks spend in them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opmark.core.hardware.target import parse_target_name
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import FLOATING
from opmark.core.kernels.work import Work
from opmark.kinds import KINDS
from opmark.models.cuda_graph import CUDA_RUNTIME


@dataclass(frozen=True, slots=True)
class OrdinaryDevice:
    """Operations and bytes per nanosecond, and the least cost of a kernel. Only shares depend on them.

    If they are wrong by a factor of two, no share changes by more than a few percent. On a processor, transcendentals
    and windows cost far more than their arithmetic says.
    """

    operations_per_ns: float
    bytes_per_ns: float
    kernel_ns: float
    is_processor: bool = True


CORE = OrdinaryDevice(20.0, 8.0, 2_000.0)
# An H100 (decision 0055): most kernels move their bytes or take the least time.
GPU = OrdinaryDevice(30_000.0, 2_000.0, 2_000.0, is_processor=False)

# An operator below this share of a network's time does not affect the network's prediction.
_SIGNIFICANT_SHARE = 0.005
# Measured time over the time by the roofline, the median of an operator in release 1.0.0 of the reference device, where
# it is at least thrice the usual.
_USUAL_FACTOR = 0.2
_FACTORS = {
    ("activation-backward", "sigmoid"): 1.3,
    ("activation-backward", "tanh"): 0.8,
    ("elementwise", "exp"): 0.7,
    ("elementwise", "sigmoid"): 1.1,
    ("elementwise", "softplus"): 3.3,
    ("elementwise", "tanh"): 1.5,
    ("gather", "gather-nd"): 2.2,
    ("loss", "nll"): 1.8,
    ("movement", "constant-of-shape"): 2.0,
    ("movement", "range"): 2.0,
    ("norm", "local-response"): 11.4,
    ("norm", "skip-layer"): 1.9,
    ("pool", "average"): 4.1,
    ("pool", "max"): 2.4,
    ("pool", "qlinear-average"): 6.7,
    ("pool-backward", "adaptive-average"): 5.7,
    ("pool-backward", "average"): 4.4,
    ("random", "bernoulli"): 3.9,
    ("random", "dropout"): 2.7,
    ("random", "normal"): 1.5,
    ("random", "uniform"): 1.7,
    ("reduce", "argmax"): 3.5,
    ("reduce", "l2"): 0.7,
}
_EIGHT_BITS = frozenset({"int8", "uint8"})


def ordinary_device(target_name: str) -> OrdinaryDevice:
    """The ordinary device of a target: a GPU or a core."""
    return GPU if parse_target_name(target_name)[0] == CUDA_RUNTIME else CORE


def roofline_ns(work: Work, device: OrdinaryDevice = CORE) -> float:
    """The time of a kernel on an ordinary device in ns, by a roofline: fixed cost, arithmetic and traffic, added up."""
    return device.kernel_ns + work.flops / device.operations_per_ns + work.moved_bytes / device.bytes_per_ns


def network_roofline_ns(graph: Graph, device: OrdinaryDevice = CORE) -> float:
    """The time of a whole network by the same roofline, in ns."""
    return sum(roofline_ns(node.work, device) for node in graph.costly)


def measured_ns(kernel: Kernel, work: Work, device: OrdinaryDevice = CORE) -> float:
    """The usual measured time of a kernel with that operator and that much work, in ns."""
    factor = _FACTORS.get((kernel.kind, operator_of(kernel)), _USUAL_FACTOR) if device.is_processor else 1.0
    return roofline_ns(work, device) * factor


def requested_dtype(kernel: Kernel, dtypes: Sequence[str]) -> str:
    """The element type among the requested `dtypes` under which a kernel counts.

    This is the kernel's own type, `int8` for any eight-bit type, or else the first requested type. So the integer
    arithmetic of positions and masks counts with the floating-point kernels around it.
    """
    own = kernel.params.get("dtype", dtypes[0])
    if own in _EIGHT_BITS and "int8" in dtypes:
        return "int8"
    return str(own) if own in dtypes else dtypes[0]


def operator_of(kernel: Kernel) -> str:
    """The operator of a kernel within its kind, such as `local-response`; empty if the kind has one operator."""
    return str(kernel.params.get("op", ""))


def has_dtype(kind: str, dtype: str, weights: Mapping[tuple[str, str], float]) -> bool:
    """Return True if a network has kernels of `kind` in `dtype`, or if such kernels exist at all.

    If `weights` are known, an integer type counts only if a network has it.
    """
    if weights.get((kind, dtype), 0.0) > 0:
        return True
    return dtype in KINDS.load(kind).dtypes and (dtype in FLOATING or not weights)


def time_shares(
    graphs: Iterable[Graph], dtypes: Sequence[str], device: OrdinaryDevice = CORE
) -> dict[tuple[str, str], float]:
    """(kind, requested element type) → its share of the networks' time by `roofline_ns`.

    Every network has the same weight, so that a few large ones do not dominate. The fixed cost of every kernel counts,
    so that many small kernels have weight too.
    """
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for graph in graphs:
        whole = network_roofline_ns(graph, device)
        for node in graph.costly:
            totals[node.kernel.kind, requested_dtype(node.kernel, dtypes)] += roofline_ns(node.work, device) / whole
    everything = sum(totals.values())
    return {key: value / everything for key, value in totals.items()}


def significant_operators(
    graphs: Iterable[Graph], dtypes: Sequence[str], device: OrdinaryDevice = CORE
) -> dict[tuple[str, str], frozenset[str]]:
    """(kind, requested element type) → its operators with a significant share of some network's measured time."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for graph in graphs:
        spent: dict[tuple[str, str, str], float] = defaultdict(float)
        for node in graph.costly:
            kernel = node.kernel
            key = kernel.kind, requested_dtype(kernel, dtypes), operator_of(kernel)
            spent[key] += measured_ns(kernel, node.work, device)
        least_ns = _SIGNIFICANT_SHARE * sum(spent.values())
        for (kind, dtype, operator), ns in spent.items():
            if ns >= least_ns:
                found[kind, dtype].add(operator)
    return {key: frozenset(operators) for key, operators in found.items()}


def apportion(weights: Mapping[str, float], total: int, at_least: int | Mapping[str, int]) -> dict[str, int]:
    """Split `total` in proportion to `weights` with at least `at_least` each (largest remainder method).

    The floor is one for all or by name. It raises only the counts below it, at the expense of the others. If `total`
    is less than the sum of all floors, everyone gets its floor. If all weights are 0, everyone gets the same.
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


def allocate(
    wanted: Mapping[str, int],
    weights: Mapping[str, float],
    draw: Callable[[str, int], Sequence[Kernel]],
) -> dict[str, Sequence[Kernel]]:
    """Draw the `wanted` number of every name, and draw what one name lacks from the others, by weight.

    `draw` may return fewer kernels than requested if there are no more, and more if floors require them.
    """
    asked = dict(wanted)
    drawn = {name: draw(name, count) for name, count in asked.items()}
    while True:
        short = sum(wanted.values()) - sum(len(kernels) for kernels in drawn.values())
        able = {name: weights.get(name, 0.0) for name, count in asked.items() if len(drawn[name]) >= count and count}
        if short <= 0 or not able:
            return drawn
        for name, more in apportion(able, short, 0).items():
            if more:
                asked[name] += more
                drawn[name] = draw(name, asked[name])
