"""Wishes made contiguous: always valid, as little changed as can be, and every placer answers where it is asked for."""

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.test_placers import branchy
from tests.leaderboards import examples
from tests.leaderboards.examples import graph, star

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.problem.contiguity import returning_unit
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.repair import fitting, held_together, quick_split, together_rows
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.simulator.simulate import simulate_many

ROOT = Path(__file__).resolve().parents[4]
EXTERNAL = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data"))


def chain(count: int) -> Problem:
    names = [f"u{number}" for number in range(count)]
    problem = graph(dict.fromkeys(names, 10), [(a, [b]) for a, b in pairwise(names)], star(0, devices=3))
    return replace(problem, contiguous=True, profile="maxload_serial", objective="throughput")


def test_what_is_wished_for_most_stays() -> None:
    wish = Placement(device=np.array([0, 0, 1, 0, 0, 2, 1, 2, 2]), priority=np.arange(9))
    repaired = held_together(chain(9), wish)
    # the two of device 1 that stand alone give way: seven of nine stay
    assert repaired.device.tolist() == [0, 0, 0, 0, 0, 2, 2, 2, 2]
    assert repaired.priority is wish.priority


def test_what_is_contiguous_or_need_not_be_stays() -> None:
    problem = chain(4)
    for wish in (Placement(device=np.array([1, 1, 0, 2])), Placement(device=np.array([0, 1, 0, 1]))):
        assert held_together(replace(problem, contiguous=False), wish) is wish
    fine = Placement(device=np.array([1, 1, 0, 2]))
    assert held_together(problem, fine) is fine


def test_a_stretch_has_room_for_what_it_holds() -> None:
    problem = chain(6)
    units = tuple(replace(unit, weights=(f"w{n}",)) for n, unit in enumerate(problem.units))
    devices = tuple(replace(device, memory_bytes=200) for device in problem.cluster.devices)
    cluster = replace(problem.cluster, devices=devices)
    tight = replace(problem, units=units, weights={f"w{n}": 100 for n in range(6)}, cluster=cluster)
    repaired = held_together(tight, Placement(device=np.array([0, 1, 0, 0, 1, 0])))
    assert sorted(np.bincount(repaired.device).tolist()) == [2, 2, 2]
    impossible = replace(tight, weights={f"w{n}": 101 for n in range(6)})
    wish = Placement(device=np.array([0, 1, 0, 0, 1, 0]))
    assert held_together(impossible, wish) is wish
    assert quick_split(impossible, blocks_of(impossible)) is None
    assert fitting(impossible, blocks_of(impossible), None) is None


@settings(max_examples=150, deadline=None)
@given(examples.problems(max_units=9), st.integers(0, 2**16), st.sampled_from(["opsim1", "maxload_serial"]))
def test_a_repaired_wish_is_contiguous_and_runs(problem: Problem, seed: int, profile: str) -> None:
    problem = replace(problem, contiguous=True, profile=profile, objective="throughput")
    try:
        groups = groups_of(problem)
    except PlacementError:
        return
    draw = np.random.default_rng(seed)
    wish = groups.spread([draw.choice(np.flatnonzero(row)) for row in groups.allowed])
    found = held_together(problem, Placement(device=wish))
    if returning_unit(problem, found.device) is not None:
        assert quick_split(problem, blocks_of(problem)) is None, "there was a split"
        return
    if returning_unit(problem, wish) is not None:
        assert Incumbent(problem, "mine", 1.0).value_of(found) is not None
    assert together_rows(problem, wish[None, :]).tolist() == [found.device.tolist()]


def test_searches_start_from_what_is_valid() -> None:
    problem = replace(branchy(blocks=5), contiguous=True)
    groups = groups_of(problem)
    rows = starting_rows(problem, groups)
    assert (simulate_many(problem, groups.spread(rows)) < INVALID_COST).all()


@pytest.mark.skipif(not (EXTERNAL / "dnn-partitioning").is_dir(), reason="OPMARK_EXTERNAL_DATA has no dnn-partitioning")
@pytest.mark.parametrize("name", PLACERS.names())
@pytest.mark.parametrize("file", ["layer_resnet50", "operator_bert3"])
def test_every_placer_answers_published_contiguous_problems(name: str, file: str) -> None:
    if name in {"cp-sat", "pesto"}:
        pytest.importorskip("ortools", reason="the extra `solvers` is not installed")
    path = EXTERNAL / "dnn-partitioning" / f"throughput_{file}_inference.json"
    problem = IMPORTERS.load("dnn-partitioning").read(path, ImportOptions())
    assert problem.contiguous
    found = attempt(problem, name, budget_s=0.2).evaluation
    assert found.cost >= max(bounds(problem).values())
