"""Eight-bit files from any ONNX source: made once, open dimensions filled in, and still the network they came from."""

import os

import pytest
from tests.models.onnx_models import array, model, node, saved

from opmark.core.errors import ContentError, UsageError
from opmark.models.coverage import coverage
from opmark.models.exported import quantised
from opmark.models.resolve import graph_of, onnx_file

VARIANTS = ["int8-static", "int8-dynamic"]
# Others by name: OPMARK_TEST_NETWORKS=light-vgg19,bert-tiny,swin-mini
NETWORKS = os.environ.get("OPMARK_TEST_NETWORKS", "light-squeezenet,light-shufflenet,encoder-tiny").split(",")


def small(path, batch="batch"):
    """A convolution and a linear layer over an open batch."""
    graph = model(
        [
            node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3]),
            node("Relu", ["c"], ["r"]),
            node("GlobalAveragePool", ["r"], ["p"]),
            node("Flatten", ["p"], ["f"]),
            node("MatMul", ["f", "v"], ["y"]),
        ],
        {"x": [batch, 3, 8, 8]},
        ["y"],
        [array("w", 16, 3, 3, 3), array("v", 16, 10)],
    )
    return saved(graph, path)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_eight_bit_network_still_computes_the_same(variant, tmp_path):
    import numpy as np
    import onnxruntime

    model = "encoder-tiny"
    feeds, results = None, []
    for name in (model, f"{model}@{variant}"):
        session = onnxruntime.InferenceSession(onnx_file(name, cache=tmp_path), providers=["CPUExecutionProvider"])
        [item] = session.get_inputs()
        feeds = feeds or {item.name: np.random.default_rng(1).integers(0, 2, size=item.shape)}
        results.append(session.run(None, feeds)[0].ravel())
    assert np.corrcoef(*results)[0, 1] > 0.95
    assert not np.array_equal(*results)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_made_once_and_holds_its_dimensions(variant, tmp_path, capfd):
    import onnx

    path = small(tmp_path / "small.onnx")
    made = quantised(path, variant, tmp_path, dimensions={"batch": 2}, name="small")
    before = made.stat().st_mtime_ns
    assert quantised(path, variant, tmp_path, dimensions={"batch": 2}, name="small") == made
    assert made.stat().st_mtime_ns == before
    assert quantised(path, variant, tmp_path, dimensions={"batch": 3}, name="small") != made
    assert [dim.dim_value for dim in onnx.load(made).graph.input[0].type.tensor_type.shape.dim] == [2, 3, 8, 8]
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ContentError, match="open"):
        quantised(path, variant, tmp_path, dimensions={}, name="small")
    with pytest.raises(UsageError, match="no open dimension"):
        quantised(path, variant, tmp_path, dimensions={"length": 2}, name="small")


def test_a_file_has_the_kernels_of_its_variant(tmp_path):
    path = small(tmp_path / "small.onnx", batch=1)
    graphs = [
        graph_of(f"{path}{ending}", "onnxruntime-cpu-t1", cache=tmp_path)
        for ending in ("", "@int8-static", "@int8-dynamic")
    ]
    assert [graph.name for graph in graphs] == ["small", "small@int8-static", "small@int8-dynamic"]
    assert len({graph.id for graph in graphs}) == 3
    assert all(4 * graph.weight_bytes < 2 * graphs[0].weight_bytes for graph in graphs[1:])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("model", NETWORKS)
def test_every_eight_bit_kernel_has_a_family(model, variant, tmp_path):
    graph = graph_of(f"{model}@{variant}", "onnxruntime-cpu-t1", cache=tmp_path)
    found = coverage(graph)
    assert found.hidden == ()
    assert found.bytes_moved_share <= 0.01, found.generic
    kinds = {node.kernel.kind for node in graph.costly}
    assert {"conv-int8", "gemm-int8"} & kinds
    assert "quantize" in kinds or variant == "int8-dynamic"
