"""Every family in ATen's language: what is drawn can be written, read back, and run with the results it promises."""

import math
import random

import pytest

from opmark.bench.backends._torch.tensors import operands
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import GENERIC, KINDS, of_aten
from opmark.kinds._aten import calls

ATEN = [name for name in KINDS.names() if "aten" in KINDS.load(name).languages]


def drawn(name: str, count: int, dtype: str = "float32"):
    """Small kernels from a family's own space."""
    kind, draw = KINDS.load(name), random.Random(name)
    found: list[object] = []
    for _ in range(4000):
        if len(found) == count:
            break
        values = {axis: choice.at(draw.random()) for axis, choice in kind.space.items()}
        p = kind.draw(values, Setting(language="aten", dtype=dtype))
        if p is not None and kind.work(p).flops < 2e7 and kind.work(p).moved_bytes < 2e6:
            found.append(p)
    return kind, found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in ATEN if name != GENERIC])
def test_what_is_drawn_is_written_and_read_back(name, dtype):
    kind, found = drawn(name, 25, dtype)
    assert len(found) >= 5
    for p in found:
        call = kind.to_aten(p)
        assert call is not None, p
        kernel, work = of_aten(call)
        assert kernel == kind.kernel(p)
        assert work == kind.work(p)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ATEN)
def test_torch_runs_it_and_gives_what_was_promised(name, dtype):
    import torch

    kind, found = drawn(name, 8, dtype)
    for p in found:
        call = kind.to_aten(p)
        [(positional, keywords)] = operands(call, copies=1, rotated=False)
        operator, _, overload = call.op.partition(".")
        with torch.inference_mode():
            try:
                result = getattr(getattr(torch.ops.aten, operator), overload)(*positional, **keywords)
            except RuntimeError as error:
                if "could not create a primitive" not in str(error):
                    raise
                pytest.skip(f"torch has no {dtype} {name} for this processor")
        if result is None:
            # It wrote over its first argument.
            result = positional[0]
        given = [item for item in (result if isinstance(result, (tuple, list)) else [result]) if item is not None]
        assert [(tuple(item.shape), str(item.dtype)) for item in given[: len(call.outputs)]] == [
            (spec.shape, f"torch.{spec.dtype}") for spec in call.outputs
        ]
        assert not given[0].is_floating_point() or torch.isfinite(given[0]).all()


def test_work_counts_what_the_call_reads_and_writes():
    for name in ("conv", "gemm", "norm", "elementwise", "softmax"):
        kind, found = drawn(name, 10)
        for p in found:
            call = kind.to_aten(p)
            work = kind.work(p)
            assert work.read_bytes == pytest.approx(sum(spec.size_bytes for spec in call.tensors), rel=0.01, abs=64)
            assert work.written_bytes == call.outputs[0].size_bytes


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype)


def test_a_matrix_stored_transposed_is_told_by_its_strides():
    call = AtenCall(
        op="addmm.default",
        arguments=(spec(32), spec(8, 16), spec(16, 32)),
        outputs=(spec(8, 32),),
        strides=(None, None, (1, 16)),
        parameters=(0, 2),
    )
    params = of_aten(call)[0].params
    assert (params["m"], params["k"], params["n"]) == (8, 16, 32)
    assert (params["trans_a"], params["trans_b"], params["weight"], params["bias"]) == (False, True, True, "row")


def test_a_copy_of_a_permuted_view_is_a_transpose():
    call = AtenCall(
        op="clone.default", arguments=(spec(2, 3, 4),), outputs=(spec(2, 3, 4),), strides=(calls.swapped((2, 3, 4)),)
    )
    params = of_aten(call)[0].params
    assert (params["op"], params["shapes"], params["arguments"]) == ("transpose", ((2, 4, 3),), (0, 2, 1))


def test_a_copy_of_a_repeated_view_is_an_expansion():
    call = AtenCall(op="clone.default", arguments=(spec(5, 3),), outputs=(spec(5, 3),), strides=((0, 1),))
    params = of_aten(call)[0].params
    assert (params["op"], params["shapes"], params["arguments"]) == ("expand", ((1, 3),), (5, 3))


def test_padding_by_name_becomes_numbers():
    call = AtenCall(
        op="conv2d.padding",
        arguments=(spec(1, 4, 9, 9), spec(8, 4, 3, 3), None, (1, 1), "same"),
        outputs=(spec(1, 8, 9, 9),),
        parameters=(1,),
    )
    kernel, work = of_aten(call)
    assert kernel.params["pads"] == (1, 1, 1, 1)
    assert work.flops == 2 * 8 * 9 * 9 * 4 * 9


def test_a_window_larger_than_the_image_is_cut():
    call = AtenCall(
        op="avg_pool2d.default",
        arguments=(spec(1, 8, 7, 7), (1280, 1280), (), (0, 0), True),
        outputs=(spec(1, 8, 1, 1),),
    )
    kernel, work = of_aten(call)
    assert (kernel.params["kernel"], kernel.params["stride"]) == ((7, 7), (1, 1))
    assert work.flops == 8 * 49


def test_channels_last_images_are_another_kernel():
    shape = (1, 4, 9, 9)
    plain = AtenCall(
        op="conv2d.default", arguments=(spec(*shape), spec(8, 4, 3, 3)), outputs=(spec(1, 8, 7, 7),), strides=()
    )
    other = AtenCall(
        op="conv2d.default",
        arguments=plain.arguments,
        outputs=plain.outputs,
        strides=(calls.channels_last(shape), None),
    )
    assert of_aten(plain)[0].params["channels_last"] is False
    assert of_aten(other)[0].params["channels_last"] is True


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resizing_channels_last_images_is_another_kernel(mode):
    kind = KINDS.load("resize")
    shapes = {"shape": (1, 16, 9, 9), "output": (1, 16, 18, 18), "coordinates": "asymmetric", "rounding": "floor"}
    if mode != "nearest":
        shapes |= {"coordinates": "half_pixel", "rounding": ""}
    layouts = {"": None, "-nhwc": (1296, 1, 144, 16), "-nhwc-to-nchw": (16, 1, 144, 16)}
    for layout, strides in layouts.items():
        p = kind.parameters(**shapes, mode=mode + layout, dtype="float32")
        call = kind.to_aten(p)
        assert call is not None
        assert (call.strides[0] if call.strides else None) == strides
        assert of_aten(call)[0] == kind.kernel(p)


def test_resizing_to_channels_first_tells_what_is_copied_and_what_collides():
    kind = KINDS.load("resize")
    sizes = {"shape": (1, 256, 16, 16), "output": (1, 256, 128, 128), "coordinates": "half_pixel"}
    odd = {"shape": (1, 250, 15, 15), "output": (1, 250, 125, 125), "coordinates": "half_pixel"}
    plain = kind.code_path(kind.parameters(**sizes, mode="linear-nhwc", dtype="float32"))
    copied = kind.code_path(kind.parameters(**sizes, mode="linear-nhwc-to-nchw", dtype="float32"))
    uneven = kind.code_path(kind.parameters(**odd, mode="linear-nhwc-to-nchw", dtype="float32"))
    assert set(plain.values()) == {0.0}
    assert copied["by_copies"] == uneven["by_copies"] == 1
    assert copied["copied_result_bytes"] == pytest.approx(math.log(256 * 128 * 128 * 4), abs=1e-6)
    assert (copied["pixel_collisions"], copied["channel_collisions"]) == (12, 8)
    assert (uneven["pixel_collisions"], uneven["channel_collisions"]) == (0, 1)


def test_working_in_place_is_another_kernel():
    calls = [
        AtenCall(op=f"{name}.default", arguments=(spec(4, 4),), outputs=(spec(4, 4),)) for name in ("relu", "relu_")
    ]
    assert [of_aten(call)[0].params["inplace"] for call in calls] == [False, True]


def test_a_stranger_is_the_bytes_it_moves():
    call = AtenCall(op="some_new_operator.default", arguments=(spec(4, 4), 3), outputs=(spec(2),))
    kernel, work = of_aten(call)
    assert kernel.kind == GENERIC
    assert (work.read_bytes, work.written_bytes, work.flops) == (64, 8, 0)


@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 3, 4, 5)])
def test_strides_agree_with_torch(shape):
    import torch

    assert calls.dense(shape) == torch.empty(shape).stride()
    if len(shape) > 1:
        assert calls.swapped(shape) == torch.empty((*shape[:-2], shape[-1], shape[-2])).transpose(-1, -2).stride()
    if len(shape) == 4:
        assert calls.channels_last(shape) == torch.empty(shape, memory_format=torch.channels_last).stride()
