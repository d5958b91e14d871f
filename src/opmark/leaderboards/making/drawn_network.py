"""Draw networks from a seed: cells and pyramids of convolutions, and towers of matrix products.

The kernels are those that eager torch would run.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opmark.core.errors import UsageError
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.registry import unknown_name
from opmark.kinds import KINDS, work_of

MARK = "#"
_DIGITS = 9
_Draw = np.random.Generator


def is_drawn(model: str) -> bool:
    """True where a model's name stands for a drawn network."""
    return MARK in model


def drawn_families() -> tuple[str, ...]:
    """The families of drawn networks."""
    return tuple(_FAMILIES)


def drawn_network(model: str, seed: int) -> Graph:
    """Draw the network `FAMILY#NUMBER` from `seed`. Raises `UnknownNameError` or `UsageError` for any other name."""
    family, _, number = model.partition(MARK)
    if family not in _FAMILIES:
        raise unknown_name("family of drawn networks", family, tuple(_FAMILIES))
    if not (number.isdecimal() and number.isascii() and len(number) <= _DIGITS):
        raise UsageError(f"{model!r} has no number", hint=f"write it like {family}{MARK}1")
    sketch = _Sketch(model)
    generator = np.random.default_rng([seed, list(_FAMILIES).index(family), int(number)])
    sketch.outputs = (_FAMILIES[family](sketch, generator),)
    return sketch.graph()


class _Sketch:
    """A graph under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.tensors: dict[str, TensorSpec] = {}
        self.weights: dict[str, TensorSpec] = {}
        self.inputs: list[str] = []
        self.outputs: tuple[str, ...] = ()

    def input(self, *shape: int) -> str:
        """Add a graph input."""
        name = f"input_{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = TensorSpec(shape)
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.tensors[name].shape

    def node(
        self, kind: str, inputs: tuple[str, ...], output: tuple[int, ...], weight: tuple[int, ...] = (), /, **facts: Any
    ) -> str:
        """Add a kernel of `kind`; returns the name of its result."""
        family = KINDS.load(kind)
        kernel = family.kernel(family.parameters(**facts))
        name = f"{kind.replace('-', '_')}_{len(self.nodes)}"
        self.tensors[name] = TensorSpec(output)
        if weight:
            self.weights[f"{name}.weight"] = TensorSpec(weight)
            inputs = (*inputs, f"{name}.weight")
        made = Node(name=name, kernel=kernel, work=work_of(kernel), inputs=inputs, outputs=(name,))
        self.nodes.append(made)
        return name

    def conv(self, source: str, channels: int, kernel: int, *, stride: int = 1, grouped: bool = False) -> str:
        """Add a padded convolution, which changes the image's size only by its stride, then a ReLU."""
        batch, before, size, _ = self.shape(source)
        groups = before if grouped else 1
        after = before if grouped else channels
        pad, small = kernel // 2, -(-size // stride)
        made = self.node(
            "conv",
            (source,),
            (batch, after, small, small),
            (after, before // groups, kernel, kernel),
            batch=batch,
            channels_in=before,
            channels_out=after,
            size=(size, size),
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pads=(pad,) * 4,
            dilation=(1, 1),
            groups=groups,
        )
        return self.unary("relu", made)

    def unary(self, operation: str, source: str) -> str:
        """Add an elementwise operator of one tensor."""
        shape = self.shape(source)
        return self.node("elementwise", (source,), shape, op=operation, shapes=(shape,))

    def sum(self, sources: list[str]) -> str:
        """Add up tensors of one shape."""
        total = sources[0]
        for other in sources[1:]:
            shape = self.shape(total)
            total = self.node("elementwise", (total, other), shape, op="add", shapes=(shape, shape))
        return total

    def concat(self, sources: list[str], axis: int) -> str:
        """Concatenate tensors along an axis."""
        shapes = tuple(self.shape(name) for name in sources)
        shape = list(shapes[0])
        shape[axis] = sum(item[axis] for item in shapes)
        return self.node("movement", tuple(sources), tuple(shape), op="concat", shapes=shapes, arguments=(axis,))

    def resized(self, source: str, like: str) -> str:
        """Resize an image to the size of another, with nearest pixels."""
        before = self.shape(source)
        after = (*before[:2], *self.shape(like)[2:])
        return self.node(
            "resize",
            (source,),
            after,
            shape=before,
            output=after,
            mode="nearest",
            coordinates="asymmetric",
            rounding="floor",
        )

    def dense(self, source: str, width: int) -> str:
        """Add a fully connected layer."""
        rows, before = self.shape(source)
        return self.node("gemm", (source,), (rows, width), (before, width), m=rows, n=width, k=before)

    def graph(self) -> Graph:
        """The finished graph."""
        return Graph(
            name=self.name,
            language="aten",
            nodes=tuple(self.nodes),
            tensors=self.tensors,
            weights=self.weights,
            inputs=tuple(self.inputs),
            outputs=self.outputs,
        )


def _cells(sketch: _Sketch, draw: _Draw) -> str:
    """Stages of random cells: each node adds up a few nodes before it and convolves the sum.

    After Xie et al., "Exploring randomly wired neural networks for image recognition", ICCV 2019.
    """
    channels = int(draw.choice([48, 64, 96]))
    state = sketch.conv(sketch.input(int(draw.choice([1, 4, 8])), 3, 128, 128), channels, 3, stride=2)
    for stage in range(int(draw.integers(2, 4))):
        state = sketch.conv(state, channels * 2**stage, 3, stride=2)
        made: list[str] = []
        used: set[str] = set()
        for _ in range(int(draw.integers(7, 13))):
            before = [state, *made]
            count = min(len(before), int(draw.integers(1, 4)))
            chosen = [before[number] for number in sorted(draw.choice(len(before), count, replace=False).tolist())]
            used |= set(chosen)
            kernel, grouped = int(draw.choice([1, 3, 3, 5])), bool(draw.random() < 0.3)
            made.append(sketch.conv(sketch.sum(chosen), channels * 2**stage, kernel, grouped=grouped))
        state = sketch.sum([name for name in made if name not in used])
    return sketch.conv(state, 256, 1)


def _towers(sketch: _Sketch, draw: _Draw) -> str:
    """Towers of unequal layers over inputs of their own, joined in pairs on the way and all at the end."""
    rows = int(draw.choice([32, 128, 512]))
    ends: list[str] = []
    for _ in range(int(draw.integers(4, 9))):
        state = sketch.input(rows, int(draw.choice([256, 512, 1024])))
        for _ in range(int(draw.integers(3, 8))):
            state = sketch.unary("relu", sketch.dense(state, int(draw.choice([256, 512, 1024, 2048]))))
        if ends and draw.random() < 0.35:
            both = sketch.concat([ends[int(draw.integers(len(ends)))], state], 1)
            state = sketch.unary("relu", sketch.dense(both, 512))
        ends.append(state)
    return sketch.dense(sketch.unary("relu", sketch.dense(sketch.concat(ends, 1), 1024)), 128)


def _pyramids(sketch: _Sketch, draw: _Draw) -> str:
    """Branches of two to four resolutions side by side, which hand on to some of the others now and then.

    After Wang et al., "Deep high-resolution representation learning for visual recognition", TPAMI 43(10), 2021.
    """
    width = int(draw.choice([32, 48, 64]))
    branches = [sketch.conv(sketch.input(int(draw.choice([1, 2, 4])), 3, 128, 128), width, 3, stride=2)]
    for _ in range(int(draw.integers(1, 4))):
        branches.append(sketch.conv(branches[-1], 2 * sketch.shape(branches[-1])[1], 3, stride=2))
    for _ in range(int(draw.integers(2, 4))):
        for number in range(len(branches)):
            for _ in range(int(draw.integers(1, 4))):
                channels = sketch.shape(branches[number])[1]
                branches[number] = sketch.conv(branches[number], channels, int(draw.choice([1, 3, 3])))
        branches = [_exchanged(sketch, branches, number, draw) for number in range(len(branches))]
    ends = [branches[0], *(sketch.resized(state, branches[0]) for state in branches[1:])]
    return sketch.conv(sketch.concat(ends, 1), 128, 1)


def _exchanged(sketch: _Sketch, branches: list[str], number: int, draw: _Draw) -> str:
    """A branch plus what some of the others hand over, brought to its size and channels."""
    own = branches[number]
    parts = [own]
    for state in branches:
        if state == own or draw.random() < 0.4:
            continue
        parts.append(_brought(sketch, state, own))
    return sketch.sum(parts)


def _brought(sketch: _Sketch, state: str, own: str) -> str:
    """`state` at the size and with the channels of `own`."""
    while sketch.shape(state)[2] > sketch.shape(own)[2]:
        state = sketch.conv(state, sketch.shape(state)[1], 3, stride=2, grouped=True)
    state = sketch.conv(state, sketch.shape(own)[1], 1)
    return state if sketch.shape(state) == sketch.shape(own) else sketch.resized(state, own)


# Append only: a family's place is part of what a seed means.
_FAMILIES: dict[str, Callable[[_Sketch, _Draw], str]] = {
    "random-cells": _cells,
    "random-towers": _towers,
    "random-pyramids": _pyramids,
}
