"""Coverage says what hides in the generic family, matrix work above all."""

import pytest
from tests.models.onnx_models import light_graph

from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds import work_of
from opmark.models.coverage import coverage

ADD = Kernel.of(
    "elementwise",
    {"op": "relu", "shapes": ((250,),), "constant": (), "exponent": None, "dtype": "float32"},
)
GEMM = Kernel.of(
    "gemm",
    {
        "m": 1, "k": 2, "n": 2, "bias": "none", "trans_a": False, "trans_b": False, "activation": "", "weight": True,
        "dtype": "float32",
    },
)  # fmt: skip
COPY = Kernel.of("bytes-moved", {"read_bytes": 1000, "written_bytes": 1000, "dtype": "float32"})


def graph(*nodes: tuple[Kernel, str, bool]) -> Graph:
    return Graph(
        name="test",
        language="onnx",
        nodes=tuple(
            Node(
                name=f"n{index}",
                kernel=kernel,
                work=work_of(kernel),
                inputs=("x",),
                outputs=(f"y{index}",),
                origins=(label,),
                free=free,
            )
            for index, (kernel, label, free) in enumerate(nodes)
        ),
        tensors={"x": TensorSpec((250,)), **{f"y{index}": TensorSpec((250,)) for index in range(len(nodes))}},
        inputs=("x",),
        outputs=("y0",),
    )


def test_a_covered_graph_hides_nothing() -> None:
    found = coverage(light_graph("light-squeezenet"))
    assert found.flops_share == found.bytes_share == 1.0
    assert found.bytes_moved_share == 0.0
    assert (found.generic_kernels, found.generic, found.hidden) == (0, (), ())
    assert found.kernels == 40


def test_the_share_is_one_of_bytes() -> None:
    found = coverage(graph((ADD, "Relu", False), (COPY, "Det", False)))
    assert found.bytes_moved_share == pytest.approx(0.5)
    assert found.generic == ("Det",)
    assert not found.hidden
    assert found.flops_share == 1.0


def test_free_kernels_do_not_count() -> None:
    found = coverage(graph((ADD, "Relu", False), (COPY, "Det", True)))
    assert (found.kernels, found.generic_kernels, found.bytes_moved_share) == (1, 0, 0.0)


@pytest.mark.parametrize(
    "label",
    ["QLinearConv", "com.microsoft:QAttention", "MatMulInteger", "Einsum", "aten.bmm.out", "aten.addmm",
     "aten.mm.default",
     "com.microsoft:MatMulNBits", "LSTM", "aten.convolution_backward.default", "aten.linear",
     "aten.linalg_inv_ex.default",
     "aten._euclidean_dist.default", "aten._trilinear.default", "aten._transformer_encoder_layer_fwd.default"],
)  # fmt: skip
def test_matrix_work_in_the_generic_family_is_named(label: str) -> None:
    found = coverage(graph((GEMM, "Gemm", False), (COPY, label, False)))
    assert found.hidden == (label,)
    assert found.flops_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    "label",
    ["Det", "aten.add.Tensor", "NonZero", "aten.comm_check", "aten.sum.dim_IntList", "aten.linalg_vector_norm.default",
     "aten.upsample_trilinear3d.default", "aten.upsample_linear1d.default"],
)  # fmt: skip
def test_what_is_no_matrix_work_is_not_called_so(label: str) -> None:
    assert not coverage(graph((COPY, label, False))).hidden


def test_an_empty_graph_is_covered() -> None:
    empty = Graph(name="e", language="onnx", nodes=(), tensors={"x": TensorSpec(())}, inputs=("x",), outputs=("x",))
    assert coverage(empty).bytes_share == 1.0
    assert empty.work == Work(flops=0, read_bytes=0, written_bytes=0)
