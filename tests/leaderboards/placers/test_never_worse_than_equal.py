"""Unequal devices are worth a search only where it never ends worse than the search of equal ones."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opmark.core.errors import SubmissionError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import GoalLimits, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt

MS = 1_000_000
BUDGET_S = 1.0
OBJECTIVES = ("cost", "latency", "rent", "throughput", "hypervolume")


@st.composite
def pools(draw: st.DrawFn, objective: str) -> Problem:
    """Up to five units in a random order of precedence, two or three types, up to two devices of each."""
    units = draw(st.integers(2, 5))
    prices = draw(st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0, 5.0]), min_size=2, max_size=3))
    counts = [draw(st.integers(1, 2)) for _ in prices]
    types = [f"x{number}" for number in range(len(prices))]
    times = [[draw(st.integers(1, 20)) * MS for _ in types] for _ in range(units)]
    edges = [(a, b) for b in range(units) for a in range(b) if draw(st.booleans())]
    link_ns = draw(st.sampled_from([1_000, MS, 5 * MS]))
    devices = [
        Device(name=f"{kind}-{number}", type=kind, memory_bytes=2**30, price_per_hour=price)
        for kind, price, count in zip(types, prices, counts, strict=True)
        for number in range(count)
    ]
    devices.append(Device(name="storage", type="storage", memory_bytes=2**40))
    links = tuple(
        Link(source=a.name, destination=b.name, latency_ns=link_ns, bandwidth_bytes_per_s=1e12, port=f"{a.name}>")
        for a in devices
        for b in devices
        if a is not b
    )
    slowest = max(sum(row[kind] for row in times) for kind in range(len(types))) + 4 * link_ns
    share = draw(st.sampled_from([0.5, 0.8, 1.2]))
    limits = {
        "cost": GoalLimits(latency_ns=int(share * slowest)),
        "latency": GoalLimits(price_per_hour=share * sum(prices)),
        "rent": GoalLimits(period_ns=int(share * slowest)),
        "throughput": GoalLimits(price_per_hour=share * sum(prices)),
        "hypervolume": GoalLimits(latency_ns=slowest, price_per_hour=1.5 * sum(prices)),
    }
    names = [f"u{number}" for number in range(units)]
    return Problem(
        name="pool",
        cluster=Cluster(name="pool", devices=tuple(devices), links=links, host="storage"),
        units=tuple(
            Unit(name=name, exec_ns=dict(zip(types, row, strict=True))) for name, row in zip(names, times, strict=True)
        ),
        tensors=(
            Tensor(name="in", size_bytes=100, consumers=(names[0],)),
            *(
                Tensor(
                    name=f"{name}.out",
                    size_bytes=100,
                    producer=name,
                    consumers=tuple(names[b] for a, b in edges if a == number),
                    output=number == units - 1,
                )
                for number, name in enumerate(names)
                if number == units - 1 or any(a == number for a, _ in edges)
            ),
        ),
        objective=objective,
        unit="$" if objective in {"cost", "rent"} else "ns",
        replication=objective in {"rent", "throughput"},
        limits=limits[objective],
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_search_never_costs_more_than_the_best_fleet_of_equal_devices(objective: str, data: st.DataObject) -> None:
    problem = data.draw(pools(objective))
    try:
        equal = attempt(problem, "equal-types", budget_s=BUDGET_S)
    except SubmissionError:  # equal devices cannot meet the goal
        return
    assert attempt(problem, "opmark", budget_s=BUDGET_S).evaluation.cost <= equal.evaluation.cost
