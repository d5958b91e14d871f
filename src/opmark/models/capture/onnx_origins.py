"""Finds the original operators and the module of each kernel in ONNX Runtime's optimised graph."""

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from opmark.models.onnx_file import constant_names

if TYPE_CHECKING:
    import onnx

INSERTED = "inserted"
_SUFFIX = "_nchwc"
# Names of nodes that only bring a tensor into the shape or layout that a neighbour needs.
_INSERTED_NAMES = ("ReorderInput", "ReorderOutput", "gemm_input_reshape", "gemm_output_reshape")


class Origins:
    """Finds origins for the nodes of `optimised`, whose tensors are matched to those of `original` by name."""

    def __init__(self, original: "onnx.GraphProto", optimised: "onnx.GraphProto") -> None:
        self._nodes = list(original.node)
        self._maker = {name: index for index, node in enumerate(self._nodes) for name in node.output if name}
        self._named = {node.name: index for index, node in enumerate(self._nodes) if node.name}
        self._constant = self._constant_nodes(original)
        self._readers = {name: node for node in optimised.node for name in node.input}
        self._users: dict[str, list[int]] = {}
        for index, node in enumerate(self._nodes):
            for name in node.input:
                self._users.setdefault(name, []).append(index)
        self._anchors = {index: self._anchor(node) for index, node in enumerate(optimised.node)}
        # Tensors between the original operators of one kernel and of the next.
        self._ends = {tensor for tensors in self._anchors.values() for tensor in tensors}

    def of(self, index: int) -> tuple[tuple[str, ...], str]:
        """Origins and module path of the `index`-th optimised node."""
        anchor = self._anchors[index]
        if not anchor:
            return (INSERTED,), ""
        covered = self._covered(anchor)
        scopes = [scope for number in covered if (scope := module_path(self._nodes[number]))]
        return tuple(self._label(number) for number in covered), scopes[0] if scopes else ""

    def _anchor(self, node: "onnx.NodeProto") -> tuple[str, ...]:
        """The original tensors that an optimised node makes, possibly under another name."""
        if node.name.startswith(_INSERTED_NAMES):
            return ()
        kept = self._kept(node)
        if kept:
            return kept
        renamed = node.name.removesuffix(_SUFFIX)
        if renamed in self._maker:
            return (self._after_fusion(renamed, node),)
        if renamed in self._named:
            return tuple(name for name in self._nodes[self._named[renamed]].output if name)
        # A node inserted after a kernel carries the name of the kernel's own result.
        reader = self._readers.get(node.output[0])
        return self._kept(reader) if reader is not None and reader.name.startswith(_INSERTED_NAMES) else ()

    def _after_fusion(self, tensor: str, node: "onnx.NodeProto") -> str:
        """The tensor a blocked convolution makes; it is named before a sum and an activation are fused into it."""
        activation = next((item.s.decode() for item in node.attribute if item.name == "activation"), "")
        if len(node.input) > 3 and node.input[3]:
            tensor = self._used_by(tensor, {"Add", "Sum"})
        return self._used_by(tensor, {activation}) if activation else tensor

    def _used_by(self, tensor: str, op_types: set[str]) -> str:
        if self._nodes[self._maker[tensor]].op_type in op_types:
            return tensor
        users = [self._nodes[index] for index in self._users.get(tensor, ())]
        return next((user.output[0] for user in users if user.op_type in op_types), tensor)

    def _kept(self, node: "onnx.NodeProto") -> tuple[str, ...]:
        return tuple(name for name in node.output if name in self._maker)

    def _covered(self, anchor: Iterable[str]) -> list[int]:
        """The original nodes between `anchor` and the results of other kernels, in execution order."""
        own = set(anchor)
        found: set[int] = set()
        stack = [self._maker[name] for name in own]
        while stack:
            number = stack.pop()
            if number in found or number in self._constant:
                continue
            found.add(number)
            stack += [
                self._maker[name]
                for name in self._nodes[number].input
                if name in self._maker and (name in own or name not in self._ends)
            ]
        return sorted(found)

    def _label(self, number: int) -> str:
        node = self._nodes[number]
        return f"{node.op_type}:{node.name or node.output[0]}"

    def _constant_nodes(self, original: "onnx.GraphProto") -> set[int]:
        """Nodes with constant inputs only, which the runtime folds before the first run."""
        known = constant_names(original)
        found: set[int] = set()
        for index, node in enumerate(self._nodes):
            if all(not name or name in known for name in node.input) and not node.op_type.startswith("Random"):
                found.add(index)
                known.update(node.output)
        return found


def module_path(node: "onnx.NodeProto") -> str:
    """The path (`blocks.0.conv1`) of the torch module noted on `node` by the exporter, or an empty string."""
    notes = {item.key: item.value for item in node.metadata_props}
    scopes: Sequence[object] = ()
    try:
        scopes = ast.literal_eval(notes.get("pkg.torch.onnx.name_scopes", "()"))
    except (ValueError, SyntaxError):
        return ""
    # The last entry is the operator itself, the one before it the innermost module.
    return str(scopes[-2]) if isinstance(scopes, (list, tuple)) and len(scopes) > 1 else ""
