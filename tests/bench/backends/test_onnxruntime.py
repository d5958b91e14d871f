"""The ONNX Runtime backend on real kernels; no timing is asserted."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opmark.bench.backends._onnx import runtime as module
from opmark.bench.backends._onnx.model import END, chain_input, stack
from opmark.bench.backends.onnxruntime import BACKEND
from opmark.bench.worker.backend import CHAIN, PARALLEL, SINGLE
from opmark.core.errors import ContentError, MeasurementError, UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import KINDS
from opmark.models.resolve import captured_graph, graph_of

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

TARGET = Target(device="d", backend="onnxruntime", provider="cpu")


def make(kind: str, **parameters: Any) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


def node_of(kernel: Kernel) -> OnnxNode:
    family = KINDS.load(kernel.kind)
    made = family.to_onnx(family.parse(kernel))
    assert made is not None
    return made


SQUARE = make("gemm", m=32, k=32, n=32, dtype="float32")
WIDE = make("gemm", m=32, k=32, n=64, dtype="float32")
RESHAPE = make("movement", op="reshape", shapes=((4, 16),), arguments=(8, 8), dtype="float32")


def test_a_chain_hands_its_output_on_and_every_copy_has_its_own_weights() -> None:
    stacked = stack(node_of(SQUARE), copies=4, chain=True, rotated=False)
    graph = onnx.load_from_string(stacked.model).graph
    assert [node.input[0] for node in graph.node] == ["x0", "y0_0", "y0_1", "y0_2"]
    assert len({node.input[1] for node in graph.node}) == 4
    assert [output.name for output in graph.output] == ["y0_3"]


def test_copies_side_by_side_read_one_input_and_rotated_ones_their_own() -> None:
    side = stack(node_of(WIDE), copies=3, chain=False, rotated=False)
    apart = stack(node_of(WIDE), copies=3, chain=False, rotated=True)
    assert list(side.feeds) == ["x0"]
    assert len(apart.feeds) == 3
    assert len(side.outputs) == len(apart.outputs) == 3


def test_added_copies_read_one_input_and_only_their_sum_leaves() -> None:
    stacked = stack(node_of(WIDE), copies=3, chain=False, rotated=False, added=True)
    graph = onnx.load_from_string(stacked.model).graph
    assert list(stacked.feeds) == ["x0"]
    assert [node.op_type for node in graph.node] == ["Gemm", "Gemm", "Add", "Gemm", "Add"]
    assert [list(node.input) for node in graph.node if node.op_type == "Add"] == [["y0_0", "y0_1"], ["sum1", "y0_2"]]
    assert [output.name for output in graph.output] == list(stacked.outputs) == ["sum2"]
    onnx.checker.check_model(onnx.load_from_string(stacked.model))


def test_large_constants_travel_outside_the_model_file() -> None:
    kernel = make("gemm", m=1, k=512, n=512, dtype="float32")
    stacked = stack(node_of(kernel), copies=3, chain=True, rotated=False)
    assert len(stacked.model) < 10_000
    assert sum(array.nbytes for array in stacked.constants.values()) == 3 * 512 * 512 * 4
    prepared = BACKEND.prepare(kernel, TARGET, copies=3, construction=CHAIN, rotated=False)
    prepared.call()
    prepared.close()


def test_a_view_is_undone_by_the_next_and_never_leaves_the_model() -> None:
    stacked = stack(node_of(RESHAPE), copies=4, chain=True, rotated=False)
    graph = onnx.load_from_string(stacked.model).graph
    assert [node.name for node in graph.node] == ["copy0", "copy1", "copy2", "copy3", END]
    assert list(stacked.outputs) == ["end"]
    prepared = BACKEND.prepare(RESHAPE, TARGET, copies=4, construction=CHAIN, rotated=False)
    prepared.call()
    prepared.close()


def test_chains_are_for_kernels_whose_output_can_be_their_input() -> None:
    assert BACKEND.construction(SQUARE) == CHAIN
    assert BACKEND.construction(WIDE) == PARALLEL
    assert BACKEND.construction(RESHAPE) == CHAIN
    with pytest.raises(MeasurementError, match="cannot be chained"):
        stack(node_of(WIDE), copies=2, chain=True, rotated=False)
    operand = Operand(spec=TensorSpec((4,)))
    adds = OnnxNode(op_type="Add", inputs=(Operand(spec=TensorSpec((1,))), operand), outputs=(TensorSpec((4,)),))
    assert chain_input(adds) == 1


def test_indices_exist_and_other_numbers_are_of_normal_size() -> None:
    import numpy as np

    gather = make("gather", op="gather", shape=(50, 8), indices=(64,), axis=0, dtype="float32")
    stacked = stack(node_of(gather), copies=1, chain=False, rotated=False)
    for array in stacked.feeds.values():
        if np.issubdtype(array.dtype, np.integer):
            assert 0 <= array.min() <= array.max() < 50
        else:
            assert np.abs(array).min() > 1e-3
    prepared = BACKEND.prepare(gather, TARGET, copies=1, construction=SINGLE, rotated=False)
    prepared.call()


@pytest.mark.parametrize(("dtype", "most"), [("bool", 1), ("uint8", 7), ("int64", 7)])
def test_many_integers_have_no_short_pattern(dtype: str, most: int) -> None:
    import numpy as np

    node = OnnxNode(
        op_type="Not", inputs=(Operand(spec=TensorSpec((5, 2**20), dtype)),), outputs=(TensorSpec((5, 2**20), dtype),)
    )
    (values,) = stack(node, copies=1, chain=False, rotated=False).feeds.values()
    assert values.shape == (5, 2**20)
    assert values.dtype == np.dtype(dtype)
    assert (values.min(), values.max()) == (0, most)
    blocks = values.reshape(-1, 2**16)[: 2**6]
    assert len({block.tobytes() for block in blocks}) == len(blocks)


def test_every_kernel_of_a_real_network_runs_alone(subtests_of: tuple[Kernel, ...]) -> None:
    for kernel in subtests_of:
        prepared = BACKEND.prepare(kernel, TARGET, copies=1, construction=SINGLE, rotated=False)
        prepared.call()
        prepared.close()


@pytest.fixture(scope="module")
def subtests_of(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kernel, ...]:
    # captured here: graphs that came with OpMark have channels in the blocks of another processor
    graph = captured_graph("light-shufflenet", "onnxruntime-cpu-t1", cache=tmp_path_factory.mktemp("cache"))
    return tuple({node.kernel for node in graph.nodes})


def test_what_the_runtime_takes_apart_is_said() -> None:
    group = make("norm", op="group", shape=(1, 16, 4, 4), axis=1, groups=4, scale=True, shift=True, dtype="float32")
    module._kept.clear()
    with pytest.raises(MeasurementError, match=r"the runtime inserts .*Reshape"):
        BACKEND.prepare(group, TARGET, copies=1, construction=SINGLE, rotated=False)


@pytest.mark.parametrize("width", [8, 2048])
def test_a_type_the_runtime_casts_around_is_no_row_of_that_type(width: int) -> None:
    half = make("gemm", m=1, k=width, n=width, activation="relu", dtype="float16")
    module._kept.clear()
    with pytest.raises(MeasurementError, match="the runtime inserts Cast around it"):
        BACKEND.prepare(half, TARGET, copies=1, construction=SINGLE, rotated=False)
    assert not module._kept


def test_a_worker_counts_denormals_as_zero() -> None:
    # A process's first session decides for good, so this has a process of its own.
    code = """
import numpy as np
from opmark.bench.backends.onnxruntime import BACKEND
from opmark.core.hardware.target import Target
tiny = np.full(4, 1e-40, dtype=np.float32)
assert (tiny * np.float32(0.5) > 0).all()
BACKEND.start(Target(device="d", backend="onnxruntime", provider="cpu"))
assert (tiny * np.float32(0.5) == 0).all()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_eight_bit_kernels_of_a_real_network_run_alone(tmp_path: Path) -> None:
    kernels = {node.kernel for node in graph_of("encoder-tiny@int8-static", "onnxruntime-cpu-t1", cache=tmp_path).nodes}
    assert {"gemm-int8", "quantize", "elementwise", "softmax"} <= {kernel.kind for kernel in kernels}
    for kernel in kernels:
        prepared = BACKEND.prepare(kernel, TARGET, copies=2, construction=PARALLEL, rotated=True)
        prepared.call()
        prepared.close()


def test_a_kernel_the_runtime_does_not_have_is_refused_in_its_words() -> None:
    odd = make("gemm", m=8, k=8, n=8, dtype="int16")
    with pytest.raises(MeasurementError, match="ONNX Runtime refuses it"):
        BACKEND.prepare(odd, TARGET, copies=1, construction=SINGLE, rotated=False)
    brain = make("gemm", m=8, k=8, n=8, dtype="bfloat16")
    with pytest.raises((MeasurementError, UnavailableError)):
        BACKEND.prepare(brain, TARGET, copies=1, construction=SINGLE, rotated=False)


def test_a_network_runs_whole_and_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    prepared = BACKEND.prepare_network("light-shufflenet", TARGET, dimensions={})
    prepared.call()
    prepared.close()
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(MeasurementError, match=r"cannot run broken\.onnx"):
        BACKEND.prepare_network(str(broken), TARGET, dimensions={})
    with pytest.raises(ContentError, match="no such file"):
        BACKEND.prepare_network(str(tmp_path / "none.onnx"), TARGET, dimensions={})


def test_open_dimensions_must_be_given(tmp_path: Path) -> None:
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = tmp_path / "open.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(MeasurementError, match="input 'x' has the open dimension 'batch'"):
        BACKEND.prepare_network(str(path), TARGET, dimensions={})
    prepared = BACKEND.prepare_network(str(path), TARGET, dimensions={"batch": 3})
    prepared.call()


def test_chains_keep_off_denormals_and_leave_the_process_as_it_was() -> None:
    import numpy as np
    import onnxruntime

    tiny = np.finfo(np.float32).tiny
    multiply = make("elementwise", op="mul", shapes=((64, 64), (64, 64)), constant=(1,), dtype="float32")
    for kernel in (SQUARE, multiply):
        stacked = stack(node_of(kernel), copies=34, chain=True, rotated=False)
        options = module._kernel_options(stacked, TARGET)
        session = onnxruntime.InferenceSession(stacked.model, options, providers=["CPUExecutionProvider"])
        (result,) = session.run(None, dict(stacked.feeds))
        assert np.median(np.abs(result)) > tiny
    assert float(np.float32(tiny) / np.float32(2)) != 0.0
