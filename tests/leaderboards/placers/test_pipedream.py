"""PipeDream against every pipeline of small chains."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards.examples import graph, star
from tests.leaderboards.reference_loads import best_pipeline

from opmark.leaderboards.scoring.attempt import attempt


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 40)), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([1e9, 4e9, 2.5e8]),
)
def test_pipedream_finds_the_best_pipeline(layers: list[tuple[int, int]], machines: int, rate: float) -> None:
    names = [f"u{number}" for number in range(len(layers))]
    cluster = star(0, machines)
    cluster = replace(cluster, links=tuple(replace(link, bandwidth_bytes_per_s=rate) for link in cluster.links))
    times = dict(zip(names, (ns for ns, _ in layers), strict=True))
    problem = graph(times, [(a, [b]) for a, b in pairwise(names)], cluster)
    units = tuple(replace(unit, weights=(f"w{unit.name}",)) for unit in problem.units)
    weights = {f"w{name}": size for name, (_, size) in zip(names, layers, strict=True)}
    problem = replace(problem, units=units, weights=weights, replication=True, profile="pipedream_stage")
    found = attempt(problem, "pipedream", budget_s=30).evaluation.schedule.value
    expected = best_pipeline([ns for ns, _ in layers], [size for _, size in layers], machines, Fraction(rate))
    assert float(found) == pytest.approx(float(expected), rel=1e-12)
