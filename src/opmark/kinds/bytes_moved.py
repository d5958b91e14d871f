"""Operators that no other family covers, as the least memory traffic they cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec, dtype_bytes
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import build, data
from opmark.kinds._shared.shapes import scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesMoved:
    """Bytes of all inputs and of all outputs; the node's origins name the operator."""

    read_bytes: int
    written_bytes: int
    dtype: str = "float32"


class BytesMovedKind(Kind[BytesMoved]):
    """Memory traffic, measured as a copy of the same number of bytes."""

    name = "bytes-moved"
    parameters = BytesMoved
    space = {"elements": Range(1, 2**23)}

    def work(self, p: BytesMoved) -> Work:
        return Work(flops=0, read_bytes=p.read_bytes, written_bytes=p.written_bytes)

    def features(self, p: BytesMoved) -> dict[str, float]:
        return {"read_bytes": p.read_bytes, "written_bytes": p.written_bytes, "item_bytes": dtype_bytes(p.dtype)}

    def shape_group(self, p: BytesMoved) -> str:
        return f"2^{(p.read_bytes + p.written_bytes).bit_length()}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> BytesMoved | None:
        size = values["elements"] * dtype_bytes(setting.dtype)
        return BytesMoved(read_bytes=size, written_bytes=size, dtype=setting.dtype)

    def vary(self, p: BytesMoved, width: float, extent: float) -> BytesMoved:
        item, factor = dtype_bytes(p.dtype), width * extent
        return BytesMoved(
            read_bytes=scaled(p.read_bytes, factor, item),
            written_bytes=scaled(p.written_bytes, factor, item),
            dtype=p.dtype,
        )

    def from_onnx(self, node: OnnxNode) -> BytesMoved | None:
        inputs = [operand.spec for operand in node.inputs if operand is not None]
        outputs = [spec for spec in node.outputs if spec is not None]
        largest = max([*outputs, *inputs], key=lambda spec: spec.size_bytes, default=TensorSpec(()))
        return BytesMoved(
            read_bytes=sum(spec.size_bytes for spec in inputs),
            written_bytes=sum(spec.size_bytes for spec in outputs),
            dtype=largest.dtype,
        )

    def to_onnx(self, p: BytesMoved) -> OnnxNode | None:
        shape = (copied_elements(p),)
        return build("Concat", [data(shape, p.dtype)], [TensorSpec(shape, p.dtype)], {"axis": 0})

    def from_aten(self, call: AtenCall) -> BytesMoved | None:
        largest = max([*call.outputs, *call.tensors], key=lambda spec: spec.size_bytes, default=TensorSpec(()))
        return BytesMoved(
            read_bytes=sum(spec.size_bytes for spec in call.tensors),
            written_bytes=sum(spec.size_bytes for spec in call.outputs),
            dtype=largest.dtype,
        )

    def to_aten(self, p: BytesMoved) -> AtenCall | None:
        spec = TensorSpec((copied_elements(p),), p.dtype)
        return calls.build("clone", spec, outputs=[spec])


def copied_elements(p: BytesMoved) -> int:
    """Elements of a copy that moves as many bytes, read and written together, as `p`."""
    return max(1, round((p.read_bytes + p.written_bytes) / (2 * dtype_bytes(p.dtype))))


KIND = BytesMovedKind()
