"""Kernels that only move elements: transposes, joins, cuts, copies, casts, layout reorders, views."""

import math
from collections.abc import Mapping
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import FLOATING, Choice, Kind, Range, Setting
from opmark.core.kernels.work import Work
from opmark.kinds._aten import movement as aten_movement
from opmark.kinds._libraries import transposes
from opmark.kinds._onnx import movement as onnx_movement
from opmark.kinds._shared import movement_draw
from opmark.kinds._shared.movement import OPERATIONS, VIEWS, Movement, copied_runs, moved_axes, squeezed
from opmark.kinds._shared.shapes import EIGHT_BITS, code, size_bytes, without_channels

# From this many elements on, copying a run costs less than going to the next one.
_LONG_RUN = 16


class MovementKind(Kind[Movement]):
    """Movement."""

    name = "movement"
    parameters = Movement
    most_bytes = 128 * 2**20
    categories = ("op",)
    dtypes = FLOATING | {"int8"}
    onnx_ops = onnx_movement.NAMES
    aten_ops = aten_movement.NAMES
    space = {
        "op": Choice(
            ("transpose", "transpose", "transpose", "concat", "concat", "split", "slice", "pad", "expand", "cast",
             "reshape", "tile", "reorder-input", "reorder-output", "squeeze", "unsqueeze", "range", "depth-to-space")
        ),
        "form": Choice(("heads", "image", "sequence", "shuffle")),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "channels": Range(8, 2048, 8),
        "extent": Range(2, 256),
        "parts": Choice((2, 2, 3, 4)),
        "order": Choice((0, 1, 2)),
        "to": Choice(("float16", "int64", "bool", "float64", "int32")),
    }  # fmt: skip

    def work(self, p: Movement) -> Work:
        if p.op in VIEWS:
            return Work(flops=0, read_bytes=0, written_bytes=0)
        written = sum(spec.size_bytes for spec in p.outputs)
        sizes = [size_bytes(shape, p.dtype) for shape in p.shapes]
        # An operation that drops elements, such as a slice, touches only those it keeps.
        whole = p.op in {"expand", "tile", "cast"} or sum(sizes) <= written
        read = sum(sizes) if whole else written
        return Work(
            flops=0,
            read_bytes=read,
            written_bytes=written,
            weight_bytes=sum(sizes[place] for place in p.constant) if whole else 0,
        )

    def features(self, p: Movement) -> dict[str, float]:
        work = self.work(p)
        first = p.shapes[0] if p.shapes else p.outputs[0].shape
        moved = sum(spec.elements for spec in p.outputs)
        run, outer = copied_runs(p)
        return {
            "op": code(p.op, OPERATIONS),
            "inputs": len(p.shapes),
            "outputs": len(p.outputs),
            "elements": moved,
            "rank": len(first),
            "last": first[-1] if first else 1,
            # Elements that stay neighbours, and how many such runs there are.
            "run": run,
            "runs": outer,
            "constants": len(p.constant),
            "item_ratio": work.written_bytes / max(1, work.read_bytes),
            "block": p.block,
        }

    def details(self, p: Movement) -> dict[str, float]:
        apart, written, axes, moves = 1, 1, 1, 0
        if p.op == "transpose":
            merged, order = squeezed(p.shapes[0], p.arguments)
            axes, moves = len(merged), moved_axes(order)
            if axes > 1:
                written = merged[order[-1]]
                apart = math.prod(merged[order[-1] + 1 :])
        return {
            # Of a transpose: distance in the input between neighbours of the result, and the length of their row.
            "log_apart": math.log(apart),
            "log_written_run": math.log(max(1, written)),
            "axes": float(axes),
            "moves": float(moves),
            "long_run": float(copied_runs(p)[0] >= _LONG_RUN),
        }

    def code_path(self, p: Movement) -> dict[str, float]:
        if p.op != "transpose":
            return transposes.no_code_path()
        return transposes.transpose_code_path(p.shapes[0], p.arguments, p.dtype)

    def steps(self, p: Movement) -> dict[str, float]:
        # Types of one size take unlike times: no vector instruction before AVX-512 makes 64-bit integers of numbers.
        types = ("bool", "float16", "float64", "int32", "int64")
        return {f"to_{name}": float(p.op == "cast" and p.to == name) for name in types}

    def shape_group(self, p: Movement) -> str:
        first = p.shapes[0] if p.shapes else p.outputs[0].shape
        arguments = p.arguments if p.op in {"transpose", "concat", "qlinear-concat", "tile"} else ()
        return f"{p.op}-{arguments}-{without_channels(first)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Movement | None:
        drawn = movement_draw.draw(values, setting)
        if drawn is None:
            return None
        dtype = "uint8" if setting.dtype in EIGHT_BITS else setting.dtype
        p = Movement(**drawn, dtype=dtype)
        return self.within_limits(p)

    def vary(self, p: Movement, width: float, extent: float) -> Movement:
        return p if width == extent == 1 else movement_draw.relative(p, width, extent)

    def from_onnx(self, node: OnnxNode) -> Movement | None:
        found = onnx_movement.read(node)
        return None if found is None else Movement(**found)

    def to_onnx(self, p: Movement) -> OnnxNode | None:
        return onnx_movement.write(p)

    def from_aten(self, call: AtenCall) -> Movement | None:
        found = aten_movement.read(call)
        return None if found is None else Movement(**found)

    def to_aten(self, p: Movement) -> AtenCall | None:
        return aten_movement.write(p)


KIND = MovementKind()
