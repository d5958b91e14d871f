from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmark.bench.suite.order import parse_shard
from opmark.bench.suite.plan import plan
from opmark.bench.suite.sampling import Sampler
from opmark.bench.suite.suite import AxisSpec, ExactKernel, KindSpec, Networks, NetworkSpec, Prior, Suite, load_suite
from opmark.core.errors import (
    ContentError,
    NothingSelectedError,
    OpMarkError,
    UnavailableError,
    UnknownNameError,
    UsageError,
)
from opmark.core.hardware.processor import block_width
from opmark.core.kernels.kind import Choice, Setting
from opmark.kinds import KINDS
from opmark.models.resolve import graph_of

SUITE = Suite(
    name="s", targets=("null-t1",), quality="quick", kinds={"gemm": KindSpec(count=40), "pool": KindSpec(count=20)}
)
SETTING = Setting(language="onnx", block=block_width())


@given(st.integers(1, 7))
@settings(max_examples=7, deadline=None)
def test_shards_are_disjoint_and_together_the_whole(count: int) -> None:
    whole = [trial.trial for trial in plan(SUITE).trials]
    parts = [[trial.trial for trial in plan(SUITE, shard=(index, count)).trials] for index in range(count)]
    assert sorted(key for part in parts for key in part) == sorted(whole)
    assert len(set(whole)) == len(whole)


def test_the_same_suite_gives_the_same_trials_and_another_seed_others() -> None:
    assert plan(SUITE).trials == plan(SUITE).trials
    other = {trial.kernel.key for trial in plan(replace(SUITE, seed=1)).kernels}
    assert other != {trial.kernel.key for trial in plan(SUITE).kernels}


def test_every_beginning_holds_every_kind_and_target() -> None:
    trials = plan(replace(SUITE, targets=("null-a-t1", "null-b-t1"))).kernels
    start = Counter((trial.target, trial.kernel.kind) for trial in trials[: len(trials) // 4])
    whole = Counter((trial.target, trial.kernel.kind) for trial in trials)
    for group, count in whole.items():
        assert abs(start[group] - count / 4) <= 2


def test_a_replaced_axis_is_respected() -> None:
    spec = KindSpec(count=12, space={"m": AxisSpec(choice=(1,)), "k": AxisSpec(low=64, high=128, multiple=64)})
    trials = plan(replace(SUITE, kinds={"gemm": spec})).kernels
    assert {trial.kernel.params["m"] for trial in trials} == {1}
    assert {trial.kernel.params["k"] for trial in trials} <= {64, 128}


def test_nothing_is_drawn_from_a_held_out_network() -> None:
    held_out = {node.kernel.key for node in graph_of("light-squeezenet", "null-t1").nodes}
    suite = Suite(
        name="s",
        targets=("null-t1",),
        quality="quick",
        kinds={"conv": KindSpec(count=60), "pool": KindSpec(count=10)},
        # Their kernels overlap: both begin with the same image and share pooling shapes.
        prior=Prior(networks=("light-shufflenet",), share=1.0),
        networks=Networks(training=("light-shufflenet",), held_out=("light-squeezenet",)),
    )
    planned = plan(suite)
    assert not held_out & {trial.kernel.key for trial in planned.kernels}
    open_suite = replace(suite, networks=Networks(training=("light-shufflenet",)))
    real = {node.kernel.key for node in graph_of("light-shufflenet", "null-t1").nodes}
    assert real & {trial.kernel.key for trial in plan(open_suite).kernels}
    roles = {trial.network: (trial.role, trial.family, trial.batch) for trial in planned.networks}
    assert roles["light-squeezenet"] == ("held-out", "squeezenet", 1)
    assert roles["light-shufflenet"][0] == "training"
    assert planned.trials[0] in planned.networks, "networks come first"


def test_a_bare_name_is_for_every_target_that_can_run_it(tmp_path: Path) -> None:
    names = ("light-squeezenet", "plain-tiny", "plain-tiny@bf16")
    both = Suite(name="s", targets=("onnxruntime-cpu-t1", "torch-eager-t1"), networks=Networks(training=names))
    found = {(trial.target, trial.network) for trial in plan(both, cache=tmp_path).networks}
    assert found == {
        ("onnxruntime-cpu-t1", "light-squeezenet"),
        ("onnxruntime-cpu-t1", "plain-tiny"),
        ("torch-eager-t1", "plain-tiny"),
        ("torch-eager-t1", "plain-tiny@bf16"),
    }
    one = replace(both, targets=("onnxruntime-cpu-t1",), networks=Networks(training=("plain-tiny",)))
    planned = plan(one, cache=tmp_path)
    assert [trial.network for trial in planned.networks] == ["plain-tiny"], "it planned nothing, and said nothing"
    drawn = replace(one, networks=Networks(), kernels=20, prior=Prior(networks=("plain-tiny",), share=1.0))
    real = {node.kernel.key for node in graph_of("plain-tiny", "onnxruntime-cpu-t1", cache=tmp_path).nodes}
    assert real & {trial.kernel.key for trial in plan(drawn, cache=tmp_path).kernels}


@pytest.mark.parametrize(
    ("networks", "prior", "where", "sentence", "hint"),
    [
        (
            ("plain-tiny", "light-squeezenet"),
            (),
            "networks.training.1",
            "an ONNX file, and torch has no",
            "add a target",
        ),
        (
            ("plain-tiny@int8-dynamic",),
            (),
            "networks.training.0",
            "'int8-dynamic' is for other targets",
            "add a target",
        ),
        ((), ("light-squeezenet",), "prior.networks.0", "runs on no target of the suite", "add a target"),
        (
            (NetworkSpec(model="plain-tiny", targets=("onnxruntime-cpu-t1",)),),
            (),
            "networks.training.0",
            "is for onnxruntime-cpu-t1, which the suite does not measure",
            "write - plain-tiny, or {model: plain-tiny, targets: [torch-eager-t1]}",
        ),
    ],
)
def test_a_network_that_contributes_nothing_is_an_error(
    networks: tuple[str | NetworkSpec, ...], prior: tuple[str, ...], where: str, sentence: str, hint: str
) -> None:
    suite = Suite(
        name="s", targets=("torch-eager-t1",), networks=Networks(training=networks), prior=Prior(networks=prior)
    )
    with pytest.raises(ContentError, match=sentence) as caught:
        plan(suite)
    assert caught.value.where == f"suite 's': {where}"
    assert hint in str(caught.value.hint)


def test_a_variant_is_for_its_runtime_and_the_family_of_its_base(tmp_path: Path) -> None:
    names = ("plain-tiny@int8-dynamic", "plain-tiny@bf16", "light-squeezenet@int8-static")
    suite = Suite(name="s", targets=("onnxruntime-cpu-t1", "torch-eager-t1"), networks=Networks(training=names))
    planned = plan(suite, cache=tmp_path)
    found = {(trial.target, trial.network): trial for trial in planned.networks}
    assert set(found) == {
        ("onnxruntime-cpu-t1", "plain-tiny@int8-dynamic"),
        ("onnxruntime-cpu-t1", "light-squeezenet@int8-static"),
        ("torch-eager-t1", "plain-tiny@bf16"),
    }
    squeezed = found["onnxruntime-cpu-t1", "light-squeezenet@int8-static"]
    assert squeezed.family == "squeezenet"
    # The worker is handed a file that is already quantised.
    assert Path(planned.models[squeezed.trial].model).is_relative_to(tmp_path)


def test_what_cannot_be_planned_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NothingSelectedError, match="selects nothing") as nothing:
        plan(replace(SUITE, kinds={"gemm": KindSpec(count=0)}))
    assert "networks: {training: [mobilenet-small]}" in (nothing.value.hint or "")
    with pytest.raises(NothingSelectedError, match="part 1 of 999,999,937 has nothing"):
        plan(SUITE, shard=(0, 999_999_937))
    with pytest.raises(UnknownNameError, match="no backend"):
        plan(replace(SUITE, targets=("cerebras-t1",)))
    with pytest.raises(UsageError, match="no target"):
        plan(replace(SUITE, targets=("null-z-t1",)))
    monkeypatch.setattr("opmark.bench.backends.null.Null.unavailable", lambda _: "switched off")
    with pytest.raises(UnavailableError, match="cannot measure on null-t1: switched off"):
        plan(SUITE)


def test_what_is_absent_can_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = replace(SUITE, targets=("onnxruntime-cpu-t1",), networks=Networks(training=("light-shufflenet",)))
    here = plan(suite, elsewhere=True)
    assert here.absent == {}
    assert here.trials == plan(suite).trials
    monkeypatch.setattr("opmark.bench.backends.onnxruntime.OnnxRuntime.unavailable", lambda _: "not installed")
    planned = plan(suite, elsewhere=True)
    assert planned.absent == {"onnxruntime-cpu-t1": "not installed"}
    assert [trial.kernel for trial in planned.kernels] == [trial.kernel for trial in here.kernels]
    assert [trial.network for trial in planned.networks] == ["light-shufflenet"]
    # A log that was measured cannot be confused with a plan that was only looked at.
    assert not {trial.trial for trial in planned.trials} & {trial.trial for trial in here.trials}
    with pytest.raises(UnavailableError, match="cannot measure on onnxruntime-cpu-t1: not installed"):
        plan(suite)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3", "1/²", "1/" + "9" * 5000])
def test_a_malformed_shard_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a shard"):
        parse_shard(text)


def test_a_shard_counts_from_one() -> None:
    assert parse_shard("1/1") == (0, 1)
    assert parse_shard("4/4") == (3, 4)


@pytest.mark.parametrize("name", KINDS.names())
def test_every_kind_can_be_drawn_without_repetition(name: str) -> None:
    kind = KINDS.load(name)
    setting = replace(SETTING, language="onnx" if "onnx" in kind.languages else "aten")
    sampler = Sampler(kind=kind, setting=setting, seed="1")
    drawn = sampler.draw(30, 0.5)
    assert len({kernel.key for kernel in drawn}) == len(drawn)
    assert len(drawn) == 30
    assert sampler.draw(30, 0.5) == drawn


def test_relatives_of_real_kernels_make_up_their_share() -> None:
    kind = KINDS.load("gemm")
    real = list(Sampler(kind=kind, setting=SETTING, seed="2").draw(10, 0))
    excluded = frozenset(kernel.key for kernel in real[:3])
    drawn = Sampler(kind=kind, setting=SETTING, seed="3", real=real, excluded=excluded).draw(40, 0.5)
    keys = {kernel.key for kernel in drawn}
    assert len(drawn) == 40
    assert not excluded & keys
    assert len(keys & {kernel.key for kernel in real}) >= 2


def test_an_exhausted_space_gives_what_it_has() -> None:
    kind = KINDS.load("gemm")
    axes = {name: Choice((axis.at(0.5),)) for name, axis in kind.space.items()}
    assert len(Sampler(kind=kind, setting=SETTING, seed="1", axes=axes).draw(20, 0)) == 1


def test_a_plan_can_be_narrowed_and_stays_the_same_suite() -> None:
    whole = plan(SUITE)
    chosen = tuple(trial.trial for trial in whole.kernels[10:13])
    narrow = replace(SUITE, only=chosen)
    assert [trial.trial for trial in plan(narrow).trials] == list(chosen)
    assert narrow.id == SUITE.id
    with pytest.raises(NothingSelectedError, match="none of the selected trials"):
        plan(replace(SUITE, only=("0" * 16,)))


def test_kinds_that_are_to_come_first_do() -> None:
    kinds = [trial.kernel.kind for trial in plan(replace(SUITE, first=("pool",))).kernels]
    assert kinds == ["pool"] * 20 + ["gemm"] * 40
    assert replace(SUITE, first=("pool",)).id == SUITE.id


def test_shards_do_not_depend_on_the_order_of_targets_or_networks() -> None:
    suite = replace(
        SUITE,
        targets=("null-a-t1", "null-b-t1"),
        networks=Networks(training=("light-squeezenet", "light-shufflenet"), held_out=("light-alexnet",)),
    )
    turned = replace(
        suite,
        targets=suite.targets[::-1],
        networks=Networks(training=suite.networks.training[::-1], held_out=suite.networks.held_out),
    )
    for index in range(3):
        ours, theirs = (plan(one, shard=(index, 3)) for one in (suite, turned))
        assert {trial.trial for trial in ours.trials} == {trial.trial for trial in theirs.trials}


def test_exact_kernels_are_planned_where_the_target_has_them() -> None:
    product = ExactKernel(kind="gemm", parameters={"m": 3, "k": 16, "n": 8, "activation": "relu"})
    twice = ExactKernel(kind="gemm", parameters={"m": 3, "k": 16, "n": 8, "bias": "row", "activation": "relu"})
    suite = Suite(name="next", targets=("null-t1",), quality="quick", at_least=0, exact=(product, twice))
    (trial,) = plan(suite).kernels
    assert trial.kernel == product.kernel
    both = plan(replace(SUITE, exact=(product,))).kernels
    assert len(both) == len(plan(SUITE).kernels) + 1


@pytest.mark.parametrize("networks", [Networks(training=("resnet18",)), Networks(held_out=("resnet18",))])
def test_a_network_that_nobody_knows_is_named_with_the_suite(networks: Networks) -> None:
    with pytest.raises(UnknownNameError, match=r"suite 's'.*no network is called 'resnet18'") as error:
        plan(replace(SUITE, networks=networks))
    assert error.value.hint == "did you mean 'resnet-50'?"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("networks: {training: [missing.onnx]}", "missing.onnx: no such file"),
        ("networks: {training: [resnet-81]}", "no network is called 'resnet-81'"),
        ("networks: {held_out: [{model: plain-tiny, targets: [null-t2]}]}", "networks.held_out.0: 'plain-tiny' is for"),
        ("kinds: {gemm: {count: 0}}", "selects nothing to measure"),
    ],
)
def test_errors_name_the_file_of_a_suite(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(f"schema: 1\nname: s\ntargets: [null-t1]\n{text}\n")
    with pytest.raises(OpMarkError) as caught:
        plan(load_suite(path))
    assert str(caught.value).startswith(f"{path}: {sentence}")


@pytest.mark.parametrize(
    "lines",
    ["networks: {training: [mobilenet-small]}", "kernels: 20\nprior: {networks: [mobilenet-small]}"],
)
def test_the_forms_in_the_hint_plan_something(tmp_path: Path, lines: str) -> None:
    (tmp_path / "s.yaml").write_text(f"schema: 1\nname: s\ntargets: [null-t1]\n{lines}\n")
    assert plan(load_suite(tmp_path / "s.yaml")).trials
