"""The graph of kernels that a runtime executes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opmark.core.canonical import content_id
from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One kernel of a graph.

    `origins` are the original operators it covers (`inserted` for a layout reorder), `scope` is the module path,
    `phase` is forward, backward or update. A `free` node takes no time (a view, a constant).
    """

    name: str
    kernel: Kernel
    work: Work
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origins: tuple[str, ...] = ()
    scope: str = ""
    phase: str = "forward"
    free: bool = False


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Kernels in execution order, over named tensors.

    `language` is `onnx` or `aten`; `tensors` holds every activation, `weights` every constant tensor;
    `mapping` is `native` (captured on this target) or `stored`. `python_calls` counts the Python functions that a
    forward pass enters, None where nobody counted them.
    """

    name: str
    language: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, TensorSpec]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, TensorSpec] = field(default_factory=dict)
    target: str = ""
    mapping: str = "native"
    python_calls: int | None = None

    def __post_init__(self) -> None:
        if self.python_calls is not None and self.python_calls < 0:
            raise ContentError(f"python_calls is {self.python_calls}", where=self.name, hint="it is a count")
        made: set[str] = set(self.inputs) | set(self.weights)
        for node in self.nodes:
            missing = [name for name in node.inputs if name not in made]
            if missing:
                raise ContentError(
                    f"node {node.name!r} reads {missing[0]!r} before anything makes it",
                    where=self.name,
                    hint="the graph has a cycle or is not in execution order",
                )
            made.update(node.outputs)

    @cached_property
    def id(self) -> str:
        """Identity of the kernels and their wiring; names of tensors do not count."""
        number = {name: index for index, name in enumerate([*self.inputs, *sorted(self.weights)])}
        rows = []
        for node in self.nodes:
            rows.append([node.kernel.key, node.phase, [number[name] for name in node.inputs]])
            number.update({name: len(number) + offset for offset, name in enumerate(node.outputs)})
        return content_id([self.language, rows])

    @property
    def costly(self) -> Iterator[Node]:
        """The nodes that take time."""
        return (node for node in self.nodes if not node.free)

    @cached_property
    def work(self) -> Work:
        """The work of all nodes."""
        total = Work(flops=0, read_bytes=0, written_bytes=0)
        for node in self.costly:
            total += node.work
        return total

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of all constants, each counted once."""
        return sum(spec.size_bytes for spec in self.weights.values())

    @cached_property
    def peak_activation_bytes(self) -> int:
        """The largest sum of activations alive at once, in execution order, each freed after its last reader.

        The output of a free node is a view of its input's memory.
        """
        memory = {name: name for name in self.tensors}
        for node in self.nodes:
            if node.free and node.inputs:
                # A view of a weight takes no memory that is not counted there.
                source = memory.get(node.inputs[0], "")
                memory.update(dict.fromkeys(node.outputs, source))
        last = {memory.get(name, ""): index for index, node in enumerate(self.nodes) for name in node.inputs}
        last |= {memory.get(name, ""): len(self.nodes) for name in self.outputs}
        alive = sum(self.tensors[name].size_bytes for name in self.inputs)
        peak = alive
        for index, node in enumerate(self.nodes):
            alive += sum(self.tensors[name].size_bytes for name in node.outputs if memory[name] == name)
            peak = max(peak, alive)
            for name in {memory.get(name, "") for name in (*node.inputs, *node.outputs)}:
                if name in self.tensors and last.get(name, index) == index:
                    alive -= self.tensors[name].size_bytes
        return peak
