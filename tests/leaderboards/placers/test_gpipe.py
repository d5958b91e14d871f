"""GPipe on pipelines worked by hand."""

from dataclasses import replace

from tests.leaderboards.examples import device, pipeline, star
from tests.leaderboards.problem.decisions.test_recomputation import two_stages

from opmark.leaderboards.scoring.attempt import attempt


def test_gpipe_balances_compute() -> None:
    found = attempt(pipeline([4, 1, 1, 2, 2, 2], 3), "gpipe", budget_s=1).evaluation
    assert found.cost == 4
    assert found.placement.device.tolist() == [0, 1, 1, 1, 2, 2]


def test_gpipe_needs_room_for_all_micro_batches() -> None:
    cluster = replace(star(0, devices=2), devices=tuple(device(f"d{n}", memory_bytes=25) for n in range(2)))
    problem = pipeline([5, 5, 5, 5], 2)
    tensors = tuple(replace(tensor, size_bytes=5) for tensor in problem.tensors)
    stashing = replace(problem, cluster=cluster, tensors=tensors, memory_mode="stash", micro_batches=2)
    assert attempt(stashing, "gpipe", budget_s=1).evaluation.cost == 10
    many = replace(stashing, micro_batches=64)
    assert set(attempt(many, "gpipe", budget_s=1).evaluation.placement.device.tolist()) == {0}
    assert attempt(many, "dapple", budget_s=1).evaluation.cost == 10, "1F1B keeps two in flight"


def test_gpipe_recomputes_where_activations_do_not_fit() -> None:
    # the second stage would hold 2,320 bytes, or 2,260 if it computes its forward pass again (5 turns of 4 + 4 + 6)
    wide = attempt(two_stages(4), "gpipe", budget_s=1)
    assert (wide.evaluation.cost, wide.solution.recompute) == (50, None)
    tight = attempt(two_stages(4, memory_bytes=2300), "gpipe", budget_s=1)
    assert (tight.evaluation.cost, tight.solution.recompute) == (70, ("f0", "f1", "f2", "f3"))
