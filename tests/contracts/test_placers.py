"""Every registered placer: valid, never below a bound, the same for a seed."""

from dataclasses import replace
from functools import cache

import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.placer import PLACERS


def branchy(memory_bytes: int = 2**30, *, blocks: int = 3) -> Problem:
    """A stem, blocks of three branches, and joins, on a slow host and two unlike accelerators."""
    names = ("host", "fast", "odd")
    devices = tuple(
        Device(name=name, type=name, memory_bytes=memory_bytes, slots=1 + (name == "odd"), dispatch_ns=3)
        for name in names
    )
    links = tuple(
        Link(source=a, destination=b, latency_ns=40, bandwidth_bytes_per_s=2e9, port="host" if "host" in {a, b} else "")
        for a in names
        for b in names
        if a != b
    )
    units = [Unit(name="stem", exec_ns={"host": 90, "fast": 30, "odd": 60}, weights=("w",))]
    tensors = [Tensor(name="in", size_bytes=100, consumers=("stem",))]
    last = "stem"
    for block in range(blocks):
        branches = [f"{block}.{branch}" for branch in range(3)]
        tensors.append(Tensor(name=f"{last}.out", size_bytes=60, producer=last, consumers=tuple(branches)))
        last = f"{block}.join"
        for number, name in enumerate(branches):
            times = {"host": 300 - 90 * number, "fast": 80 + 20 * number, "odd": 120 - 20 * number}
            if number == 1:
                del times["odd"]
            units.append(Unit(name=name, exec_ns=times, colocation="tied" if number == 2 else "", weights=("w",)))
            tensors.append(Tensor(name=f"{name}.out", size_bytes=20, producer=name, consumers=(last,)))
        units.append(Unit(name=last, exec_ns={"host": 0, "fast": 5, "odd": 0}, workspace_bytes=10))
    tensors.append(Tensor(name="out", size_bytes=80, producer=last, output=True))
    cluster = Cluster(name="three", devices=devices, links=links, host="host")
    return Problem(name="branchy", cluster=cluster, units=tuple(units), tensors=tuple(tensors), weights={"w": 500})


def training(layers: int = 6) -> Problem:
    """Forward, backward and update of a chain, weights tied to their device, on a host and two accelerators."""
    cluster = branchy().cluster
    types = {"host": 9, "fast": 1, "odd": 2}
    units, tensors = [], []
    for layer in range(layers):
        for phase, work in (("forward", 50), ("backward", 100), ("update", 20)):
            units.append(
                Unit(
                    name=f"{phase}{layer}",
                    exec_ns={kind: work * factor for kind, factor in types.items()},
                    split_ns={kind: (work * factor * 0.6, work * factor * 0.4) for kind, factor in types.items()},
                    weights=(f"w{layer}",),
                    phase=phase,
                )
            )
        after = (f"forward{layer + 1}",) if layer + 1 < layers else (f"backward{layer}",)
        readers = tuple(dict.fromkeys((*after, f"backward{layer}")))
        tensors.append(Tensor(name=f"a{layer}", size_bytes=40, producer=f"forward{layer}", consumers=readers))
        before = (f"backward{layer - 1}",) if layer else ()
        readers = (*before, f"update{layer}")
        tensors.append(Tensor(name=f"g{layer}", size_bytes=40, producer=f"backward{layer}", consumers=readers))
    tensors.append(Tensor(name="in", size_bytes=40, consumers=("forward0",)))
    return Problem(
        name="training",
        cluster=cluster,
        units=tuple(units),
        tensors=tuple(tensors),
        weights={f"w{layer}": 30 for layer in range(layers)},
        optimizer_state=2.0,
    )


# Placers that need a package of the extra `solvers`.
NEEDS = {"cp-sat": "ortools", "pesto": "ortools", "exact-fleets": "ortools", "heterbo": "sklearn"}

PROBLEMS = {
    "training": training(),
    "replicas": replace(training(), replication=True),
    "pipeline": replace(training(), objective="throughput", memory_mode="stash", micro_batches=4, replication=True),
    "heft": heft_canonical(),
    "peft": peft_canonical(),
    "branchy": branchy(),
    "sum of memory": replace(branchy(), memory_mode="sum"),
    "contiguous": replace(branchy(), contiguous=True),
    "contiguous loads": replace(branchy(), contiguous=True, profile="maxload_serial", objective="throughput"),
    "contiguous pipeline": replace(training(), contiguous=True, objective="throughput"),
    "one device": replace(
        branchy(), cluster=Cluster(name="one", devices=(Device(name="fast", type="fast", memory_bytes=2**30),))
    ),
}

# Where no judge is compiled, a search takes a millisecond per step: so many steps show all of its phases.
STEPS = {
    "opmark.leaderboards.search.portfolio.FIRST_STEPS": 4,
    "opmark.leaderboards.search.portfolio.LAST_PER_PAIR": 5,
    "opmark.leaderboards.placers.flexflow_mcmc.PER_GROUP": 15,
    "opmark.leaderboards.placers.simulated_annealing.FIRST_PER_GROUP": 10,
    "opmark.leaderboards.placers.simulated_annealing.LAST_PER_GROUP": 60,
}


@cache
def bounds_of(posed: str) -> dict[str, int]:
    """The bounds of a problem, computed once for all placers."""
    return bounds(PROBLEMS[posed])


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches end after fewer steps, long before their budget, which would make them depend on the clock."""
    for name, steps in STEPS.items():
        monkeypatch.setattr(name, steps)


@pytest.mark.parametrize("name", PLACERS.names())
@pytest.mark.parametrize("posed", PROBLEMS)
def test_a_placer_is_valid_bounded_and_repeatable(name: str, posed: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason="the extra `solvers` is not installed")
    problem = PROBLEMS[posed]
    first = attempt(problem, name, budget_s=30, seed=7)
    for bound, value in bounds_of(posed).items():
        assert first.evaluation.cost >= value, bound
    again = attempt(problem, name, budget_s=30, seed=7)
    assert again.solution == first.solution
    assert first.solution.placer == name


@pytest.mark.parametrize("name", PLACERS.names())
def test_a_placer_says_what_it_does(name: str) -> None:
    assert PLACERS.load(name).summary
    assert "\n" not in PLACERS.load(name).summary
