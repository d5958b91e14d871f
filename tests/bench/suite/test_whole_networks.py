import pytest

from opmark.bench.suite.suite import Networks, Suite
from opmark.bench.suite.whole_networks import every, named_in, parse_batches, parse_sizes, select, size_of
from opmark.core.errors import NothingSelectedError, UnknownNameError, UsageError
from opmark.models.zoo import models


def test_lists_of_numbers() -> None:
    assert parse_batches("1, 8,1") == (1, 8)
    assert parse_sizes("1x,224,0.5x") == (1.0, 224, 0.5)
    for text in ("", "1,", "a", "0"):
        with pytest.raises(UsageError):
            parse_batches(text)
    for text in ("", "0x", "-3", "1e9x", "x"):
        with pytest.raises(UsageError):
            parse_sizes(text)


@pytest.mark.parametrize(
    ("wanted", "own", "size"), [(1.0, 224, 224), (0.5, 224, 128), (0.1, 32, 32), (0.5, 197, 98), (99, 224, 99)]
)
def test_a_factor_keeps_what_attention_windows_divide(wanted: float, own: int, size: int) -> None:
    assert size_of(wanted, own) == size


def test_all_means_the_zoo() -> None:
    open_models = {name for name, family in models().items() if not family.sealed}
    assert set(every(small=True)) < set(every(small=False)) == open_models
    suite = Suite(name="s", targets=(), networks=Networks(training=("a", "b"), held_out=("a", "c")))
    assert named_in(suite) == ("a", "b", "c")


def test_networks_are_selected_with_what_differs_from_their_own_shapes() -> None:
    pytest.importorskip("torch")
    found = select(["plain-tiny"], ["null-t1"], batches=(1, 2), sizes=(1.0, 64))
    assert found.refused == ()
    specs = found.suite.networks.of("training")
    assert [dict(spec.dimensions) for spec in specs] == [{}, {"size": 64}, {"batch": 2}, {"batch": 2, "size": 64}]
    assert {spec.targets for spec in specs} == {("null-t1",)}
    again = select(["plain-tiny", "plain-tiny"], ["null-t1"], batches=(1, 2), sizes=(1.0, 64))
    assert again.suite.id == found.suite.id


def test_families_that_nothing_is_learned_from_are_held_out() -> None:
    pytest.importorskip("torch")
    found = select(["resnet-tiny", "plain-tiny"], ["null-t1"])
    assert [spec.model for spec in found.suite.networks.of("held-out")] == ["resnet-tiny"]
    assert [spec.model for spec in found.suite.networks.of("training")] == ["plain-tiny"]


def test_what_cannot_run_is_refused_with_its_reason() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    found = select(["light-squeezenet", "plain-tiny"], ["null-t1", "torch-eager-t1"])
    assert [(item.network, item.target) for item in found.refused] == [("light-squeezenet", "torch-eager-t1")]
    assert "torch has no kernels for one" in found.refused[0].reason
    (squeezenet,) = found.suite.networks.of("held-out")
    assert squeezenet.targets == ("null-t1",)
    with pytest.raises(NothingSelectedError, match="other targets"):
        select(["plain-tiny@int8-dynamic"], ["torch-eager-t1"])
    with pytest.raises(UnknownNameError):
        select(["plain-tinny"], ["null-t1"])


def test_networks_of_sealed_families_stay_sealed() -> None:
    pytest.importorskip("timm")
    (spec,) = select(["timm-efficientvit-m0"], ["torch-eager-t1"]).suite.networks.of("sealed")
    assert spec.model == "timm-efficientvit-m0"
