"""Standings: ranks, reasons of invalid answers, references, and rows to print."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import graph, heft_canonical, pair, peft_canonical, star
from tests.leaderboards.scoring.ranked import ranked

from opmark.core.errors import NothingSelectedError
from opmark.core.files import json_text
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.standings import rank_solutions, standings_table

PLACERS = ("best-single-device", "heft", "local-search", "random")


def test_standings_rank_placers_and_keep_schedules() -> None:
    problems = [heft_canonical(), replace(peft_canonical(), name="second")]
    found = ranked(problems, PLACERS, budget_s=20)
    assert [row.rank for row in found.rows] == [1, 2, 3, 4]
    assert [row.name for row in found.rows] == ["local-search", "heft", "best-single-device", "random"]
    assert found.rows[0].score == 1.0
    assert found.evaluations["heft", "second"].cost == 140
    assert set(found.planning_s) == {(name, problem.name) for name in PLACERS for problem in problems}
    single = next(row for row in found.rows if row.name == "best-single-device")
    assert single.metrics["gain"] == 0


def test_the_same_solutions_give_the_same_bytes_in_any_order() -> None:
    problem = heft_canonical()
    one = Solution(device={unit.name: "P1" for unit in problem.units})
    two = Solution(device={unit.name: "P2" for unit in problem.units})
    first = rank_solutions([problem], {"b": {problem.name: one}, "a": {problem.name: two}})
    again = rank_solutions([problem], {"a": {problem.name: two}, "b": {problem.name: one}})
    assert json_text(first.file()) == json_text(again.file())
    assert "planning" not in json_text(first.file())


def test_an_invalid_or_missing_solution_scores_the_least_and_says_why() -> None:
    problem = heft_canonical()
    good = Solution(device={unit.name: "P1" for unit in problem.units})
    found = rank_solutions(
        [problem], {"good": {problem.name: good}, "bad": {problem.name: Solution(device={})}, "no": {}}
    )
    assert [row.name for row in found.rows] == ["good", "bad", "no"]
    assert found.rows[1].score == pytest.approx(0.01)
    assert found.rows[1].results[0].reason.startswith("10 of 10 units have no device")
    assert found.rows[2].results[0].reason == "no solution was submitted"


def test_a_frozen_reference_does_not_move_with_rivals() -> None:
    problem = replace(heft_canonical(), reference=ReferenceCosts(bound_ns=41, best_known_ns=80))
    alone = ranked([problem], ["heft"], budget_s=1)
    among = ranked([problem], ["heft", "local-search"], budget_s=20)
    score = {row.name: row.score for row in among.rows}
    assert score["heft"] == alone.rows[0].score == pytest.approx(80 / 93)


def test_instances_with_nothing_to_win_are_shown_but_not_scored() -> None:
    chain = graph({"a": 10, "b": 10}, [("a", ["b"])], pair())
    found = ranked([chain, heft_canonical()], ["best-single-device", "heft"], budget_s=1)
    scored = {result.problem: result.scored for result in found.rows[0].results}
    assert scored == {"worked": False, "canonical": True}
    only = ranked([chain], ["best-single-device"], budget_s=1)
    assert only.note
    assert only.rows[0].score == 1.0


def test_nothing_to_rank_is_said() -> None:
    with pytest.raises(NothingSelectedError):
        ranked([], ["heft"], budget_s=1)


def test_a_problem_no_device_holds_alone_counts() -> None:
    wide = graph(dict.fromkeys("ab", 10), [], star(devices=2))
    units = tuple(replace(unit, workspace_bytes=2**29 + 1) for unit in wide.units)
    crowded = replace(wide, units=units, memory_mode="sum")
    found = ranked([crowded], ["m-topo", "local-search"], budget_s=5)
    assert all(row.results[0].single in {None, 10} for row in found.rows)
    assert [row.results[0].cost for row in found.rows] == [10, 10]


def test_costs_without_intervals_have_no_bad_day() -> None:
    standings = ranked([heft_canonical()], ["heft", "round-robin"], budget_s=1)
    entries = standings_table(standings, instances=True)
    assert [entry["name"] for entry in entries] == [row.name for row in standings.rows]
    for entry in entries:
        assert (entry["robust_quality"], entry["p95_quality"]) == (None, None)
        (instance,) = entry["instances"]
        assert entry["planning_s"] == instance["planning_s"] == standings.planning_s[entry["name"], instance["problem"]]
        assert entry["score"] == pytest.approx(instance["quality"])
        assert instance["median_ns"] is None
    assert "instances" not in standings_table(standings)[0]


def test_a_problem_that_all_good_entries_solve_alike_is_shown_only() -> None:
    hard = replace(heft_canonical(), reference=ReferenceCosts(bound_ns=41, best_known_ns=75))
    easy = replace(peft_canonical(), name="easy", reference=ReferenceCosts(bound_ns=41, best_known_ns=113))
    shared = Solution(device={unit.name: "P1" for unit in easy.units})
    other = {unit.name: "P2" for unit in hard.units}
    solutions = {
        "one": {hard.name: Solution(device={unit.name: "P1" for unit in hard.units}), "easy": shared},
        "two": {hard.name: Solution(device=other), "easy": shared},
        "poor": {"easy": Solution(device={unit.name: "P3" for unit in easy.units})},
    }
    found = rank_solutions([hard, easy], solutions, good=("one", "two"))
    assert {result.problem: result.scored for result in found.rows[0].results} == {"canonical": True, "easy": False}
    apart = rank_solutions([hard, easy], solutions, good=("one", "poor"))
    assert all(result.scored for result in apart.rows[0].results)


def test_scores_stand_beside_one_another_by_the_source_of_costs() -> None:
    sure = heft_canonical()
    devices = tuple(replace(device, provenance="analytic") for device in sure.cluster.devices)
    doubtful = replace(sure, name="doubtful", cluster=replace(sure.cluster, devices=devices))
    solution = Solution(device={unit.name: "P1" for unit in sure.units})
    reference = ReferenceCosts(bound_ns=41, best_known_ns=75)
    problems = [replace(sure, reference=reference), replace(doubtful, reference=replace(reference, best_known_ns=60))]
    found = rank_solutions(problems, {"one": {sure.name: solution, "doubtful": solution}})
    entry = standings_table(found, instances=True)[0]
    scores = entry["by_provenance"]
    assert list(scores) == [sure.costs_from, "analytic"]
    assert [score["instances"] for score in scores.values()] == [1, 1]
    assert scores["analytic"]["score"] == pytest.approx(60 / entry["instances"][0]["cost_ns"])
    assert entry["score"] == pytest.approx((scores["analytic"]["score"] * scores[sure.costs_from]["score"]) ** 0.5)
    assert {one["problem"]: one["provenance"] for one in entry["instances"]} == {
        sure.name: sure.costs_from,
        "doubtful": "analytic",
    }


def test_problems_with_a_proved_optimum_are_counted_with_those_solved_within_one_percent() -> None:
    problem = heft_canonical()
    solution = Solution(device={unit.name: "P1" for unit in problem.units})
    cost = rank_solutions([problem], {"one": {problem.name: solution}}).rows[0].results[0].cost
    assert cost is not None
    references = {
        "reached": ReferenceCosts(bound_ns=cost, best_known_ns=cost),
        "near": ReferenceCosts(bound_ns=round(cost / 1.009), best_known_ns=round(cost / 1.009)),
        "far": ReferenceCosts(bound_ns=round(cost / 1.03), best_known_ns=round(cost / 1.03)),
        "open": ReferenceCosts(bound_ns=cost - 1, best_known_ns=cost),
    }
    problems = [replace(problem, name=name, reference=one) for name, one in references.items()]
    found = rank_solutions(problems, {"one": dict.fromkeys(references, solution), "idle": {}})
    told = {entry["name"]: entry["proved"] for entry in standings_table(found)}
    assert told == {
        "one": {"problems": 3, "within_1_percent": 2},
        "idle": {"problems": 3, "within_1_percent": 0},
    }
