"""Every family in its small sizes; the networks from transformers one at a time, by name."""

import importlib.util
import subprocess
import sys

import pytest

from opmark.core.errors import UnknownNameError, UsageError
from opmark.models.zoo import build, family_of, models
from opmark.models.zoo.rand_wire import wiring

TRANSFORMERS = {"bert", "convnext", "efficientnet", "gpt2", "llama", "mobilenet", "resnet", "swin", "vit"}
SMALL = sorted(model for model, family in models().items() if model in family.small and not family.onnx_path(model))


def need(model: str) -> None:
    if family_of(model).name in TRANSFORMERS and importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")


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
