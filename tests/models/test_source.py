"""Variants of networks by name: what they mean, where they exist, and what tables call them."""

import pytest

from opmark.core.errors import ContentError, OpMarkError, UnknownNameError, UsageError
from opmark.models.resolve import graph_of, onnx_file, torch_module
from opmark.models.source import VARIANTS, is_bf16, is_training, source_of, split_variant, variant_language


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bert-base", ("bert-base", "")),
        ("bert-base@int8-dynamic", ("bert-base", "int8-dynamic")),
        ("folder/net.onnx@int8-static", ("folder/net.onnx", "int8-static")),
        ("me@home/net.onnx", ("me@home/net.onnx", "")),
        ("net@v2.onnx", ("net@v2.onnx", "")),
        ("net@v2.onnx@int8-static", ("net@v2.onnx", "int8-static")),
        ("vgg-small@bf16-training", ("vgg-small", "bf16-training")),
    ],
)
def test_a_name_splits_at_its_last_at(name, parts):
    assert split_variant(name) == parts


def test_a_wrong_variant_has_a_nearest_one():
    with pytest.raises(UnknownNameError) as caught:
        split_variant("bert-base@int8")
    assert "int8-" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="no network"):
        split_variant("@bf16")


def test_each_variant_has_one_language():
    assert {variant_language(variant) for variant in VARIANTS} == {"onnx", "aten"}
    assert variant_language("") == ""
    assert [is_bf16(item) for item in ("bf16", "bf16-training", "training", "int8-static", "")] == [1, 1, 0, 0, 0]
    assert [is_training(item) for item in ("bf16", "bf16-training", "training", "int8-static", "")] == [0, 1, 1, 0, 0]


def test_a_source_keeps_the_suffix_in_its_name_only():
    found = source_of("light-resnet50@int8-static")
    assert (found.name, found.base, found.family) == ("light-resnet50@int8-static", "light-resnet50", "resnet")
    assert (found.variant, found.language) == ("int8-static", "onnx")
    assert source_of("plain-tiny@int8-static").language == "onnx"
    assert source_of("plain-tiny@bf16").language == source_of("plain-tiny").language == "aten"
    assert source_of("light-resnet50").language == "onnx"


@pytest.mark.parametrize(
    ("model", "target", "error", "sentence"),
    [
        ("plain-tiny@int8", "torch-eager-t1", UnknownNameError, "variant"),
        ("plain-tny@bf16", "torch-eager-t1", UnknownNameError, "plain-tny"),
        ("plain-tiny@int8-static", "torch-eager-t1", UsageError, "ONNX Runtime targets only"),
        ("plain-tiny@bf16", "onnxruntime-cpu-t1", UsageError, "torch targets only"),
        ("plain-tiny@training", "onnxruntime-cpu-t1", UsageError, "torch targets only"),
        ("light-squeezenet@bf16", "torch-eager-t1", UsageError, "no variant 'bf16'"),
        ("absent.onnx@int8-static", "onnxruntime-cpu-t1", ContentError, "no such file"),
    ],
)
def test_a_wrong_pair_is_one_sentence(tmp_path, model, target, error, sentence):
    with pytest.raises(error, match=sentence):
        graph_of(model, target, cache=tmp_path)
    assert not list(tmp_path.rglob("*.*"))


def test_files_and_modules_of_a_variant_of_the_other_side_are_refused(tmp_path):
    with pytest.raises(UsageError, match="torch targets only"):
        onnx_file("plain-tiny@bf16", cache=tmp_path)
    with pytest.raises(UsageError, match="ONNX Runtime targets only"):
        torch_module("plain-tiny@int8-static")


def test_a_bfloat16_network_computes_in_bfloat16(tmp_path):
    import torch

    module, inputs = torch_module("plain-tiny@bf16")
    with torch.inference_mode():
        assert module(*inputs).dtype == torch.bfloat16
    graph = graph_of("plain-tiny@bf16", "torch-eager-t1", cache=tmp_path)
    whole = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path)
    assert graph.name == "plain-tiny@bf16"
    assert {node.kernel.params["dtype"] for node in graph.costly} == {"bfloat16"}
    assert [node.kernel.kind for node in graph.costly] == [node.kernel.kind for node in whole.costly]
    assert graph.work.flops == whole.work.flops
    assert graph.weight_bytes * 2 == whole.weight_bytes


def test_tokens_keep_their_type_in_bfloat16(tmp_path):
    graph = graph_of("encoder-tiny@bf16", "torch-eager-t1", cache=tmp_path)
    assert {spec.dtype for spec in graph.weights.values()} == {"bfloat16"}
    assert graph.tensors["input_0"].dtype == "int64"
    assert graph_of("plain-tiny@bf16", "torch-eager-t1", cache=tmp_path).tensors["input_0"].dtype == "bfloat16"


def test_a_training_variant_has_the_phases_of_a_step(tmp_path):
    graph = graph_of("plain-tiny@training", "torch-eager-t1", cache=tmp_path)
    assert {node.phase for node in graph.nodes} == {"forward", "backward", "update"}
    plain = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path)
    assert 2 < graph.work.flops / plain.work.flops < 4


@pytest.mark.parametrize(
    ("name", "sentence", "hint"),
    [
        ("model.pt", "is a pickle", "torch.export.save"),
        ("a/Model.PTH", "is a pickle", "torch.export.save"),
        ("me@home.pt", "is a pickle", "torch.export.save"),
        ("net.py", "is Python source", "torch.export.save"),
        ("model.safetensors", "without a network", "torch.export.save"),
        ("model.h5", "TensorFlow", "tf2onnx"),
    ],
)
def test_files_that_people_have_instead_say_how_to_export(name, sentence, hint):
    with pytest.raises(ContentError, match=sentence) as caught:
        source_of(name)
    assert hint in (caught.value.hint or "")


def test_a_folder_says_how_to_export(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ContentError, match="is a folder") as caught:
        source_of(str(tmp_path))
    assert "optimum-cli export onnx" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".onnx", "x" * 5000 + ".pt2"])
def test_a_name_that_no_file_can_have_is_one_sentence(name: str) -> None:
    with pytest.raises(OpMarkError):
        source_of(name)
