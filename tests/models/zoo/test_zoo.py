"""Every family in its small sizes; the networks from transformers one at a time, by name."""

import importlib.util
import subprocess
import sys

import pytest

from opmark.core.errors import UnknownNameError, UsageError
from opmark.models.zoo import FAMILIES, HELD_OUT, build, family_of, held_out, models
from opmark.models.zoo.rand_wire import wiring

# What each side of the split into learned-from and held-out families must have, by one network's design.
DESIGNS = {
    "plain image classifiers": ("resnet", "vgg", "squeezenet", "alexnet", "regnet", "convnext"),
    "mobile image classifiers": ("efficientnet", "mobilenet", "mobilenet-v1", "shufflenet"),
    "vision transformers": ("vit", "deit", "levit", "segformer", "swin", "dinov2"),
    "encoders": ("bert", "albert", "encoder", "roberta"),
    "decoders": ("gpt2", "qwen3", "opt", "llama"),
    "encoders with a decoder": ("t5", "bart", "whisper"),
    "branching networks": ("inception", "densenet", "nasnet-like", "rand-wire"),
}
SMALL = sorted(model for model, family in models().items() if model in family.small and not family.onnx_path(model))


def need(model: str) -> None:
    for package in family_of(model).packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("model", SMALL)
def test_small_models_compute_finite_numbers_of_a_normal_scale_the_same_every_time(model):
    import torch

    need(model)
    first, second = build(model), build(model)
    assert not first.module.training
    assert not any(parameter.requires_grad for parameter in first.module.parameters())
    with torch.inference_mode():
        result = first.module(*first.inputs)
        again = second.module(*second.inputs)
    assert torch.isfinite(result).all()
    assert 1e-5 < float(result.abs().max()) < 1e4
    assert torch.equal(result, again)


def test_batch_and_size_shape_the_inputs():
    built = build("inception-tiny", batch=3, size=96, weights=False)
    assert [tuple(item.shape) for item in built.inputs] == [(3, 3, 96, 96)]


@pytest.mark.parametrize(("batch", "size", "noun"), [(0, None, "batch"), (1, -4, "size")])
def test_impossible_sizes_are_refused(batch, size, noun):
    with pytest.raises(UsageError, match=noun):
        build("inception-tiny", batch=batch, size=size)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        family_of("incepton")
    assert caught.value.hint == "did you mean 'inception'?"


def test_random_wiring_is_acyclic_connected_and_repeats():
    assert wiring(16, 3) == wiring(16, 3) != wiring(16, 4)
    for node, sources in enumerate(wiring(16, 3)):
        assert all(source < node for source in sources)
    assert sum(bool(sources) for sources in wiring(16, 3)) >= 10


def test_listing_the_zoo_loads_no_framework():
    code = (
        "import sys; from opmark.models.zoo import models; models();"
        "sys.exit(bool({'torch', 'onnx', 'onnxruntime', 'numpy', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_family_has_a_small_network():
    families = list(FAMILIES)
    assert [family.name for family in families if not family.small] == []
    assert [name for family in families for name in family.small if name not in family.sizes] == []


def test_every_design_is_learned_from_and_held_out():
    labels = {family.label(name) for name, family in models().items() if not family.sealed}
    assert labels >= HELD_OUT
    assert 0.2 <= len(HELD_OUT) / len(labels) <= 0.3
    for design, families in DESIGNS.items():
        assert set(families) <= labels, design
        assert set(families) & HELD_OUT, design
        assert set(families) - HELD_OUT, design


def test_what_is_held_out_goes_by_the_label_not_by_the_file():
    assert held_out("light-resnet50")
    assert held_out("resnet-50")
    assert not held_out("light-vgg19")
    assert {held_out("encoder-small"), held_out("decoder-small")} == {True, False}


@pytest.mark.parametrize("model", ["t5-mini", "whisper-mini"])
def test_networks_with_a_decoder_read_two_inputs(model):
    need(model)
    built = build(model, batch=2, size=40, weights=False)
    assert [item.shape[0] for item in built.inputs] == [2, 2]
    assert built.inputs[0].shape[-1] == 40
    assert built.module(*built.inputs).shape[0] == 2


def test_sealed_families_share_nothing_with_those_that_are_learned_from_or_judged_on():
    labels = {sealed: set() for sealed in (False, True)}
    for name, family in models().items():
        labels[family.sealed].add(family.label(name))
    assert len(labels[True]) >= 10
    assert not labels[True] & (labels[False] | HELD_OUT)
    words = {label.partition("-")[0] for label in labels[False]}
    assert not {label.partition("-")[0] for label in labels[True]} & words
