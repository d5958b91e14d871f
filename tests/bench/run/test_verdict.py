from dataclasses import replace

import pytest

from opmark.bench.clock.protocol import FULL
from opmark.bench.run.verdict import OpenTrial, begin, judge
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.records import Block, KernelTrial

TRIAL = KernelTrial(
    trial="k", target="null-t1", kernel=Kernel.of("gemm", {"m": 1}), work=Work(flops=1, read_bytes=1, written_bytes=1)
)


def block(process: int, number: int, ns: float = 1000.0, *, label: str = "hot", spread: float = 0.0) -> Block:
    times = tuple(ns * (1 + spread * i) for i in range(12))
    return Block(
        trial="k",
        label=label,
        process=process,
        round=number,
        construction="single",
        copies=1,
        base_copies=0,
        calls=1,
        ns=times,
        clean="1" * 12,
    )


def measured(*labels_ns: float, spread: float = 0.0, blocks: int = FULL.blocks) -> OpenTrial:
    """A trial that owes nothing; one process per label."""
    taken = [block(p, 10 * i + p, ns, spread=spread) for p, ns in enumerate(labels_ns) for i in range(blocks)]
    state = begin(TRIAL, [*taken, block(0, 0, label="rotated")], FULL)
    state.wanted = dict.fromkeys(range(len(labels_ns)), blocks)
    return state


def verdict(state: OpenTrial, *, final: bool = False, drifted: tuple[int, ...] = ()) -> tuple[str, str] | None:
    done = judge(state, FULL, overhead_ns=0.0, drifted=drifted, final=final)
    return (done.status, done.reason) if done else None


def test_a_new_trial_owes_every_block_and_rotated_samples_once() -> None:
    state = begin(TRIAL, [], FULL)
    assert state.owed(0) == ("hot", "rotated")
    assert state.owed(1) == ("hot",)
    assert state.processes_owing == [0, 1]
    state.blocks += [block(0, 0), block(0, 0, label="rotated")]
    assert state.owed(0) == ("hot",)


def test_blocks_of_an_earlier_run_count() -> None:
    state = begin(TRIAL, [block(p, i) for p in (0, 1) for i in range(FULL.blocks)], FULL)
    assert state.owed(0) == ("rotated",)
    assert state.owed(1) == ()


def test_agreeing_processes_and_a_narrow_interval_are_fine() -> None:
    assert verdict(measured(1000.0, 1010.0)) == ("ok", "")


def test_processes_that_differ_ask_for_a_third() -> None:
    state = measured(1000.0, 1050.0)
    assert verdict(state) is None
    assert state.owed(2) == ("hot",)


def test_the_third_process_settles_it() -> None:
    assert verdict(measured(1000.0, 1050.0, 1005.0)) == ("ok", "")


def test_an_uncertain_label_asks_for_four_times_the_samples_and_then_gives_up() -> None:
    state = measured(1000.0, 1000.0, spread=0.5)
    asked = 0
    while verdict(state) is None:
        asked += 1
        for process in (0, 1):
            while state.owed(process):
                state.blocks.append(block(process, len(state.blocks), spread=0.5))
    assert asked == FULL.extension - 1
    assert sum(1 for b in state.blocks if b.label == "hot") == FULL.extension * 2 * FULL.blocks
    status, reason = verdict(state) or ("", "")
    assert status == "low_quality"
    assert "10th percentile known to" in reason


def test_a_slow_trial_is_not_extended() -> None:
    state = measured(1000.0, 1000.0, spread=0.5)
    state.spent_s = FULL.trial_limit_s
    assert (verdict(state) or ("", ""))[0] == "low_quality"


def test_out_of_time_half_of_the_blocks_are_enough_and_fewer_are_left_for_later() -> None:
    assert verdict(measured(1000.0, 1001.0, blocks=3), final=True) == ("ok", "")
    assert verdict(measured(1000.0, 1001.0, blocks=2), final=True) is None
    assert verdict(begin(TRIAL, [], FULL), final=True) is None


def test_drift_is_said() -> None:
    state = measured(1000.0, 1000.0)
    rounds = tuple(b.round for b in state.blocks)
    assert verdict(state, drifted=rounds[:2]) == ("ok", "")
    status, reason = verdict(state, drifted=rounds) or ("", "")
    assert status == "low_quality"
    assert "sentinels" in reason


def test_what_the_clock_cannot_tell_is_said_and_not_asked_again() -> None:
    done = judge(measured(1000.0, 1000.0), FULL, overhead_ns=2000.0, drifted=(), final=False)
    assert done is not None
    assert (done.status, done.reason) == ("low_quality", "shorter than the clock can resolve")


@pytest.mark.parametrize("flag", ["0"])
def test_samples_that_were_all_interrupted_are_low_quality(flag: str) -> None:
    state = measured(1000.0, 1000.0)
    state.blocks = [replace(b, clean=flag * 12) for b in state.blocks]
    assert "interrupted" in (verdict(state, final=True) or ("", ""))[1]
