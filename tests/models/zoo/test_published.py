"""The sizes that have a well-known name are those sizes: their parameters are counted without allocating any."""

import importlib.util

import pytest

from opmark.models.zoo import FAMILIES, family_of

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)

# Millions of parameters as published. Image networks are published with a classifier of 1000 classes, which is taken
# off here: its inputs are the second number, and LeViT has two of them.
IMAGE = {
    "clip-vit-base-patch32": (87.456, 0),
    "convnext-tiny": (28.59, 768),
    "convnextv2-atto": (3.71, 320),
    "convnextv2-tiny": (28.64, 768),
    "dinov2-small": (22.06, 0),
    "dinov2-base": (86.58, 0),
    "efficientnet-b0": (5.29, 1280),
    "levit-128s": (7.78, 768),
    "levit-256": (18.89, 1024),
    "mobilenet-v1": (4.23, 1024),
    "mobilenet-v2": (3.50, 1280),
    "mobilevit-xx-small": (1.27, 320),
    "mobilevit-small": (5.58, 640),
    "poolformer-s12": (11.92, 512),
    "regnet-x-800mf": (7.26, 672),
    "regnet-y-200mf": (3.16, 368),
    "regnet-y-4gf": (20.65, 1088),
    "resnet-50": (25.56, 2048),
    "segformer-b0": (3.75, 0),
    "swin-tiny": (28.29, 768),
    "vit-base": (86.39, 0),
}
TEXT = {
    "albert-base": 11.68,
    "bart-base": 139.42,
    "bert-base": 109.48,
    "deberta-v3-xsmall": 70.68,
    "distilbert-base": 66.36,
    "gpt2": 124.44,
    "opt-125m": 125.24,
    "roberta-base": 124.65,
    "t5-small": 60.51,
    "whisper-tiny": 37.76,
}
# Millions of parameters of one layer: those of the published model without its tables, divided by its layers.
BLOCKS = {
    "gemma-block": (1, (2506.17 - 524.29) / 18),
    "llama-block": (2, (1235.81 - 262.67) / 16),
    "mistral-block": (1, (7241.73 - 2 * 131.07) / 32),
    "phi-block": (2, (1418.27 - 2 * 104.86) / 24),
    "qwen2-block": (2, (494.03 - 136.13) / 24),
    "qwen3-block": (2, (596.05 - 155.58) / 28),
}


def parameters(model: str) -> float:
    """In millions, embedding tables included."""
    import torch

    # DINOv2 is published with positions for images of 518 × 518.
    size = 518 if model.startswith("dinov2") else family_of(model).sizes[model]
    with torch.device("meta"):
        module, _ = family_of(model).construct(model, 1, size)
    return sum(item.numel() for item in module.parameters()) / 1e6


@pytest.mark.parametrize("model", IMAGE)
def test_image_networks_are_as_large_as_published(model):
    published, features = IMAGE[model]
    assert parameters(model) == pytest.approx(published - features * 1000 / 1e6, rel=0.015)


@pytest.mark.parametrize("model", TEXT)
def test_text_networks_are_as_large_as_published(model):
    assert parameters(model) == pytest.approx(TEXT[model], rel=0.002)


@pytest.mark.parametrize("model", BLOCKS)
def test_blocks_are_as_large_as_a_layer_of_the_published_model(model):
    layers, layer = BLOCKS[model]
    module = parameters(model) - table(model)
    assert module == pytest.approx(layers * layer, rel=0.002)


def table(model: str) -> float:
    import torch

    with torch.device("meta"):
        module, _ = family_of(model).construct(model, 1, 8)
    tables = [part.weight.numel() for part in module.modules() if isinstance(part, torch.nn.Embedding)]
    assert len(tables) == 1
    return sum(tables) / 1e6


def test_the_three_deits_differ_by_width_alone():
    tiny, small, base = (parameters(name) for name in ("deit-tiny", "deit-small", "deit-base"))
    assert (tiny, small, base) == (
        pytest.approx(5.6, rel=0.02),
        pytest.approx(21.9, rel=0.02),
        pytest.approx(86.2, rel=0.02),
    )
    assert FAMILIES.load("deit").sizes["deit-tiny"] == 224
