import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import RESOLUTION_NS, look_of
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.journal import Journal
from opmark.core.measurements.measurement import Measurement
from opmark.core.measurements.records import (
    Block,
    Done,
    Header,
    KernelTrial,
    NetworkTrial,
    Overhead,
    Sentinels,
    Session,
)

TRIAL = KernelTrial(
    trial="k", target="null-t1", kernel=Kernel.of("gemm", {"m": 1}), work=Work(flops=1, read_bytes=1, written_bytes=1)
)
NETWORK = NetworkTrial(trial="k", target="null-t1", network="n", family="f", graph_id="g", role="held-out")
CALM = {"compute": 10.0, "memory": 20.0}


def block(
    ns: list[float],
    *,
    clean: str | None = None,
    base: tuple[float, ...] = (),
    copies: int = 1,
    base_copies: int = 0,
    process: int = 0,
    label: str = "hot",
    scheduling: str = "fifo",
    round_: int = 0,
    sentinels: Mapping[str, tuple[float, ...]] | None = None,
) -> Block:
    return Block(
        trial="k",
        label=label,
        process=process,
        round=round_,
        construction="single",
        copies=copies,
        base_copies=base_copies,
        calls=1,
        ns=tuple(ns),
        clean=clean or "1" * len(ns),
        base_ns=base,
        base_clean="1" * len(base),
        scheduling=scheduling,
        sentinels=sentinels or {},
    )


def journal(
    *blocks: Block, overhead_ns: float = 0.0, done: Done | None = None, ratios: Mapping[int, float] | None = None
) -> Journal:
    """A journal of one trial; `ratios` are the factors of both sentinels by round."""
    trial = NETWORK if blocks and blocks[0].label == "network" else TRIAL
    return Journal(
        path=Path("j.jsonl"),
        header=Header(suite="s", suite_id="1", quality="full"),
        sessions=(
            Session(environment=Environment(device="d", checked={}), targets=(Target(device="d", backend="n"),)),
        ),
        overheads=(Overhead(target="null-t1", process=0, ns=overhead_ns),),
        trials={"k": trial},
        blocks={"k": blocks},
        sentinels=tuple(
            Sentinels(round=number, target="null-t1", ns={name: ratio * ns for name, ns in CALM.items()}, accepted=True)
            for number, ratio in (ratios or {}).items()
        ),
        done={"k": done} if done else {},
    ).beside({"null-t1": CALM})


def row(*blocks: Block, overhead_ns: float = 0.0, ratios: Mapping[int, float] | None = None) -> Measurement:
    (found,) = journal(*blocks, overhead_ns=overhead_ns, ratios=ratios).measurements
    return found


def test_blocks_of_a_slower_round_agree_with_the_others() -> None:
    found = row(block([1000.0] * 6), block([1050.0] * 6, process=1, round_=1), ratios={0: 1.0, 1: 1.05})
    # A hot kernel is expected to follow both sentinels a little more than one to one.
    assert found.latency_hot_ns == pytest.approx(1000.0, rel=0.004)
    assert found.between_process_variation == pytest.approx(0.0, abs=0.006)
    assert found.clock_ratio == pytest.approx(1.05**0.55, rel=0.001)


def test_every_sample_has_the_state_between_the_readings_around_its_turn() -> None:
    readings = {"compute": (10.0, 10.0, 12.1), "memory": (20.0, 20.0, 20.0)}
    look = look_of(block([5.0, 5.0, 6.0, 6.0], sentinels=readings), CALM, None, 0.0)
    assert [state[0] for state in look.state] == pytest.approx([0.0, 0.0, math.log(1.1), math.log(1.1)])
    assert {state[1] for state in look.state} == {0.0}


def test_readings_after_other_work_are_of_the_same_state() -> None:
    """The first reading follows no work."""
    quiet = {"compute": (10.0,) * 4, "memory": (30.0, 20.0, 20.0, 20.0)}
    look = look_of(block([5.0] * 3, label="network", sentinels=quiet), {**CALM, "memory first": 30.0}, None, 0.0)
    assert look.state == [(0.0, 0.0)] * 3


def test_readings_tell_the_state_of_brief_samples_only() -> None:
    assert look_of(block([1.9e6] * 3), CALM, None, 0.0).brief
    assert not look_of(block([2.1e6] * 3), CALM, None, 0.0).brief


def test_a_stolen_reading_beside_few_turns_does_not_count() -> None:
    seen = {"compute": (10.0, 10.0, 120.0, 10.0), "memory": (20.0, 20.0, 90.0, 20.0)}
    told = look_of(block([5.0] * 6, label="network", sentinels=seen), CALM, None, 0.0)
    assert told.state == [(0.0, 0.0)] * 6
    stolen = look_of(
        block([5.0], sentinels={"compute": (10.0, 10.0 * math.e**4), "memory": (20.0, 20.0)}), CALM, None, 0.0
    )
    assert stolen.state == [(0.0, 0.0)], "the other reading beside its turn counts"


def test_a_single_call_loses_the_overhead_and_its_interrupted_samples() -> None:
    found = row(block([1100.0] * 9 + [9000.0], clean="1" * 9 + "0"), overhead_ns=100.0)
    assert found.latency_hot_ns == pytest.approx(1000.0)
    assert found.hot_quantiles_ns == pytest.approx((1000.0,) * 21)
    assert found.clean_fraction == 0.9
    assert found.samples == 9


def test_copies_are_told_apart_from_the_call_by_the_slope() -> None:
    # A call costs 2000 ns and a copy 50: two copies 2100, ten 2500.
    found = row(block([2500.0] * 5, base=(2100.0, 2100.0), copies=10, base_copies=2), overhead_ns=999.0)
    assert found.latency_hot_ns == pytest.approx(50.0)


def test_a_disturbed_base_does_not_shorten_the_kernel() -> None:
    ns, base = [2500.0, 5000.0, 2500.0], (2100.0, 2100.0, 4200.0)
    beside = {"compute": (10.0,) * 4, "memory": (20.0,) * 4}
    look = look_of(block(ns, base=base, copies=10, base_copies=2, sentinels=beside), CALM, None, 0.0)
    assert look.ns == pytest.approx([50.0, 362.5, 50.0])


def test_at_the_usual_state_a_base_counts_beside_its_sample() -> None:
    ns, base = [2500.0, 5000.0, 2500.0], (2100.0, 4200.0, 2100.0)
    look = look_of(block(ns, base=base, copies=10, base_copies=2), CALM, None, 0.0, calm=False)
    assert look.ns == pytest.approx([50.0, 100.0, 50.0])


def test_processes_that_stacked_differently_still_agree() -> None:
    found = row(
        block([2500.0] * 5, base=(2100.0,), copies=10, base_copies=2),
        block([3600.0] * 5, base=(2100.0,), copies=32, base_copies=2, process=1),
    )
    assert found.latency_hot_ns == pytest.approx(50.0)
    assert found.between_process_variation == pytest.approx(0.0)
    assert found.processes == 2


def test_rotated_copies_share_one_call() -> None:
    blocks = (block([1000.0] * 3), block([6600.0] * 3, copies=64, label="rotated"))
    assert row(*blocks, overhead_ns=200.0).latency_rotated_ns == pytest.approx(100.0)


def test_without_any_clean_sample_all_of_them_count() -> None:
    found = row(block([500.0, 600.0], clean="00"))
    assert found.clean_fraction == 0.0
    assert found.samples == 2


def test_what_the_clock_cannot_resolve_is_doubtful() -> None:
    found = row(block([90.0] * 5), overhead_ns=100.0)
    assert found.latency_hot_ns == pytest.approx(RESOLUTION_NS)
    assert (found.status, found.standard_error_hot) == ("doubtful", 1.0)


def test_a_row_keeps_what_made_it_and_its_status_follows_from_the_error() -> None:
    blocks = [block([1100.0] * 6), block([900.0] * 3, label="rotated", scheduling="normal")]
    found = row(*blocks, overhead_ns=100.0)
    assert (found.latency_hot_ns, found.latency_rotated_ns) == (pytest.approx(1000.0), pytest.approx(800.0))
    assert found.overhead_ns == 100.0
    assert found.scheduling == "normal", "the least favourable way of all its blocks"
    assert (found.suite, found.environment_id) == ("s", Environment(device="d", checked={}).id)
    assert found.standard_error_hot == pytest.approx(0.03, rel=0.3), "one process does not tell how much others differ"
    assert (found.status, found.reason) == ("coarse", f"standard error of {found.standard_error_hot:.1%}")


def test_a_failed_trial_has_a_reason_and_no_latency_though_blocks_exist() -> None:
    done = Done(trial="k", status="failed", reason="killed by SIGSEGV")
    (found,) = journal(block([1.0]), done=done).measurements
    assert (found.status, found.reason, found.latency_hot_ns) == ("failed", "killed by SIGSEGV", None)


def test_a_network_keeps_the_overhead_of_its_call() -> None:
    (found,) = journal(block([5e6, 5e6, 5e6], label="network"), overhead_ns=1000.0).networks
    assert found.latency_ns == pytest.approx(5e6)
    assert found.samples == 3
