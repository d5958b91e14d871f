"""From a name to a graph, both ways, with a cache; networks from transformers two at a time."""

import importlib.util
import os

import pytest
from tests.models import onnx_models

from opmark.core.errors import ContentError, UnavailableError, UnknownNameError, UsageError
from opmark.models.coverage import coverage
from opmark.models.exported import exported_zoo_model
from opmark.models.origin import code_id
from opmark.models.resolve import graph_of, onnx_file, torch_module
from opmark.models.source import source_of, zoo_sizes
from opmark.models.zoo import family_of

OWN = ["inception-tiny", "encoder-tiny", "two-tower-tiny", "wide-and-deep-tiny", "mixture-of-experts-tiny"]
# Others by name: OPMARK_TEST_NETWORKS=swin-tiny,convnext-tiny
TRANSFORMERS = os.environ.get("OPMARK_TEST_NETWORKS", "bert-tiny,resnet-tiny").split(",")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def covered(model, cache):
    for target in ("torch-eager-t1", "onnxruntime-cpu-t1"):
        found = coverage(graph_of(model, target, cache=cache))
        assert found.hidden == (), target
        assert found.bytes_moved_share <= 0.02, target


@pytest.mark.parametrize("model", OWN)
def test_own_networks_go_both_ways(model, cache):
    covered(model, cache)


@pytest.mark.slow
@pytest.mark.parametrize("model", TRANSFORMERS)
def test_networks_from_transformers_go_both_ways(model, cache):
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed: pip install 'opmark[models]'")
    covered(model, cache)


@pytest.mark.parametrize("model", ["inception-tiny", "encoder-tiny"])
def test_an_export_computes_what_the_module_computes(model, cache):
    import numpy as np
    import onnxruntime
    import torch

    module, inputs = torch_module(model)
    with torch.inference_mode():
        wanted = module(*inputs).numpy()
    session = onnxruntime.InferenceSession(onnx_file(model, cache=cache), providers=["CPUExecutionProvider"])
    feeds = {item.name: tensor.numpy() for item, tensor in zip(session.get_inputs(), inputs, strict=True)}
    [found] = session.run(None, feeds)
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_graphs_and_exports_are_made_once(cache, capfd):
    first = graph_of("encoder-tiny", "onnxruntime-cpu-t1", cache=cache)
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("encoder-tiny*")}
    assert {path.suffix for path in files} == {".onnx", ".json"}
    assert graph_of("encoder-tiny", "onnxruntime-cpu-t1", cache=cache) == first
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("encoder-tiny*")} == files
    assert capfd.readouterr().out == ""
    assert first.target == "onnxruntime-cpu-t1"
    assert first.name == "encoder-tiny"


def test_a_damaged_cache_is_made_again(tmp_path):
    first = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path)
    [path] = tmp_path.rglob("*.json")
    path.write_text(path.read_text()[:100])
    assert graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path) == first


def test_batch_and_size_make_another_graph(tmp_path):
    small = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path)
    large = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path, dimensions={"batch": 4})
    assert large.tensors["input_0"].shape == (4, 3, 32, 32)
    assert 3.5 < large.work.flops / small.work.flops < 4.5


def test_an_exported_batch_is_in_the_file(tmp_path):
    import onnx

    model = onnx.load(exported_zoo_model("plain-tiny", tmp_path, {"batch": 3}))
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [3, 3, 32, 32]
    assert {item.domain: item.version for item in model.opset_import}[""] == 20


def test_a_made_up_target_takes_what_is_quickest(tmp_path):
    assert graph_of("plain-tiny", "null-fast-t1", cache=tmp_path).language == "aten"
    assert graph_of("light-squeezenet", "null-fast-t1", cache=tmp_path).language == "onnx"


@pytest.mark.parametrize(
    ("model", "target", "dimensions", "error", "sentence"),
    [
        ("light-squeezenet", "torch-eager-t1", {}, UsageError, "torch has no kernels"),
        ("plain-tiny", "torch-eager", {}, UsageError, "not a target"),
        ("plain-tiny", "onnxruntime-cuda-t1", {}, UnavailableError, "CPU provider"),
        ("plain-tiny", "torch-eager-t1", {"height": 3}, UsageError, "no dimension 'height'"),
        ("plain-tni", "torch-eager-t1", {}, UnknownNameError, "plain-tni"),
        ("absent.onnx", "onnxruntime-cpu-t1", {}, ContentError, "no such file"),
        ("absent.pt2", "torch-eager-t1", {}, ContentError, "no such file"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, model, target, dimensions, error, sentence):
    with pytest.raises(error, match=sentence):
        graph_of(model, target, cache=tmp_path, dimensions=dimensions)
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.filterwarnings("ignore")
def test_a_program_file_goes_both_ways(tmp_path):
    import torch

    module, inputs = torch_module("encoder-tiny")
    path = tmp_path / "mine.pt2"
    torch.export.save(torch.export.export(module, inputs), path)
    assert source_of(str(path)).name == "mine"
    covered(str(path), tmp_path)
    with pytest.raises(UsageError, match="fixed"):
        graph_of(str(path), "torch-eager-t1", cache=tmp_path, dimensions={"batch": 2})


def test_a_source_knows_its_family_and_file():
    assert source_of("light-resnet50").family == "resnet"
    assert source_of("light-resnet50").is_onnx
    assert source_of("inception").path is None
    assert family_of("inception").label("inception") == "inception"
    assert zoo_sizes({"size": 7}) == (None, 7)


def test_a_change_of_code_makes_what_it_made_stale():
    assert code_id("kinds") == code_id("kinds") != code_id("models")


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [((2**62,), "a dimension of 4,611,686,018,427,387,904"), ((2**30, 2**30), "1,152,921,504,606,846,976 elements")],
)
def test_a_tensor_that_fits_no_machine_is_refused(tmp_path, shape, sentence):
    built = onnx_models.model([onnx_models.node("Relu", ["x"], ["y"])], {"x": shape}, ["y"])
    path = onnx_models.saved(built, tmp_path / "m.onnx")
    with pytest.raises(ContentError, match=r"m\.onnx") as refused:
        graph_of(str(path), "onnxruntime-cpu-t1", cache=tmp_path / "cache")
    assert sentence in str(refused.value)
    assert not (tmp_path / "cache").exists()
