"""Loads of stages against the simulator's, for any placement with replicas."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.stages.stage_loads import HOME, Stage, StageLoader, StageLoads
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.steady_state import server_loads


def total(loads: StageLoads, labels: list[int]) -> np.ndarray:
    """The load of every server if each group is in the stage with its label."""
    found = sum(loads.group[group, label] for group, label in enumerate(labels))
    for tensor in loads.tensors:
        source = HOME if tensor.producer == HOME else labels[tensor.producer]
        wanted = {labels[reader] for reader in tensor.readers}
        for label in wanted - {source}:
            found = found + (tensor.between[label] if source == HOME else tensor.between[source, label])
        if tensor.output is not None and loads.host not in wanted:
            found = found + tensor.output[source]
    return found


def placed(problem: Problem, stages: list[Stage], labels: list[int]) -> Placement:
    groups = groups_of(problem)
    device = groups.spread(np.array([stages[label][0] for label in labels]))
    replicas = {stages[label][0]: stages[label][1:] for label in set(labels) if len(stages[label]) > 1}
    return Placement(device=device, replicas=replicas)


@st.composite
def staged(draw) -> tuple[Problem, list[Stage], list[int]]:
    problem = replace(draw(examples.rich(max_units=5)), objective="throughput", replication=draw(st.booleans()))
    # A graph input that is an output as well is sent to the host by the simulator alone.
    tensors = tuple(replace(one, output=one.output and one.producer != "") for one in problem.tensors)
    problem = replace(problem, tensors=tensors)
    groups = groups_of(problem)
    devices = draw(st.permutations(range(len(problem.cluster.devices))))
    size = draw(st.integers(1, len(devices))) if problem.replication else 1
    stages = [tuple(devices[:size]), *((one,) for one in devices[size:])]
    if not problem.replication:
        stages = sorted(stages)
    able = [[label for label, stage in enumerate(stages) if row[list(stage)].all()] for row in groups.allowed]
    if not all(able):
        stages = sorted((one,) for one in devices)
        able = [np.flatnonzero(row).tolist() for row in groups.allowed]
    return problem, stages, [draw(st.sampled_from(row)) for row in able]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_server_gets_more_than_in_the_simulator(data: st.DataObject) -> None:
    try:
        problem, stages, labels = data.draw(staged())
    except PlacementError:
        return
    loader = StageLoader(problem, groups_of(problem))
    loads = loader.loads(stages)
    found = total(loads, labels)
    assert (found <= loads.most()).all()
    simulated = server_loads(problem, placed(problem, stages, labels), profile_named("opsim1"))
    slots = problem.arrays.device_slots.tolist()
    devices, ports = len(slots), len(simulated.port_ns)
    exact = [load * count for load, count in zip(simulated.device_ns, slots, strict=True)] + list(simulated.port_ns)
    for mine, theirs in zip(found[: devices + ports].tolist(), exact, strict=True):
        assert mine <= theirs * loader.parts
        if not any(len(stage) > 1 for stage in stages):
            assert mine == theirs * loader.parts


def every_labelling(loads: StageLoads) -> Iterator[list[int]]:
    """All labels that the groups can have."""
    from itertools import product

    yield from map(list, product(*(np.flatnonzero(row).tolist() for row in loads.allowed)))
