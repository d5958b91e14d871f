"""Units of a stored problem find their kernels in a graph whose numbers have changed places."""

from dataclasses import replace

import pytest
from tests.studies.execution.tiny import TARGET, MadeUpCosts, two_cores

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.leaderboards.making.units import make_problem
from opmark.studies.execution.matching import matched_units


def graph(first: str, second: str) -> Graph:
    """A maker, two reorders called `first` and `second` of different tensors, and their reader."""
    spec = TensorSpec((4, 4))

    def node(name: str, inputs: tuple[str, ...], output: str) -> Node:
        kernel = Kernel.of("elementwise", {"op": "relu"})
        work = Work(flops=1, read_bytes=1, written_bytes=1)
        return Node(name=name, kernel=kernel, work=work, inputs=inputs, outputs=(output,), origins=(name,))

    nodes = (
        node("a", ("x",), "ta"),
        node("b", ("x",), "tb"),
        node(first, ("ta",), "ra"),
        node(second, ("tb",), "rb"),
        node("end", ("ra", "rb"), "y"),
    )
    tensors = dict.fromkeys(("x", "ta", "tb", "ra", "rb", "y"), spec)
    return Graph(name="g", language="onnx", nodes=nodes, tensors=tensors, inputs=("x",), outputs=("y",), target=TARGET)


def test_swapped_numbers_do_not_matter() -> None:
    stored = make_problem(
        "p", {TARGET: graph("Reorder", "Reorder_token_7")}, two_cores(), {TARGET: MadeUpCosts()}, model="m"
    )
    found = matched_units(stored, {TARGET: graph("Reorder_token_7", "Reorder")})
    assert found["Reorder"] == {TARGET: (2,)}
    assert found["Reorder_token_7"] == {TARGET: (3,)}


def test_joined_units_are_refused() -> None:
    stored = make_problem("p", {TARGET: graph("R", "R_1")}, two_cores(), {TARGET: MadeUpCosts()}, model="m")
    renamed = replace(stored.units[0], name="other")
    tensors = tuple(
        replace(one, producer="other" if one.producer == "a" else one.producer, consumers=tuple(
            "other" if name == "a" else name for name in one.consumers))
        for one in stored.tensors
    )  # fmt: skip
    strange = replace(stored, units=(renamed, *stored.units[1:]), tensors=tensors)
    with pytest.raises(ContentError, match="are not the kernels that run here"):
        matched_units(strange, {TARGET: graph("R", "R_1")})
