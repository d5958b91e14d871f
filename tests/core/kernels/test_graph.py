"""Graphs keep execution order, and know their work, identity and memory."""

from dataclasses import replace

import pytest

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work


def node(name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], *, free: bool = False) -> Node:
    return Node(
        name=name,
        kernel=Kernel.of("elementwise", {"op": name[0]}),
        work=Work(flops=10, read_bytes=4, written_bytes=4),
        inputs=inputs,
        outputs=outputs,
        free=free,
    )


def chain() -> Graph:
    """x → a → b → c, of 4, 40 and 400 bytes, b read twice."""
    return Graph(
        name="chain",
        language="onnx",
        nodes=(node("a1", ("x", "w"), ("a",)), node("b1", ("a",), ("b",)), node("c1", ("b", "b"), ("c",), free=True)),
        tensors={"x": TensorSpec((1,)), "a": TensorSpec((10,)), "b": TensorSpec((100,)), "c": TensorSpec((1,))},
        inputs=("x",),
        outputs=("c",),
        weights={"w": TensorSpec((5,))},
    )


def test_work_leaves_out_what_is_free() -> None:
    assert chain().work == Work(flops=20, read_bytes=8, written_bytes=8)
    assert [item.name for item in chain().costly] == ["a1", "b1"]
    assert chain().work.moved_bytes == 16


def test_memory_by_hand() -> None:
    # x+a = 44, then a+b = 440 (x freed), then b+c = 404
    assert chain().peak_activation_bytes == 440
    assert chain().weight_bytes == 20


def test_views_take_no_memory_and_keep_what_they_see() -> None:
    graph = Graph(
        name="views",
        language="aten",
        nodes=(
            node("a", ("x",), ("made",)),
            node("b", ("made",), ("seen",), free=True),
            node("c", ("x",), ("other",)),
            node("d", ("seen", "other"), ("y",)),
        ),
        tensors={
            name: TensorSpec((size,)) for name, size in (("x", 1), ("made", 10), ("seen", 10), ("other", 5), ("y", 2))
        },
        inputs=("x",),
        outputs=("y",),
    )
    # made (40) lives until its view is read, beside other (20) and y (8); x (4) is gone by then
    assert graph.peak_activation_bytes == 40 + 20 + 8


def test_identity_ignores_names_and_sees_wiring() -> None:
    graph = chain()
    renamed = replace(
        graph,
        name="other",
        nodes=(node("a2", ("x", "v"), ("p",)), node("b2", ("p",), ("q",)), node("c2", ("q", "q"), ("r",), free=True)),
        tensors={"x": TensorSpec((1,)), "p": TensorSpec((10,)), "q": TensorSpec((100,)), "r": TensorSpec((1,))},
        outputs=("r",),
        weights={"v": TensorSpec((5,))},
    )
    assert renamed.id == graph.id
    rewired = replace(graph, nodes=(*graph.nodes[:2], node("c1", ("b", "a"), ("c",), free=True)))
    assert rewired.id != graph.id


def test_order_is_checked() -> None:
    graph = chain()
    with pytest.raises(ContentError, match="before anything makes it") as caught:
        replace(graph, nodes=graph.nodes[::-1])
    assert caught.value.where == "chain"
