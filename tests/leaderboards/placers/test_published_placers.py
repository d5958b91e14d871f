"""Published heuristics on cases worked by hand."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from tests.contracts.test_placers import branchy
from tests.leaderboards import examples
from tests.leaderboards.examples import canonical, device, graph, heft_canonical, pair, peft_canonical, star

from opmark.core.errors import SubmissionError
from opmark.leaderboards.bounds.integer_program import IntegerProgram
from opmark.leaderboards.placers.duet import phases
from opmark.leaderboards.placers.etf import etf_schedule
from opmark.leaderboards.placers.fastt import critical_path, dpos_schedule
from opmark.leaderboards.placers.sct import favourite_children, sct_schedule
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.cuts.acyclic_regions import acyclic_regions
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, cut_ns, device_rows
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.lists.ranks import upward_rank


def test_etf_takes_what_can_start_first() -> None:
    # a and c can start at once: c ends earlier and goes first; b may start on d1 at 10, elsewhere at 30
    problem = graph({"a": 10, "b": 5, "c": 8}, [("a", ["b"])], pair(20))
    schedule, _ = etf_schedule(problem)
    assert schedule.device.tolist() == [1, 1, 0]
    assert schedule.start_ns.tolist() == [0, 10, 0]
    assert attempt(problem, "etf", budget_s=1).evaluation.cost == 15


def test_sct_keeps_a_device_for_the_favourite() -> None:
    # T1's tensor for T2 takes 30, that for T3 takes 2; T2 also needs T4, which ends at 11
    problem = canonical([(10, 10, 10)] * 3 + [(11, 11, 11)], {(1, 2): 30, (1, 3): 2, (4, 2): 0})
    favourite, wake = favourite_children(problem, seconds=10)
    assert favourite[0] == 1
    assert wake[0] == 30
    sct, etf = sct_schedule(problem)[0], etf_schedule(problem)[0]
    assert sct.start_ns.tolist() == [0, 11, 12, 0]
    assert sct.device[0] == sct.device[1] != sct.device[2]
    assert max(sct.end_ns) == 22
    assert max(etf.end_ns) == 30, "without favourites T3 takes T1's device and T2 waits for it"
    assert attempt(problem, "sct", budget_s=1).evaluation.cost == 22


def test_duet_places_branches_apart() -> None:
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(20))
    assert phases(problem, groups_of(problem)) == [[[0]], [[1], [2]], [[3]]]
    # 10, then 20 to send and 50 to run the other branch, 20 back, 10
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 110


def test_duet_corrects_what_the_profile_could_not_see() -> None:
    # the transfers eat up what the second device saves: the correction brings the branch back
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(60))
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 120


def test_fastt_keeps_the_critical_path_together() -> None:
    problem = heft_canonical()
    assert critical_path(problem, upward_rank(problem)) == [0, 1, 8, 9], "as Topcuoglu 2002 draws it"
    schedule, _ = dpos_schedule(problem, contention=False)
    assert schedule.device[[0, 1, 8, 9]].tolist() == [1] * 4, "P2 runs it in 54, P3 in 63, P1 in 66"
    assert attempt(problem, "fastt", budget_s=5).evaluation.cost == pytest.approx(max(dpos_schedule(problem)[0].end_ns))


def chain(times: list[int], devices: int, link_ns: int = 0) -> Problem:
    names = [f"u{number}" for number in range(len(times))]
    edges = [(names[k], [names[k + 1]]) for k in range(len(times) - 1)]
    problem = graph(dict(zip(names, times, strict=True)), edges, star(link_ns, devices=devices))
    return replace(problem, objective="throughput")


def test_pesto_orders_and_places_at_once() -> None:
    assert attempt(peft_canonical(), "pesto", budget_s=20).evaluation.cost == 113


def test_pesto_balances_loads() -> None:
    assert attempt(chain([3, 3, 2, 2, 2], 2), "pesto", budget_s=10).evaluation.cost == 6


def test_regions_never_wait_for_each_other() -> None:
    problem = branchy(blocks=6)
    groups = groups_of(problem)
    regions = acyclic_regions(problem, groups, 7)
    assert regions.count == 7
    assert all(a < b for a, b in regions.traffic_ns)
    assert (regions.run_ns >= 0).any(axis=1).all()
    assert regions.weight_bytes.sum() == groups.weight_bytes.sum()


def test_an_integer_program() -> None:
    # the least cost that covers 2a + 3b >= 4 with cost >= a + b, a and b being 0 or 1
    program = IntegerProgram()
    a, b = program.binary(), program.binary()
    program.add({0: 1.0, a: -1.0, b: -1.0}, 0.0)
    program.add({a: 2.0, b: 3.0}, 4.0)
    values = program.solve(5)
    assert values is not None
    assert np.rint(values).tolist() == [2, 1, 1]
    program.add({a: -1.0}, 0.0)
    assert program.solve(5) is None, "now there is none"
    assert program.solve(0) is None


def test_gpipe_balances_compute() -> None:
    found = attempt(chain([4, 1, 1, 2, 2, 2], 3), "gpipe", budget_s=1).evaluation
    assert found.cost == 4
    assert found.placement.device.tolist() == [0, 1, 1, 1, 2, 2]


def test_gpipe_needs_room_for_all_micro_batches() -> None:
    cluster = replace(star(0, devices=2), devices=tuple(device(f"d{n}", memory_bytes=25) for n in range(2)))
    problem = chain([5, 5, 5, 5], 2)
    tensors = tuple(replace(tensor, size_bytes=5) for tensor in problem.tensors)
    stashing = replace(problem, cluster=cluster, tensors=tensors, memory_mode="stash", micro_batches=2)
    assert attempt(stashing, "gpipe", budget_s=1).evaluation.cost == 10
    many = replace(stashing, micro_batches=64)
    assert set(attempt(many, "gpipe", budget_s=1).evaluation.placement.device.tolist()) == {0}
    assert attempt(many, "dapple", budget_s=1).evaluation.cost == 10, "1F1B keeps two in flight"


def test_dapple_looks_at_transfers() -> None:
    # a cut costs 50 and a device only saves 12: one stage
    assert attempt(chain([6, 6, 6, 6], 2, 50), "dapple", budget_s=1).evaluation.cost == 24
    assert attempt(chain([6, 6, 6, 6], 2, 1), "dapple", budget_s=1).evaluation.cost == 12


def test_dapple_uses_replicas_where_they_are_allowed() -> None:
    found = attempt(replace(chain([6, 6], 4, 1), replication=True), "dapple", budget_s=1).evaluation
    assert found.cost == 3
    assert found.placement.replicas


def test_chimera_folds_the_pipeline() -> None:
    problem = chain([5] * 8, 2)
    found = attempt(problem, "chimera", budget_s=1).evaluation
    assert found.placement.device.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    assert found.cost == 20
    straight = attempt(replace(problem, contiguous=True), "chimera", budget_s=1).evaluation
    assert straight.placement.device.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_stages_are_cut_where_little_travels() -> None:
    problem = canonical([(4, 4, 4)] * 4, {(1, 2): 1, (2, 3): 90, (3, 4): 1})
    blocks = blocks_of(problem)
    assert device_rows(problem, blocks) == [0, 1, 2]
    assert cut_ns(problem, blocks).tolist() == [0, 1, 90, 1]
    assert balanced_stages(blocks, [0, 1]).tolist() == [0, 0, 1, 1]
    assert balanced_stages(blocks, [0, 1], boundary_ns=cut_ns(problem, blocks)).tolist() in ([0, 0, 0, 1], [0, 1, 1, 1])


def test_cp_sat_proves_the_canonical_optima() -> None:
    pytest.importorskip("ortools", reason="the extra `solvers` is not installed")
    free = replace(heft_canonical(), profile="contention_free")
    assert attempt(free, "cp-sat", budget_s=60).evaluation.cost == 73
    assert attempt(peft_canonical(), "cp-sat", budget_s=60).evaluation.cost == 113
    assert attempt(chain([3, 3, 2, 2, 2], 2), "cp-sat", budget_s=10).evaluation.cost == 6


@settings(max_examples=25, deadline=None)
@given(problem=examples.problems(max_units=6))
def test_opmark_is_as_good_as_cp_sat(problem: Problem) -> None:
    pytest.importorskip("ortools", reason="the extra `solvers` is not installed")
    try:
        exact = attempt(problem, "cp-sat", budget_s=10)
    except SubmissionError:
        assume(False)
    assert attempt(problem, "opmark", budget_s=10).evaluation.cost <= exact.evaluation.cost * 1.01


def test_cp_sat_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(SubmissionError, match="cp-sat needs OR-tools"):
        attempt(heft_canonical(), "cp-sat", budget_s=1)
