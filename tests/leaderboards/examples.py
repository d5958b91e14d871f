"""Small problems worked out by hand, and random ones."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

from hypothesis import assume
from hypothesis import strategies as st

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.graph import class_names
from opmark.leaderboards.problem.problem import Problem

GIB = 2**30


def device(name, type_name="x", **facts):
    return Device(name=name, type=type_name, memory_bytes=facts.pop("memory_bytes", GIB), **facts)


def pair(duration_ns=20, port=""):
    """Two equal devices, a link each way that takes `duration_ns` whatever it carries."""
    links = tuple(
        Link(source=a, destination=b, latency_ns=duration_ns, bandwidth_bytes_per_s=1e9, port=port)
        for a, b in (("d0", "d1"), ("d1", "d0"))
    )
    return Cluster(name="pair", devices=(device("d0"), device("d1")), links=links)


def star(duration_ns=20, devices=3):
    names = [f"d{i}" for i in range(devices)]
    links = tuple(
        Link(source=a, destination=b, latency_ns=duration_ns, bandwidth_bytes_per_s=1e9)
        for a in names
        for b in names
        if a != b
    )
    return Cluster(name="star", devices=tuple(device(name) for name in names), links=links)


def graph(times, edges, cluster, **facts):
    """`times`: ns by unit, on any device; `edges`: producer -> its readers, one empty tensor each."""
    types = {d.type for d in cluster.devices}
    units = tuple(Unit(name=name, exec_ns=dict.fromkeys(types, ns)) for name, ns in times.items())
    tensors = tuple(
        Tensor(name=f"{name}.out", size_bytes=0, producer=name, consumers=tuple(readers)) for name, readers in edges
    )
    return Problem(name="worked", cluster=cluster, units=units, tensors=tensors, **facts)


def pipeline(times, devices, link_ns=0):
    """A chain of units on equal devices, scored by throughput; `times` in ns."""
    names = [f"u{number}" for number in range(len(times))]
    edges = [(a, [b]) for a, b in pairwise(names)]
    problem = graph(dict(zip(names, times, strict=True)), edges, star(link_ns, devices=devices))
    return replace(problem, objective="throughput")


HEFT_NS = (
    (14, 16, 9),
    (13, 19, 18),
    (11, 13, 19),
    (13, 8, 17),
    (12, 13, 10),
    (13, 16, 9),
    (7, 15, 11),
    (5, 11, 14),
    (18, 12, 20),
    (21, 7, 16),
)
HEFT_EDGES = {
    (1, 2): 18,
    (1, 3): 12,
    (1, 4): 9,
    (1, 5): 11,
    (1, 6): 14,
    (2, 8): 19,
    (2, 9): 16,
    (3, 7): 23,
    (4, 8): 27,
    (4, 9): 23,
    (5, 9): 13,
    (6, 8): 15,
    (7, 10): 17,
    (8, 10): 11,
    (9, 10): 13,
}
PEFT_NS = (
    (22, 21, 36),
    (22, 18, 18),
    (32, 27, 43),
    (7, 10, 4),
    (29, 27, 35),
    (26, 17, 24),
    (14, 25, 30),
    (29, 23, 36),
    (15, 21, 8),
    (13, 16, 33),
)
PEFT_EDGES = {
    (1, 2): 17,
    (1, 3): 31,
    (1, 4): 29,
    (1, 5): 13,
    (1, 6): 7,
    (2, 8): 3,
    (2, 9): 30,
    (3, 7): 16,
    (4, 8): 11,
    (4, 9): 7,
    (5, 9): 57,
    (6, 8): 5,
    (7, 10): 9,
    (8, 10): 42,
    (9, 10): 7,
}


def canonical(table, edges):
    """Ten tasks on three unequal processors, as drawn in the HEFT and PEFT papers; a byte takes a ns."""
    names = ("P1", "P2", "P3")
    devices = tuple(device(name, name) for name in names)
    links = tuple(
        Link(source=a, destination=b, latency_ns=0, bandwidth_bytes_per_s=1e9) for a in names for b in names if a != b
    )
    units = tuple(Unit(name=f"T{i + 1}", exec_ns=dict(zip(names, row, strict=True))) for i, row in enumerate(table))
    tensors = tuple(
        Tensor(name=f"T{a}-T{b}", size_bytes=size, producer=f"T{a}", consumers=(f"T{b}",))
        for (a, b), size in edges.items()
    )
    cluster = Cluster(name="three", devices=devices, links=links)
    return Problem(name="canonical", cluster=cluster, units=units, tensors=tensors)


def heft_canonical():
    return canonical(HEFT_NS, HEFT_EDGES)


def peft_canonical():
    return canonical(PEFT_NS, PEFT_EDGES)


# Strategies are made once: a new one for every draw takes longer than the draw.
BOOLEANS = st.booleans()
PIECES = st.sampled_from([(), ((4, 9), (16, 11)), ((0, 2), (8, 3))])
BANDWIDTHS = st.sampled_from([1e9, 3e8, 7.5e9])
TIMES_NS = st.one_of(st.integers(0, 12), st.just(2.5))
LAYOUT_COSTS_NS = st.sampled_from([{}, {"x": 2}, {"x": 1.5, "y": 3}])
MODES = st.sampled_from(["liveness", "liveness", "sum"])
WEIGHTS = {"w0": 5, "w1": 7}
SLOWED = st.dictionaries(
    st.sampled_from(["conv", "linear", "*"]),
    st.dictionaries(st.sampled_from(["conv", "linear", "*"]), st.sampled_from([1.0, 1.25, 1.5, 2.3, 3.0]), max_size=3),
    max_size=3,
)
PHASES = st.sampled_from(["forward", "forward", "backward", "update"])
FORWARD = st.just("forward")


@cache
def whole(low, high):
    """Whole numbers from `low` to `high`."""
    return st.integers(low, high)


@cache
def one_of(*values):
    """One of the values."""
    return st.sampled_from(values)


@cache
def some_of(*values, **sizes):
    """A list of different ones of the values."""
    return st.lists(st.sampled_from(values), unique=True, **sizes)


@st.composite
def clusters(draw):
    """Two to four devices with slots, dispatch and kinds of copies; links complete, or only by way of the first."""
    count = draw(whole(2, 4))
    names = [f"d{i}" for i in range(count)]
    devices = tuple(
        device(
            name,
            draw(one_of("x", "y")),
            memory_bytes=10**6,
            slots=draw(whole(1, 2)),
            dispatch_ns=draw(whole(0, 3)),
            blocking_copy=draw(BOOLEANS),
            own_copies=draw(BOOLEANS),
        )
        for name in names
    )
    hub = draw(BOOLEANS)
    links = []
    for a in names:
        for b in names:
            if a != b and (not hub or names[0] in {a, b}):
                pieces = draw(PIECES)
                links.append(
                    Link(
                        source=a,
                        destination=b,
                        latency_ns=draw(whole(0, 6)),
                        bandwidth_bytes_per_s=draw(BANDWIDTHS),
                        port=draw(one_of("", "", "bus", a)),
                        points=pieces,
                    )
                )
    host = draw(one_of("", names[-1]))
    return Cluster(name="random", devices=devices, links=tuple(links), host=host)


CLUSTERS = clusters()


@st.composite
def problems(draw, max_units=9):
    """A random acyclic problem in which every unit runs on at least one device."""
    cluster = draw(CLUSTERS)
    types = sorted({d.type for d in cluster.devices})
    names = [f"u{i}" for i in range(draw(whole(1, max_units)))]
    units, tensors = [], []
    for name in names:
        able = draw(some_of(*types, min_size=1)) if draw(BOOLEANS) else types
        times = {t: draw(TIMES_NS) for t in able}
        used = draw(some_of(*WEIGHTS))
        units.append(Unit(name=name, exec_ns=times, weights=tuple(used), workspace_bytes=draw(whole(0, 4))))
    for m in range(draw(whole(0, 2 * len(names)))):
        maker = draw(whole(-1, len(names) - 1))
        later = names[maker + 1 :]
        readers = draw(some_of(*later, max_size=3)) if later else []
        tensors.append(
            Tensor(
                name=f"t{m}",
                size_bytes=draw(whole(0, 20)),
                producer=names[maker] if maker >= 0 else "",
                consumers=tuple(readers),
                home=draw(one_of("", cluster.devices[0].name)) if maker < 0 else "",
                output=draw(BOOLEANS),
                boundary_ns=draw(LAYOUT_COSTS_NS),
            )
        )
    mode = draw(MODES)
    return Problem(
        name="random", cluster=cluster, units=tuple(units), tensors=tuple(tensors), weights=WEIGHTS, memory_mode=mode
    )


@st.composite
def rich(draw, max_units=9):
    """A random problem that may be a training step with optimiser state, on slots that slow one another."""
    problem = draw(problems(max_units=max_units))
    interference = {"x": draw(SLOWED)} if draw(BOOLEANS) else {}
    phase = PHASES if draw(BOOLEANS) else FORWARD
    units = tuple(replace(unit, kind=draw(one_of("", "conv", "linear")), phase=draw(phase)) for unit in problem.units)
    return replace(problem, units=units, interference=interference, optimizer_state=draw(one_of(0.0, 1.5, 2.0)))


def without_own_copies(problem: Problem) -> Problem:
    """`problem` on devices that leave copying to links, which list schedules assume."""
    devices = tuple(replace(device, own_copies=False) for device in problem.cluster.devices)
    return replace(problem, cluster=replace(problem.cluster, devices=devices))


@st.composite
def placed(draw, source=problems, max_units=9):
    """A random problem and a device for every unit of it that its classes allow."""
    problem = draw(source(max_units=max_units))
    names = class_names(problem)
    able: dict[str, set[str]] = {}
    for unit, name in zip(problem.units, names, strict=True):
        own = {d.name for d in problem.cluster.devices if d.type in unit.exec_ns}
        able[name or f"unit {unit.name}"] = able.get(name or f"unit {unit.name}", own) & own
    assume(all(able.values()))
    chosen = {key: draw(one_of(*sorted(found))) for key, found in able.items()}
    places = {unit.name: chosen[name or f"unit {unit.name}"] for unit, name in zip(problem.units, names, strict=True)}
    return problem, places
