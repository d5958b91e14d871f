"""Replays: plans worked out by hand, the measured plans, and DeepSpeed's order of messages."""

import os
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from opmark.core.shipped import shipped_content
from opmark.leaderboards.plans.bandwidths import Bandwidths
from opmark.leaderboards.plans.layer_times import LayerProfiles, LayerTime, TrainedModel
from opmark.leaderboards.plans.replay import DEFAULTS, Replay, load_replayer, peak_bytes
from opmark.leaderboards.plans.timeline import PlanCosts, PlanTimeline
from opmark.leaderboards.plans.training_plan import StageReplica, TrainingPlan, load_plan
from opmark.leaderboards.simulator.simulate import simulate

PUBLISHED = shipped_content().leaderboards / "layers" / "sailor"
EXTERNAL = Path(os.environ.get("OPMARK_EXTERNAL_DATA", "../shared/data")) / "sailor"
# 1 GB/s at every size
FLAT = [[0.0, 0.0, 1.0], 1e9]
LINKS = Bandwidths(Path("links"), {"z": {"G": {"1": {"z": {"G": {"1": FLAT}}}}}}, {"G": {"2": FLAT}})
MODEL = TrainedModel(
    name="toy",
    layers=2,
    hidden_size=1,
    sequence_length=1,
    vocabulary=1,
    tied_embedding=False,
    head_in_profile=True,
    memory={1: [(1000, 10, 1), (2000, 20, 1)]},
)
ONE = StageReplica(gpu="G", node_gpus=1, zone="z", tensor_parallel=1)


def toy(stages: int, chains: int, micro_batches: int) -> TrainingPlan:
    return TrainingPlan(
        path=Path("toy.json"),
        stages=tuple((number,) for number in range(stages)),
        replicas=((ONE,) * chains,) * stages,
        sequences=1,
        global_sequences=micro_batches * chains,
    )


def seconds(plan: TrainingPlan, times: list[list[tuple[float, float, float]]], **facts: float) -> float:
    costs = PlanCosts(
        model=MODEL,
        passes=[[LayerTime(*row) for row in rows] for rows in times],
        **{"exchange_s": 0.0, "early": 1.0, "output_bytes": 0, "gradient_bytes": [0] * len(times), **facts},
    )
    problem, placement = PlanTimeline(plan, costs, LINKS).made()
    return simulate(problem, placement).latency_ns / 1e9


def test_two_stages_by_hand() -> None:
    # forward 1, backward 2 on both stages: (4 - 1 + 2) · 3 seconds for four micro-batches, then the update
    times = [[(1.0, 2.0, 0.5)], [(1.0, 2.0, 0.5)]]
    assert seconds(toy(2, 1, 4), times) == pytest.approx(15.5)
    # one micro-batch: forward, forward, backward, backward; a message of 1 s each way
    assert seconds(toy(2, 1, 1), times, output_bytes=10**9) == pytest.approx(8.5)
    assert seconds(toy(2, 1, 1), times, output_bytes=10**9, early=0.5) == pytest.approx(8.5)
    assert seconds(toy(2, 1, 1), times, output_bytes=10**9, exchange_s=0.25) == pytest.approx(9.0)


def test_an_early_message_does_not_wait_for_its_receiver() -> None:
    """Stage 1 is quick, so its gradient is ready long before stage 0 asks for it."""
    times = [[(1.0, 1.0, 0.0)], [(0.1, 0.1, 0.0)]]
    eager, asked = (seconds(toy(2, 1, 50), times, output_bytes=10**8, early=part) for part in (1.0, 0.0))
    assert eager == pytest.approx(100, abs=1)
    assert asked == pytest.approx(100 + 50 * 0.1, abs=1)


def test_replicas_wait_for_the_slowest_and_sum_gradients_in_a_ring() -> None:
    times = [[(1.0, 2.0, 0.25), (2.0, 3.0, 0.25)]]
    # 3 micro-batches of 5 s, then 2 · (2 - 1) rounds of half a gigabyte
    assert seconds(toy(1, 2, 3), times, gradient_bytes=[10**9]) == pytest.approx(15 + 1 + 0.25)


def test_a_shared_weight_is_summed_between_first_and_last_stage() -> None:
    times = [[(1.0, 1.0, 0.0)], [(1.0, 1.0, 0.0)]]
    without = seconds(toy(2, 1, 2), times)
    assert seconds(toy(2, 1, 2), times, tied_bytes=10**9) == pytest.approx(without + 1)


def test_the_order_of_messages_is_deepspeeds() -> None:
    """Stage 0 of two: after two forward passes it receives a gradient before it sends the second activation."""
    costs = PlanCosts(
        model=MODEL,
        passes=[[LayerTime(1, 1, 1)], [LayerTime(1, 1, 1)]],
        exchange_s=0.0,
        early=1.0,
        output_bytes=1,
        gradient_bytes=[0, 0],
    )
    problem, placement = PlanTimeline(toy(2, 1, 2), costs, LINKS).made()
    assert placement.order is not None
    names = [" ".join(problem.units[unit].name for unit in placement.order[device]) for device in (0, 2)]
    assert names == [
        "f0.0.0 a0.0.0.send f0.0.1 g0.0.0.receive a0.0.1.send b0.0.0 g0.0.1.receive b0.0.1 u0.0",
        "a0.0.0.receive f1.0.0 b1.0.0 g0.0.0.send a0.0.1.receive f1.0.1 b1.0.1 g0.0.1.send u1.0",
    ]


def test_memory_by_hand() -> None:
    constants = replace(DEFAULTS, bytes_per_parameter=20, base_bytes=100)
    # stage 0 keeps two micro-batches of 10 floats, stage 1 one of 20
    assert peak_bytes(toy(2, 1, 8), MODEL, constants) == 100 + 20 * 2000 + 4 * 20


@pytest.mark.parametrize("cluster", ["clariden", "mit"])
def test_measured_plans(cluster: str) -> None:
    replayer = load_replayer(PUBLISHED / "profiles", PUBLISHED / "networks", PUBLISHED)
    small = [load_plan(path) for path in sorted((PUBLISHED / "plans" / cluster).glob("*.json"))]
    found = [replayer.replay(plan) for plan in small if plan.chains * plan.micro_batches * len(plan.stages) < 600]
    errors = [abs(one.error) for one in found if one.error is not None]
    assert len(errors) >= 4
    assert statistics.median(errors) <= 0.10
    assert max(errors) <= 0.25
    for one in found:
        assert sum(getattr(one.parts, name) for name in one.parts.__dataclass_fields__) == pytest.approx(
            one.predicted_s
        )
        assert one.peak_bytes > 0


def test_the_imported_layers_are_those_of_the_source() -> None:
    if not EXTERNAL.is_dir():
        pytest.skip(f"{EXTERNAL} is not there; see OPMARK_EXTERNAL_DATA")
    ours, theirs = LayerProfiles(PUBLISHED / "profiles", PUBLISHED), LayerProfiles(EXTERNAL / "profiles", PUBLISHED)
    for name, files in theirs.files.items():
        for gpu in files:
            assert ours.profile(ours.models[name], gpu).table == theirs.profile(theirs.models[name], gpu).table
    assert len(theirs.notes) == 1
    replays: list[list[Replay]] = []
    for root, plans in ((PUBLISHED, PUBLISHED / "plans"), (EXTERNAL, EXTERNAL / "measured-plans")):
        replayer = load_replayer(root / "profiles", root / "networks", PUBLISHED)
        replays.append([replayer.replay(load_plan(plans / "mit" / "N4_N4_D4.json"))])
    assert replays[0][0].predicted_s == replays[1][0].predicted_s
