"""Memory that no schedule can do without: by hand, and never more than the simulator finds."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, pair
from tests.leaderboards.simulator.test_replicas import step

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.memory_rows import MemoryRow, memory_rows
from opmark.leaderboards.problem.placement import Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.simulate import fits, simulate


def with_memory(problem: Problem, size_bytes: int) -> Problem:
    devices = tuple(replace(one, memory_bytes=size_bytes) for one in problem.cluster.devices)
    return replace(problem, cluster=replace(problem.cluster, devices=devices))


def kept_bytes(row: MemoryRow, device_of_group: dict[int, int]) -> int:
    def together(groups: frozenset[int]) -> bool:
        return all(device_of_group[group] == row.device for group in groups)

    return sum(item.size_bytes for item in row.kept if any(map(together, (*item.wanted, *item.spared))))


def test_what_waits_for_the_last_unit_is_kept_while_the_middle_one_runs() -> None:
    # a's output is read by b and again by d, so both a and b bring it to the device of d
    problem = graph({"a": 1, "b": 5, "c": 1, "d": 1}, [("a", ["b", "d"]), ("b", ["c"]), ("c", ["d"])], pair())
    tensors = tuple(replace(tensor, size_bytes=40 if tensor.producer == "a" else 3) for tensor in problem.tensors)
    tight = with_memory(replace(problem, tensors=tensors), 42)
    groups = groups_of(tight)
    rows = memory_rows(tight, groups)
    assert {row.device for row in rows} == {0, 1}
    everything_here = dict.fromkeys(range(4), 0)
    assert max(kept_bytes(row, everything_here) for row in rows if row.device == 0) == 43
    assert not fits(tight, simulate(tight, placement_of(tight, Solution(device=dict.fromkeys("abcd", "d0")))))
    assert memory_rows(with_memory(tight, 1000), groups) == [], "a device that holds everything has no row"


def test_a_producer_that_runs_again_spares_what_its_backward_pass_reads() -> None:
    problem = step(2)
    # the loss stands between the passes
    units = (*problem.units, replace(problem.units[0], name="loss", weights=(), split_ns={}))
    act, grad = problem.tensors[1:]
    forward, loss = replace(act, consumers=("loss", "b")), replace(act, name="seed", producer="loss")
    tight = with_memory(replace(problem, units=units, tensors=(problem.tensors[0], forward, loss, grad)), 100)
    tight = replace(tight, replication=False)
    items = [item for row in memory_rows(tight, groups_of(tight)) for item in row.kept if item.spared]
    assert {(item.size_bytes, item.producer) for item in items} == {(20, 0)}
    kept = Solution(device=dict.fromkeys(("f", "b", "u", "loss"), "d0"))
    roomy = with_memory(tight, 10**6)
    peaks = [int(evaluate(roomy, one).schedule.peak_bytes[0]) for one in (kept, replace(kept, recompute=("f",)))]
    assert peaks[0] >= 100


@settings(max_examples=60, deadline=None)
@given(examples.placed(examples.rich, max_units=7), st.integers(1, 70))
def test_whatever_fits_meets_all_rows(case: tuple[Problem, dict[str, str]], size_bytes: int) -> None:
    problem, places = case
    problem = with_memory(problem, size_bytes)
    try:
        placement = placement_of(problem, Solution(device=places))
        schedule = simulate(problem, placement)
    except PlacementError:
        return
    groups = groups_of(problem)
    device_of_group = {int(group): int(where) for group, where in zip(groups.of_unit, placement.device, strict=True)}
    for row in memory_rows(problem, groups):
        assert (
            kept_bytes(row, device_of_group) - row.capacity_bytes <= int(schedule.peak_bytes[row.device]) - size_bytes
        )


def test_sums_count_all_that_is_made() -> None:
    problem = graph({"a": 1, "b": 1}, [("a", ["b"])], pair(), memory_mode="sum")
    tensors = tuple(replace(tensor, size_bytes=30) for tensor in problem.tensors)
    devices = (device("d0", memory_bytes=20), device("d1"))
    problem = replace(problem, tensors=tensors, cluster=replace(problem.cluster, devices=devices))
    (row,) = memory_rows(problem, groups_of(problem))
    assert (row.device, row.capacity_bytes) == (0, 20)
    assert kept_bytes(row, {0: 0, 1: 1}) == 30
    assert kept_bytes(row, {0: 1, 1: 0}) == 0
