import pytest

from opmark.core.kernels.folding import RESOLUTION_NS, fold, fold_kernel, fold_network
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.records import Block, Done, KernelTrial, NetworkTrial

TRIAL = KernelTrial(
    trial="k", target="null-t1", kernel=Kernel.of("gemm", {"m": 1}), work=Work(flops=1, read_bytes=1, written_bytes=1)
)


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
    clock_ratio: float = 1.0,
) -> Block:
    return Block(
        trial="k",
        label=label,
        process=process,
        round=0,
        construction="single",
        copies=copies,
        base_copies=base_copies,
        calls=1,
        ns=tuple(ns),
        clean=clean or "1" * len(ns),
        base_ns=base,
        base_clean="1" * len(base),
        scheduling=scheduling,
        clock_ratio=clock_ratio,
    )


def test_blocks_of_a_slower_clock_agree_with_the_others() -> None:
    at_once = block([1100.0] * 6)
    slow = block([1155.0] * 6, process=1, clock_ratio=1.05)
    folded = fold([at_once, slow], "hot", 100.0)
    assert folded is not None
    assert folded.latency_ns == pytest.approx(1000.0)
    assert folded.variation == pytest.approx(0.0)


def test_a_slower_clock_slows_the_copies_below_too() -> None:
    ns, base = [2500.0 * 1.1] * 5, (2100.0 * 1.1, 2100.0 * 1.1)
    folded = fold([block(ns, base=base, copies=10, base_copies=2, clock_ratio=1.1)], "hot", 0.0)
    assert folded is not None
    assert folded.latency_ns == pytest.approx(50.0)


def test_a_row_says_at_which_clock_it_was_measured() -> None:
    blocks = [block([1050.0] * 6, clock_ratio=ratio) for ratio in (1.0, 1.04, 1.06)]
    row = fold_kernel(TRIAL, Done(trial="k", status="ok"), blocks, overhead_ns=0.0, suite="s", environment_id="e")
    assert row.clock_ratio == 1.04


def test_a_single_call_loses_the_overhead_and_its_interrupted_samples() -> None:
    folded = fold([block([1100.0] * 9 + [9000.0], clean="1" * 9 + "0")], "hot", 100.0)
    assert folded is not None
    assert folded.latency_ns == 1000.0
    assert folded.quantiles_ns == (1000.0,) * 21
    assert folded.clean_fraction == 0.9
    assert folded.samples == 9


def test_copies_are_told_apart_from_the_call_by_the_slope() -> None:
    # A call costs 2000 ns and a copy 50: two copies 2100, ten 2500.
    folded = fold([block([2500.0] * 5, base=(2100.0, 2100.0), copies=10, base_copies=2)], "hot", 999.0)
    assert folded is not None
    assert folded.latency_ns == pytest.approx(50.0)


def test_processes_that_stacked_differently_still_agree() -> None:
    blocks = [
        block([2500.0] * 5, base=(2100.0,), copies=10, base_copies=2),
        block([3600.0] * 5, base=(2100.0,), copies=32, base_copies=2, process=1),
    ]
    folded = fold(blocks, "hot", 0.0)
    assert folded is not None
    assert folded.latency_ns == pytest.approx(50.0)
    assert folded.variation == pytest.approx(0.0)
    assert folded.processes == 2


def test_the_label_is_the_median_over_processes() -> None:
    blocks = [block([ns] * 6, process=i) for i, ns in enumerate((100.0, 101.0, 150.0))]
    folded = fold(blocks, "hot", 0.0)
    assert folded is not None
    assert folded.latency_ns == 101.0
    assert folded.variation == pytest.approx(50 / 101)


def test_rotated_copies_share_one_call() -> None:
    folded = fold([block([6600.0] * 3, copies=64, label="rotated")], "rotated", 200.0)
    assert folded is not None
    assert folded.latency_ns == 100.0


def test_without_any_clean_sample_all_of_them_count() -> None:
    folded = fold([block([500.0, 600.0], clean="00")], "hot", 0.0)
    assert folded is not None
    assert folded.clean_fraction == 0.0
    assert folded.samples == 2


def test_nothing_is_ever_shorter_than_the_clock_can_tell() -> None:
    folded = fold([block([90.0] * 5)], "hot", 100.0)
    assert folded is not None
    assert folded.latency_ns == RESOLUTION_NS


def test_a_row_keeps_what_made_it() -> None:
    blocks = [block([1100.0] * 6), block([900.0] * 3, label="rotated", scheduling="normal")]
    row = fold_kernel(TRIAL, Done(trial="k", status="ok"), blocks, overhead_ns=100.0, suite="s", environment_id="e")
    assert (row.latency_hot_ns, row.latency_rotated_ns) == (1000.0, 800.0)
    assert row.overhead_ns == 100.0
    assert row.scheduling == "normal", "the least favourable way of all its blocks"
    assert (row.suite, row.environment_id) == ("s", "e")


def test_a_failed_trial_has_a_reason_and_no_latency_though_blocks_exist() -> None:
    done = Done(trial="k", status="failed", reason="killed by SIGSEGV")
    row = fold_kernel(TRIAL, done, [block([1.0])], overhead_ns=0.0, suite="s", environment_id="e")
    assert (row.status, row.reason, row.latency_hot_ns) == ("failed", "killed by SIGSEGV", None)


def test_a_network_keeps_the_overhead_of_its_call() -> None:
    trial = NetworkTrial(trial="k", target="null-t1", network="n", family="f", graph_id="g", role="held-out")
    blocks = [block([5e6, 5e6, 6e6], label="network")]
    row = fold_network(trial, Done(trial="k", status="ok"), blocks, suite="s", environment_id="e")
    assert row.latency_ns == 5e6
    assert row.samples == 3
