"""Training steps of micro-batches: published bubbles by hand, and against the plain reference."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.test_placers import training
from tests.leaderboards.examples import device
from tests.leaderboards.reference_step import StepReference, blocks
from tests.leaderboards.reference_step import sequence as slow_sequence

from opmark.core.errors import ContentError, PlacementError
from opmark.core.files import json_text
from opmark.core.hardware.cluster import Cluster, Link
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Solution, load_solution, placement_of, save_solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.pipeline_schedule import DEFAULT_SCHEDULE, PIPELINE_SCHEDULES
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate
from opmark.leaderboards.simulator.memory import memory_steps, stashed_bytes
from opmark.leaderboards.simulator.passes._step.copies import step_copies
from opmark.leaderboards.simulator.passes._step.memory import micro_batches_in_flight, step_peaks
from opmark.leaderboards.simulator.passes._step.plan import plan_step, stages_behind, unit_sequence
from opmark.leaderboards.simulator.passes.micro_batches import PASSES, plan_of
from opmark.leaderboards.simulator.simulate import simulate_many
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace

ONE_WAY = ("fill-drain", "one-f-one-b")


def pipeline(
    stages: int, micro_batches: int, *, forward: int = 1, backward: int = 1, update: int = 0, **facts
) -> Problem:
    """A layer per stage, transfers that take no time, activations of 10 bytes, gradients of 100."""
    names = [f"d{number}" for number in range(stages)]
    links = tuple(
        Link(source=a, destination=b, latency_ns=0, bandwidth_bytes_per_s=1e9, points=((0, 0), (10**6, 0)))
        for a in names
        for b in names
        if a != b
    )
    cluster = Cluster(name="line", devices=tuple(device(name) for name in names), links=links)
    units, tensors = [], []
    kind = cluster.devices[0].type
    for k in range(stages):
        for name, phase, ns in (("f", "forward", forward), ("b", "backward", backward), ("u", "update", update)):
            units.append(Unit(name=f"{name}{k}", exec_ns={kind: ns}, weights=(f"w{k}",), phase=phase))
        readers = (f"f{k + 1}",) if k + 1 < stages else ()
        tensors.append(Tensor(name=f"a{k}", size_bytes=10, producer=f"f{k}", consumers=(*readers, f"b{k}")))
        if k:
            tensors.append(Tensor(name=f"e{k}", size_bytes=0, producer=f"b{k}", consumers=(f"b{k - 1}",)))
        tensors.append(Tensor(name=f"g{k}", size_bytes=100, producer=f"b{k}", consumers=(f"u{k}",)))
    weights = {f"w{k}": 1000 for k in range(stages)}
    problem = Problem(
        name="line",
        cluster=cluster,
        units=tuple(units),
        tensors=tuple(tensors),
        weights=weights,
        micro_batches=micro_batches,
        **facts,
    )
    return checked(problem, "line")


def in_line(problem: Problem, schedule: str = "") -> Evaluation:
    return evaluate(problem, Solution(device={u.name: f"d{u.name[1:]}" for u in problem.units}, schedule=schedule))


@pytest.mark.parametrize("schedule", ONE_WAY)
@pytest.mark.parametrize(("stages", "count"), [(1, 3), (2, 2), (3, 5), (4, 4), (4, 8), (4, 2)])
def test_a_pipeline_of_equal_stages_has_its_bubble(schedule: str, stages: int, count: int) -> None:
    """(m + p − 1)(f + b); in flight are all m, or no more than there are stages from here on."""
    found = in_line(pipeline(stages, count, forward=2, backward=3, memory_mode="stash"), schedule)
    assert found.cost == (count + stages - 1) * 5
    expected = [count if schedule == "fill-drain" else min(count, stages - k) for k in range(stages)]
    problem = pipeline(stages, count, forward=2, backward=3, memory_mode="stash")
    assert list(found.facts(problem)["in_flight"].values()) == expected
    # weights, one gradient, and per micro-batch what the stage makes and what it gets
    kept = [10 if k == 0 else 20 for k in range(stages)]
    assert found.schedule.peak_bytes.tolist() == [1100 + n * each for n, each in zip(expected, kept, strict=True)]


@pytest.mark.parametrize(("stages", "count"), [(2, 2), (4, 4), (4, 8), (6, 6), (6, 18), (8, 8)])
def test_chimera_leaves_d_minus_2_slots_idle(stages: int, count: int) -> None:
    """Table 2: a bubble of (D − 2) / (2N + D − 2) where forward and backward take equally long."""
    problem = pipeline(stages, count, forward=3, backward=3)
    found = in_line(problem, "chimera")
    assert found.cost == 3 * (2 * count + stages - 2)
    assert set(found.busy_ns(stages)) == {3 * 2 * count}
    assert found.schedule.peak_bytes.min() > 2000, "every device holds the weights of two stages"
    assert found.facts(problem)["schedule"] == "chimera"


def test_chimera_synchronises_the_two_copies_of_a_weight() -> None:
    problem = pipeline(2, 2, update=5)
    free = in_line(problem, "chimera")
    assert free.cost == 4 + 2 * 5, "both stages' weights are updated on both devices"
    slow = tuple(replace(link, latency_ns=7, points=((0, 7), (10**6, 7))) for link in problem.cluster.links)
    paid = in_line(replace(problem, cluster=replace(problem.cluster, links=slow)), "chimera")
    ring = 2 * 7
    assert paid.cost >= 4 + ring + 10
    _, _, inner = paid.schedule.expanded
    names = [unit.name for unit in paid.schedule.expanded[0].units]
    assert {"u0@down", "u0@up", "Σ g0@down", "g0~0@up", "g0~1@down"} <= set(names)
    assert inner.unit_start_ns[names.index("u0@down")] >= inner.unit_end_ns[names.index("Σ g0@up")] + ring


def test_an_update_comes_once_and_last() -> None:
    found = in_line(pipeline(2, 3, forward=1, backward=2, update=7))
    assert found.cost == (3 + 1) * 3 + 7
    assert found.busy_ns(2) == [3 * 3 + 7] * 2
    money = replace(pipeline(2, 3, forward=1, backward=2, update=7), objective="cost", unit="$")
    assert in_line(money).schedule.latency_ns == found.cost


def test_gradients_are_added_up_in_place() -> None:
    found = in_line(pipeline(1, 5))
    assert found.schedule.peak_bytes.tolist() == [1000 + 100 + 10], "one gradient, not five"


def test_what_schedules_refuse() -> None:
    with pytest.raises(PlacementError, match="needs an even number of stages, not 3"):
        in_line(pipeline(3, 2), "chimera")
    problem = pipeline(4, 2)
    back = {u.name: f"d{int(u.name[1:]) % 2}" for u in problem.units}
    with pytest.raises(PlacementError, match="a path comes back"):
        evaluate(problem, Solution(device=back, schedule="chimera"))
    assert evaluate(problem, Solution(device=back)).cost > 0
    with pytest.raises(PlacementError, match="schedule: one of chimera, fill-drain, one-f-one-b, not 'gpipe'"):
        in_line(problem, "gpipe")
    with pytest.raises(PlacementError, match="has no step of micro-batches"):
        in_line(replace(problem, micro_batches=0), "fill-drain")
    split = dict.fromkeys(problem.units[0].exec_ns, (1,))
    units = tuple(replace(unit, split_ns=split) for unit in problem.units)
    wide = replace(problem, replication=True, units=units)
    places = dict.fromkeys(back, "d0") | {"f3": "d1", "b3": "d1", "u3": "d1"}
    with pytest.raises(PlacementError, match="takes no replicas"):
        evaluate(wide, Solution(device=places, replicas={"d0": ("d2",)}, schedule="chimera"))
    for change, sentence in (
        ({"memory_mode": "sum"}, "memory_mode: liveness or stash"),
        ({"micro_batches": 2**22}, "units in all"),
        (
            {"tensors": (Tensor(name="x", size_bytes=0, producer="b0", consumers=("f0",)),)},
            "which micro-batches forbid",
        ),
    ):
        with pytest.raises(ContentError, match=sentence):
            checked(replace(problem, **change), "x")


def test_replicas_share_every_micro_batch() -> None:
    problem = pipeline(3, 4, forward=4, backward=4, update=2)
    split = dict.fromkeys(problem.units[0].exec_ns, (2,))
    units = tuple(replace(unit, split_ns={} if unit.phase == "update" else split) for unit in problem.units)
    problem = replace(problem, units=units, replication=True)
    places = {u.name: "d0" if u.name[1:] == "0" else "d1" for u in problem.units}
    alone = evaluate(problem, Solution(device=places))
    shared = evaluate(problem, Solution(device=places, replicas={"d1": ("d2",)}))
    # stages of 8 and 16 ns: the second is the bottleneck; with two devices both take 8. The first stage updates last.
    assert alone.cost == 4 + 16 * 4 + 4 + 2
    assert shared.cost == (4 + 1) * 8 + 2
    trace = json.loads(json_text(chrome_trace(problem, shared)))
    assert check_trace(problem, trace) == shared.cost


@st.composite
def steps(draw):
    """A chain of layers with skips, some of them on the same device, and unlike times."""
    layers = draw(st.integers(1, 4))
    problem = pipeline(layers, draw(st.integers(1, 4)))
    devices = tuple(
        replace(item, slots=draw(st.integers(1, 2)), dispatch_ns=draw(st.integers(0, 2)), memory_bytes=10**7)
        for item in problem.cluster.devices
    )
    ns = draw(st.integers(0, 3))
    links = tuple(replace(link, latency_ns=ns, points=()) for link in problem.cluster.links)
    cluster = replace(problem.cluster, devices=devices, links=links, host=draw(st.sampled_from(["", devices[-1].name])))
    kind = devices[0].type
    units = tuple(
        replace(
            unit,
            exec_ns={kind: draw(st.integers(0, 6))},
            workspace_bytes=draw(st.integers(0, 9)),
            weights=() if unit.phase != "update" and draw(st.booleans()) else unit.weights,
        )
        for unit in problem.units
    )
    tensors = [
        Tensor(name="in", size_bytes=6, consumers=("f0",)),
        Tensor(name="rate", size_bytes=3, consumers=(f"u{layers - 1}",)),
        Tensor(name="loss", size_bytes=4, producer=f"f{layers - 1}", output=True),
    ]
    if draw(st.booleans()):  # a gradient that the layer before reads too
        problem = replace(
            problem,
            tensors=tuple(
                replace(t, consumers=(*t.consumers, f"b{int(t.name[1:]) - 1}"))
                if t.name[0] == "g" and t.name != "g0"
                else t
                for t in problem.tensors
                if t.name[0] != "e"
            ),
        )
    if layers > 2 and draw(st.booleans()):
        tensors.append(Tensor(name="skip", size_bytes=8, producer="f0", consumers=("f2", "b2")))
    own = {str(k): draw(st.sampled_from([item.name for item in devices])) for k in range(layers)}
    places = {unit.name: own[unit.name[1:]] for unit in units}
    return checked(replace(problem, cluster=cluster, units=units, tensors=(*problem.tensors, *tensors)), "step"), places


@settings(max_examples=150, deadline=None)
@given(steps(), st.sampled_from(ONE_WAY), st.data())
def test_a_step_agrees_with_the_reference(
    case: tuple[Problem, dict[str, str]], schedule: str, data: st.DataObject
) -> None:
    problem, places = case
    priority = None
    if data.draw(st.booleans()):
        priority = {unit.name: data.draw(st.integers(-3, 3)) for unit in problem.units}
    slow = StepReference(problem, places, schedule, priority)
    found = evaluate(problem, Solution(device=places, schedule=schedule, priority=priority))
    names = [item.name for item in problem.cluster.devices]
    assert found.cost == slow.cost
    mixed = any("b" in {name[0] for name in t.consumers} for t in problem.tensors if t.name[0] == "g")
    for peak, name in zip(found.schedule.peak_bytes.tolist(), names, strict=True):
        # a gradient that others read too may still be on its way to them when the sum is made
        assert slow.peak[name] <= peak <= slow.peak[name] + 100 * mixed * len(problem.units)
    assert micro_batches_in_flight(plan_of(problem, found.placement)) == [slow.stash.get(name, 0) for name in names]
    steps_of = memory_steps(*found.schedule.expanded)
    assert [max(held for _, held in row) for row in steps_of] == found.schedule.peak_bytes.tolist()
    trace = json.loads(json_text(chrome_trace(problem, found)))
    assert check_trace(problem, trace) == found.cost
    if schedule == DEFAULT_SCHEDULE:
        table = found.placement.device[None, :]
        assert simulate_many(problem, table, found.placement.priority).tolist() == [found.cost]
    stashed = replace(problem, memory_mode="stash")
    most = evaluate(stashed, Solution(device=places, schedule=schedule, priority=priority))
    assert most.cost == found.cost
    if schedule == DEFAULT_SCHEDULE:
        # the stash of a full pipeline is that of the steady state
        assert most.schedule.peak_bytes.tolist() == stashed_bytes(stashed, found.placement).tolist()
        assert simulate_many(stashed, table, found.placement.priority).tolist() == [found.cost]


@settings(max_examples=60, deadline=None)
@given(steps(), st.sampled_from(PIPELINE_SCHEDULES.names()))
def test_no_schedule_deadlocks(case: tuple[Problem, dict[str, str]], schedule: str) -> None:
    problem, places = case
    try:
        found = evaluate(problem, Solution(device=places, schedule=schedule))
    except PlacementError:
        devices = {places[unit.name] for unit in problem.units}
        with pytest.raises(PlacementError, match=r"needs an even number of stages|a path comes back"):
            evaluate(problem, Solution(device=places, schedule=schedule))
        assert schedule == "chimera"
        assert len(devices) != 2 or len(problem.units) > 6
        return
    trace = json.loads(json_text(chrome_trace(problem, found)))
    assert check_trace(problem, trace) == found.cost


@pytest.mark.parametrize("schedule", ONE_WAY)
def test_ticks_give_the_blocks_of_the_papers(schedule: str) -> None:
    rules = PIPELINE_SCHEDULES.load(schedule)
    for count in range(1, 7):
        for behind in range(1, 6):
            ticks = sorted(
                (rules.tick(m, count, backward=kind == "B", behind=behind, stages=5), kind, m)
                for m in range(count)
                for kind in "FB"
            )
            assert [(kind, m) for _, kind, m in ticks] == blocks(schedule, count, behind)
    assert rules.summary


@pytest.mark.parametrize(
    ("placer", "schedule"), [("gpipe", "fill-drain"), ("dapple", "one-f-one-b"), ("chimera", "chimera")]
)
def test_pipeline_placers_name_their_schedule(placer: str, schedule: str) -> None:
    found = attempt(pipeline(4, 4, forward=100, backward=100, memory_mode="stash"), placer, budget_s=5)
    assert found.solution.schedule == schedule
    assert found.evaluation.cost == (1000 if placer == "chimera" else 1400)
    plain = attempt(pipeline(4, 0, forward=100, backward=100), placer, budget_s=5)
    assert plain.solution.schedule == ""


@pytest.mark.parametrize("placer", ["heft", "local-search", "opmark", "best-single-device"])
def test_other_placers_follow_the_default_schedule(placer: str) -> None:
    problem = replace(training(3), micro_batches=3)
    found = attempt(problem, placer, budget_s=2)
    assert found.evaluation.facts(problem)["schedule"] == DEFAULT_SCHEDULE
    assert found.evaluation.cost > 0


def test_a_schedule_is_written_only_where_there_is_one(tmp_path) -> None:
    problem = pipeline(2, 2)
    places = {u.name: f"d{u.name[1:]}" for u in problem.units}
    for schedule in ("", "fill-drain"):
        solution = Solution(device=places, schedule=schedule)
        save_solution(solution, tmp_path / "s.json")
        assert load_solution(tmp_path / "s.json") == solution
        assert ("schedule" in (tmp_path / "s.json").read_text()) == bool(schedule)
        placement = placement_of(problem, solution)
        assert solution_of(problem, placement).schedule == schedule


def test_what_a_plan_holds() -> None:
    problem = pipeline(2, 2)
    where = np.array([int(unit.name[1:]) for unit in problem.units])
    assert stages_behind(problem, where).tolist() == [2, 1]
    priority = problem.arrays.default_priority
    sequence = unit_sequence(problem, priority)
    ranks = dict(zip((unit.name for unit in problem.units), priority.tolist(), strict=True))
    names = [unit.name for unit in problem.units]
    assert [names[unit] for unit in np.argsort(sequence)] == slow_sequence(problem, ranks)
    plan = plan_step(problem, where, sequence, schedule="one-f-one-b")
    shown = [plan.copies.problem.units[unit].name for unit in plan.rows[0]]
    assert shown == ["f0@0", "f0@1", "b0@0", "b0@1", "Σ g0@step", "u0@step"]
    assert step_peaks(problem, plan).tolist() == [1120, 1120]
    assert step_copies(problem, [0, 0], [0]) is plan.copies
    assert PASSES.facts(
        problem, placement_of(problem, solution_of(problem, attempt(problem, "heft", budget_s=1).evaluation.placement))
    )
