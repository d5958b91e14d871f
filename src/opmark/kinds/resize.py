"""Resampling an image to another size: nearest, linear, cubic."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls, windows
from opmark.kinds._onnx.nodes import build, constant, data, present
from opmark.kinds._onnx.quantised import nchw, nhwc
from opmark.kinds._shared import resampling
from opmark.kinds._shared.shapes import code, size_bytes, without_channels

# Append only: a learner's category codes are the places in these lists.
MODES = ("nearest", "linear", "cubic", "area")
COORDINATES = (
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize"
)  # fmt: skip
# Ends the mode of a kernel whose tensors have channels last, and of one that gives channels first all the same.
_LAST, _TO_FIRST = "-nhwc", "-nhwc-to-nchw"
_CODED = tuple(f"{mode}{layout}" for layout in ("", _LAST, _TO_FIRST) for mode in MODES)
_ATEN = {"upsample_nearest2d": "nearest", "upsample_bilinear2d": "linear", "upsample_bicubic2d": "cubic"}
# A step of 4096 bytes, in elements of one byte: no greater power of two collides more in the nearest cache.
_MOST_COLLISIONS = 4096
_FLOPS = {"nearest": 0, "linear": 8, "cubic": 40, "area": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """From `shape` to `output`, batch and channels first; `rounding` applies to nearest only.

    A `mode` that ends in `-nhwc` takes and gives tensors with channels last; to torch, that is their layout in memory.
    One that ends in `-nhwc-to-nchw` takes a single image with channels last and gives it with channels first.
    """

    shape: tuple[int, ...]
    output: tuple[int, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = ""
    antialias: bool = False
    dtype: str = "float32"

    @property
    def plain_mode(self) -> str:
        """The mode without its layout."""
        return self.mode.partition(_LAST)[0]


class ResizeKind(Kind[Resize]):
    """Resampling."""

    name = "resize"
    parameters = Resize
    most_bytes = 128 * 2**20
    categories = ("mode", "coordinates")
    onnx_ops = frozenset({"Resize", "Upsample"})
    aten_ops = frozenset(_ATEN)
    space = resampling.SPACE

    def work(self, p: Resize) -> Work:
        written = size_bytes(p.output, p.dtype)
        # Shrinking by nearest neighbours reads only the elements it keeps.
        read = size_bytes(p.shape, p.dtype)
        return Work(
            flops=math.prod(p.output) * _FLOPS[p.plain_mode],
            read_bytes=min(read, written) if p.plain_mode == "nearest" else read,
            written_bytes=written,
        )

    def features(self, p: Resize) -> dict[str, float]:
        return {
            "planes": math.prod(p.shape[:2]),
            "height": p.shape[2] if len(p.shape) > 3 else 1,
            "width": p.shape[-1],
            "output_height": p.output[2] if len(p.shape) > 3 else 1,
            "output_width": p.output[-1],
            "mode": code(p.mode, _CODED),
            "coordinates": code(p.coordinates, COORDINATES),
            "doubling": float(all(m == 2 * n for n, m in zip(p.shape[2:], p.output[2:], strict=True))),
            "antialias": float(p.antialias),
        }

    def details(self, p: Resize) -> dict[str, float]:
        ratios = [math.log(m / n) for n, m in zip(p.shape[2:], p.output[2:], strict=True)]
        return {"ratio": sum(ratios), "same": float(p.shape == p.output)}

    def steps(self, p: Resize) -> dict[str, float]:
        # torch takes channels last, vectors of them at once, where the image is small (`_use_vectorized_kernel_cond_2d`
        # in aten/src/ATen/native/cpu/UpSampleKernel.cpp, 2.13); images of a power of two collide there in the cache.
        last = float(sum(p.output[2:]) <= 128 and p.plain_mode in {"nearest", "linear"})
        pixels = math.prod(p.output[2:])
        collisions = max(size & -size for size in (pixels, math.prod(p.shape[2:])))
        return {
            "channels_last_path": last,
            "last_channels": last * math.log(p.shape[1]),
            "last_vectors": last * math.log(math.ceil(p.shape[1] / 8)),
            "last_pixels": last * math.log(pixels),
            "last_pixels_power": last * math.log2(min(collisions, 1024)),
        }

    def code_path(self, p: Resize) -> dict[str, float]:
        # torch copies the result to channels last, computes it there, and copies it back (decision 0054). Pixels and
        # channels of a power of two lie a power of two of bytes apart, and collide in the cache as they are copied.
        copies = float(p.mode.endswith(_TO_FIRST))
        pixels, channels = math.prod(p.output[2:]), p.output[1]
        return {
            "by_copies": copies,
            "copied_result_bytes": copies * math.log1p(size_bytes(p.output, p.dtype)),
            "pixel_collisions": copies * math.log2(min(pixels & -pixels, _MOST_COLLISIONS)),
            "channel_collisions": copies * math.log2(min(channels & -channels, _MOST_COLLISIONS)),
        }

    def shape_group(self, p: Resize) -> str:
        return f"{p.mode}-{without_channels(p.shape)}-{without_channels(p.output)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Resize | None:
        mode, coordinates = values["mode"], values["coordinates"]
        nearest = mode.partition(_LAST)[0] == "nearest"
        if setting.language == "aten":
            coordinates = "asymmetric" if nearest else "half_pixel"
        single = {"batch": 1} if mode.endswith(_TO_FIRST) else {}
        p = Resize(
            **resampling.drawn_shapes({**values, **single}),
            mode=mode,
            coordinates=coordinates,
            rounding="floor" if nearest else "",
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: Resize, width: float, extent: float) -> Resize:
        return replace(p, **resampling.resized(p.shape, p.output, width, extent))

    def from_onnx(self, node: OnnxNode) -> Resize | None:
        x, result, get = present(node, 0), node.outputs[0], node.attributes.get
        if x is None or result is None or len(x.spec.shape) < 3:
            return None
        shape, output, mode = x.spec.shape, result.shape, str(get("mode", "nearest"))
        last = shape[:2] != output[:2] and (shape[0], shape[-1]) == (output[0], output[-1])
        if mode not in MODES or (shape[:2] != output[:2] and not last):
            return None
        old = node.op_type == "Upsample" or node.opset < 11
        rounding = "floor" if old else str(get("nearest_mode", "round_prefer_floor"))
        return Resize(
            shape=nchw(shape) if last else shape,
            output=nchw(output) if last else output,
            mode=mode + (_LAST if last else ""),
            coordinates="asymmetric" if old else str(get("coordinate_transformation_mode", "half_pixel")),
            rounding=rounding if mode == "nearest" else "",
            antialias=bool(get("antialias", 0)),
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: Resize) -> OnnxNode | None:
        if p.plain_mode == "area" or p.mode.endswith(_TO_FIRST):
            return None
        shape, output = (p.shape, p.output) if p.plain_mode == p.mode else (nhwc(p.shape), nhwc(p.output))
        attributes: dict[str, Any] = {"mode": p.plain_mode, "coordinate_transformation_mode": p.coordinates}
        if p.rounding:
            attributes["nearest_mode"] = p.rounding
        if p.antialias:
            attributes["antialias"] = 1
        inputs = [data(shape, p.dtype), None, None, constant(output)]
        return build("Resize", inputs, [TensorSpec(output, p.dtype)], attributes)

    def from_aten(self, call: AtenCall) -> Resize | None:
        x, mode = calls.tensor(call, 0), _ATEN.get(calls.operator(call))
        # Scale factors come as a list of numbers in place of the sizes.
        if x is None or mode is None or len(x.shape) != 4:
            return None
        aligned = mode != "nearest" and bool(calls.argument(call, 2, "align_corners", False))
        plain = "asymmetric" if mode == "nearest" else "half_pixel"
        layout = _LAST if windows.is_channels_last(call, (0, x)) else ""
        if windows.is_seen_channels_first(call, 0, x):
            layout = _TO_FIRST
        return Resize(
            shape=x.shape,
            output=call.outputs[0].shape,
            mode=mode + layout,
            coordinates="align_corners" if aligned else plain,
            rounding="floor" if mode == "nearest" else "",
            dtype=x.dtype,
        )

    def to_aten(self, p: Resize) -> AtenCall | None:
        nearest, aligned = p.plain_mode == "nearest", p.coordinates == "align_corners"
        asked = "asymmetric" if nearest else "align_corners" if aligned else "half_pixel"
        names = {mode: name for name, mode in _ATEN.items()}
        if p.antialias or p.plain_mode not in names or p.coordinates != asked or len(p.shape) != 4:
            return None
        x, result = TensorSpec(p.shape, p.dtype), TensorSpec(p.output, p.dtype)
        more = () if nearest else (aligned,)
        strides: tuple[calls.Strides, ...] = () if p.plain_mode == p.mode else (calls.channels_last(p.shape),)
        if p.mode.endswith(_TO_FIRST):
            if p.shape[0] != 1:
                return None
            strides = (windows.seen_channels_first(p.shape),)
        return calls.build(names[p.plain_mode], x, p.output[2:], *more, outputs=[result], strides=strides)


KIND = ResizeKind()
