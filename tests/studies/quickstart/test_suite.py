"""What the shipped quickstart promises: unseen networks are unseen, and every kind they need is measured."""

import pytest

from opmark.bench.suite.suite import find_suite, load_suite, specs
from opmark.models.resolve import graph_of
from opmark.models.zoo import family_of

SUITE = load_suite(find_suite("quickstart"))


def is_onnx(model: str) -> bool:
    return family_of(model).onnx_path(model) is not None


HELD_OUT = [spec.model for spec in SUITE.networks.of("held-out")]


def test_no_family_is_both_learned_from_and_reported_as_unseen_on_one_target() -> None:
    known = {spec.model for spec in SUITE.networks.of("training")} | {
        spec.model for spec in specs(SUITE.prior.networks)
    }
    seen = {(is_onnx(model), family_of(model).label(model)) for model in known}
    unseen = {(is_onnx(model), family_of(model).label(model)) for model in HELD_OUT}
    assert not seen & unseen


def test_at_least_four_onnx_networks_and_two_of_our_own_are_predicted() -> None:
    onnx = [model for model in HELD_OUT if is_onnx(model)]
    assert len(onnx) >= 4
    assert len(HELD_OUT) - len(onnx) >= 2
    assert "inception-small" in HELD_OUT


@pytest.mark.parametrize("model", ["light-squeezenet", "light-inception-v1", "encoder-small", "inception-small"])
def test_every_kind_a_held_out_network_needs_is_in_the_suite(model: str) -> None:
    target = "onnxruntime-cpu-t1" if is_onnx(model) else "torch-eager-t1"
    needed = {node.kernel.kind for node in graph_of(model, target).costly}
    assert needed <= set(SUITE.kinds)
