"""The order of looks: breadth first, then where a look removes most uncertainty."""

from collections.abc import Mapping
from dataclasses import replace

from opmark.bench.clock.protocol import FULL, QUICK
from opmark.bench.run.passes import first_look, is_settled, next_pass, stints, weights
from opmark.bench.suite.plan import Plan
from opmark.bench.suite.suite import Suite
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import TrialLabels
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.labelling import Label
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, KernelTrial, NetworkTrial

WORK = Work(flops=1, read_bytes=1, written_bytes=1)


def kernel(name: str, kind: str = "gemm", target: str = "null-t1") -> KernelTrial:
    return KernelTrial(trial=name, target=target, kernel=Kernel.of(kind, {"m": name}), work=WORK)


def network(name: str) -> NetworkTrial:
    return NetworkTrial(trial=name, target="null-t1", network=name, family=name, graph_id=name, role="training")


def label(error: float, processes: int = 2) -> Label:
    return Label(
        latency_ns=1000.0,
        standard_error=error,
        shared=0.0,
        effects=(0.7, 0.3),
        ratio=1.0,
        between=error * processes**0.5,
        effective=float(processes),
        by_process_ns=(1000.0,) * processes,
        told_ns=(1000.0,),
    )


def long(error: float) -> Label:
    return replace(label(error), latency_ns=3e8)


def labels(**found: Label) -> TrialLabels:
    return TrialLabels(labels=found, blocks=())


def chosen(found: Mapping[str, TrialLabels], *, pass_s: float = 60.0, **options: object) -> list[str]:
    trials = [kernel(name) for name in found]
    looks = next_pass(trials, found, weight={}, cost_s={}, protocol=FULL, pass_s=pass_s, **options)  # type: ignore[arg-type]
    return [look.trial.trial for look in looks]


def test_networks_come_first_and_targets_take_turns() -> None:
    trials = [kernel(f"{target}{number}", target=target) for number in range(40) for target in "ab"]
    order = list(stints([*trials, network("n")]))
    assert [trial.trial for trial in order[0]] == ["n"]
    assert [stint[0].target for stint in order[1:]] == ["a", "b"] * 4
    assert sorted(trial.trial for stint in order for trial in stint) == sorted(["n", *(t.trial for t in trials)])


def test_a_first_look_measures_every_label() -> None:
    assert first_look(kernel("k")).labels == (HOT, ROTATED)
    assert first_look(network("n")).labels == (NETWORK,)


def test_what_is_known_well_enough_in_enough_processes_is_settled() -> None:
    assert is_settled(labels(hot=label(0.01), rotated=label(0.04)), FULL)
    assert not is_settled(labels(hot=label(0.01), rotated=label(0.05)), FULL)
    assert not is_settled(labels(hot=label(0.02), rotated=label(0.01)), FULL)
    assert not is_settled(labels(hot=label(0.001, processes=1)), FULL)
    assert is_settled(labels(hot=label(0.04, processes=1)), QUICK)
    assert is_settled(labels(hot=label(0.5, processes=FULL.most_looks)), FULL)


def test_a_long_kernel_waits_though_this_run_has_not_seen_it() -> None:
    found = {"long": labels(hot=long(0.2)), "short": labels(hot=label(0.1))}
    assert chosen(found) == ["short", "long"]
    assert chosen(found, pass_s=1.0) == ["short", "long"]
    assert chosen({"long": labels(hot=long(0.2)), "short": labels(hot=label(0.02))}) == ["long", "short"]


def test_the_next_pass_begins_with_the_worst_label_and_ends_with_its_time() -> None:
    found = {"good": labels(hot=label(0.01)), "bad": labels(hot=label(0.2)), "poor": labels(hot=label(0.05))}
    assert chosen(found) == ["bad", "poor"]
    assert chosen(found, pass_s=0.03) == ["bad"]
    assert chosen({"good": labels(hot=label(0.01))}) == []
    assert chosen({"good": labels(hot=label(0.01))}, wanted={"good"}) == ["good"]


def test_a_doubtful_rotated_label_brings_the_hot_one_along() -> None:
    found = {"k": labels(hot=label(0.001), rotated=label(0.3))}
    (look,) = next_pass([kernel("k")], found, weight={}, cost_s={}, protocol=FULL, pass_s=60.0)
    assert look.labels == (HOT, ROTATED)
    hot_only = {"k": labels(hot=label(0.3), rotated=label(0.001))}
    (look,) = next_pass([kernel("k")], hot_only, weight={}, cost_s={}, protocol=FULL, pass_s=60.0)
    assert look.labels == (HOT,)


def test_a_look_gives_the_labels_that_pay() -> None:
    def labels_of_next(rotated_error: float) -> tuple[str, ...]:
        found = {"k": labels(hot=label(0.1), rotated=label(rotated_error))}
        (look,) = next_pass([kernel("k")], found, weight={}, cost_s={}, protocol=FULL, pass_s=60.0)
        return look.labels

    assert labels_of_next(0.1) == (HOT,)
    assert labels_of_next(0.5) == (HOT, ROTATED)


def test_a_look_at_one_label_takes_less_of_a_pass() -> None:
    found = {name: labels(hot=label(0.1), rotated=label(0.1)) for name in ("a", "b", "c", "d")}
    seconds = dict.fromkeys(found, 1.0)
    looks = next_pass([kernel(name) for name in found], found, weight={}, cost_s=seconds, protocol=FULL, pass_s=1.0)
    assert all(look.share < 1.0 for look in looks)
    assert len(looks) == 2


def test_a_doubtful_label_counts_more_than_its_variance() -> None:
    seconds = {"doubtful": 1.2, "coarse": 1.0}
    found = {"doubtful": labels(hot=label(0.051)), "coarse": labels(hot=label(0.049))}
    looks = next_pass([kernel(name) for name in found], found, weight={}, cost_s=seconds, protocol=FULL, pass_s=60.0)
    assert [look.trial.trial for look in looks] == ["doubtful", "coarse"]


def test_cheap_and_weighty_labels_go_first() -> None:
    found = {name: labels(hot=label(0.05)) for name in ("dear", "cheap", "weighty")}
    looks = next_pass(
        [kernel(name) for name in found],
        found,
        weight={"weighty": 9.0},
        cost_s={"dear": 2.0, "cheap": 0.2, "weighty": 0.2},
        protocol=FULL,
        pass_s=60.0,
    )
    assert [look.trial.trial for look in looks] == ["weighty", "cheap", "dear"]


def test_weights_follow_the_share_of_the_kind_and_leave_everything_some() -> None:
    target = Target(device="d", backend="null")
    plan = Plan(
        suite=Suite(name="s", targets=("null-t1",)),
        targets=(target,),
        kernels=(kernel("a"), kernel("b"), kernel("c", "softmax")),
        networks=(network("n"),),
        models={},
        shares={"null-t1": {"gemm": 0.9, "softmax": 0.1}},
    )
    found = weights(plan)
    assert found["a"] == found["b"] > found["c"] >= 0.5
    assert found["n"] > found["a"]
    assert weights(replace(plan, shares={}))["a"] == 0.5


def test_the_networks_of_a_target_weigh_as_much_as_its_kernels() -> None:
    plan = Plan(
        suite=Suite(name="s", targets=("null-t1",)),
        targets=(Target(device="d", backend="null"),),
        kernels=tuple(kernel(f"kernel-{number}") for number in range(100)),
        networks=(network("m"), network("n")),
        models={},
        shares={"null-t1": {"gemm": 1.0}},
    )
    found = weights(plan)
    assert found["m"] + found["n"] == sum(found[trial.trial] for trial in plan.kernels) == 100
