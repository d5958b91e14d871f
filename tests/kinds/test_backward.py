"""Families of training: gradients, losses, random numbers, optimiser steps."""

import random
from typing import Any

import pytest

from opmark.bench.backends._torch.calls import operator_of
from opmark.bench.backends._torch.tensors import operands
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import KINDS, of_aten
from opmark.kinds.activation_backward import OPERATIONS as ACTIVATIONS
from opmark.kinds.activation_backward import ActivationBackward
from opmark.kinds.attention_backward import VARIANTS, AttentionBackward
from opmark.kinds.conv_backward import ConvBackward
from opmark.kinds.gather_backward import OPERATIONS as LOOKUPS
from opmark.kinds.gather_backward import GatherBackward
from opmark.kinds.loss import OPERATIONS as LOSSES
from opmark.kinds.loss import Loss
from opmark.kinds.norm_backward import OPERATIONS as NORMS
from opmark.kinds.norm_backward import NormBackward
from opmark.kinds.pool_backward import PoolBackward
from opmark.kinds.random import OPERATIONS as DISTRIBUTIONS
from opmark.kinds.random import RandomNumbers
from opmark.kinds.resize_backward import MODES, ResizeBackward
from opmark.kinds.slice_backward import SliceBackward
from opmark.kinds.softmax_backward import SoftmaxBackward
from opmark.kinds.update import OPERATIONS as UPDATES
from opmark.kinds.update import Update

CONV = ConvBackward(
    batch=2, channels_in=8, channels_out=16, size=(12, 10), kernel=(3, 3), stride=(2, 1), pads=(1, 1), dilation=(1, 1)
)
ATTENTION = AttentionBackward(batch=2, heads=4, kv_heads=4, query_length=24, key_length=24, head_size=16, value_size=16)
POOL = PoolBackward(op="max", batch=2, channels=3, size=(9, 9), kernel=(3, 3), stride=(2, 2), pads=(1, 1))


def changed(p: Any, **fields: Any) -> Any:
    import dataclasses

    return dataclasses.replace(p, **fields)


EVERY = [
    ("conv-backward", CONV),
    ("conv-backward", changed(CONV, bias=True, input_gradient=False)),
    ("conv-backward", changed(CONV, groups=8, weight_gradient=False, channels_last=True)),
    ("conv-backward", changed(CONV, size=(20,), kernel=(5,), stride=(1,), pads=(2,), dilation=(1,))),
    ("conv-backward", changed(CONV, transposed=True, output_pads=(1, 0))),
    ("attention-backward", ATTENTION),
    ("attention-backward", changed(ATTENTION, causal=True, flat=False)),
    ("attention-backward", changed(ATTENTION, mask=(2, 1, 24, 24), mask_dtype="float32")),
    *(("norm-backward", NormBackward(op=op, shape=(4, 8, 6, 6))) for op in ("batch", "batch-training")),
    ("norm-backward", NormBackward(op="batch-training", shape=(4, 8, 6, 6), input_gradient=False)),
    ("norm-backward", NormBackward(op="layer", shape=(4, 5, 32), axis=2)),
    ("norm-backward", NormBackward(op="layer", shape=(4, 5, 32), axis=2, scale=False, scale_gradient=False,
                                   shift_gradient=False)),
    ("norm-backward", NormBackward(op="group", shape=(4, 8, 6, 6), groups=4)),
    ("softmax-backward", SoftmaxBackward(shape=(4, 8, 16), axis=2)),
    ("softmax-backward", SoftmaxBackward(shape=(4, 8, 16), axis=1, log=True)),
    *(("activation-backward", ActivationBackward(op=op, shape=(2, 8, 4, 4))) for op in ACTIVATIONS),
    ("activation-backward", ActivationBackward(op="relu", shape=(2, 8, 4, 4), strided=True)),
    ("pool-backward", POOL),
    ("pool-backward", changed(POOL, op="average", count_pads=True, ceil=True)),
    ("pool-backward", changed(POOL, op="adaptive-average", stride=(3, 3), pads=(0, 0))),
    ("pool-backward", changed(POOL, op="adaptive-max", stride=(3, 3), pads=(0, 0))),
    *(("gather-backward", GatherBackward(op=op, shape=(50, 8), indices=(20,))) for op in LOOKUPS if op[0] != "s"),
    ("gather-backward", GatherBackward(op="scatter-add", shape=(50, 8), indices=(20, 8), inplace=True)),
    ("gather-backward", GatherBackward(op="index-put-accumulate", shape=(5, 6, 8), indices=(4, 3), axis=0, depth=2)),
    *(("loss", Loss(op=op, shape=(12, 9))) for op in LOSSES if not op.startswith("logistic")),
    ("loss", Loss(op="nll", shape=(2, 9, 4, 4))),
    ("loss", Loss(op="nll-backward", shape=(2, 9, 4, 4))),
    ("slice-backward", SliceBackward(shape=(2, 9, 4), axis=1, start=2, end=9, step=3)),
    ("slice-backward", SliceBackward(shape=(2, 9, 4), axis=1, start=2, end=3, single=True)),
    *(("resize-backward", ResizeBackward(shape=(1, 4, 6, 6), output=(1, 4, 12, 9), mode=mode)) for mode in MODES),
    ("resize-backward", ResizeBackward(shape=(1, 4, 6, 6), output=(1, 4, 12, 9), mode="linear", aligned=True)),
    *(("random", RandomNumbers(op=op, shape=(8, 16))) for op in DISTRIBUTIONS),
    *(("update", Update(op=op, tensors=3, elements=100)) for op in UPDATES),
]  # fmt: skip


def ran(call: AtenCall) -> list[Any]:
    """The tensors that the call gives or, where it gives none, has written."""
    import torch

    [(positional, keywords)] = operands(call, copies=1, rotated=False)
    name, _, overload = call.op.partition(".")
    result = getattr(getattr(torch.ops.aten, name), overload)(*positional, **keywords)
    if result is None:
        result = positional[0]
    return [item for item in (result if isinstance(result, (tuple, list)) else [result]) if item is not None]


@pytest.mark.parametrize(("name", "p"), EVERY)
def test_it_is_written_read_back_and_run(name: str, p: Any) -> None:
    import torch

    kind = KINDS.load(name)
    call = kind.to_aten(p)
    assert call is not None
    assert of_aten(call) == (kind.kernel(p), kind.work(p))
    assert kind.parse(kind.kernel(p)) == p
    results = ran(call)
    assert [(tuple(item.shape), str(item.dtype)) for item in results] == [
        (spec.shape, f"torch.{spec.dtype}") for spec in call.outputs
    ]
    assert all(torch.isfinite(item).all() for item in results)


@pytest.mark.parametrize(("name", "p"), [each for each in EVERY if each[0] in {"conv-backward", "attention-backward"}])
def test_flops_are_those_that_torch_counts(name: str, p: Any) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    kind = KINDS.load(name)
    if name == "conv-backward":
        with FlopCounterMode(display=False) as counter:
            ran(kind.to_aten(p))
        elements = TensorSpec(p.output_shape).elements
        assert kind.work(p).flops - elements * p.bias == counter.get_total_flops()
    elif not p.causal:
        from torch.utils.flop_counter import sdpa_backward_flop_count

        q, k, v, result = p.head_shapes
        counted = sdpa_backward_flop_count(result, q, k, v)
        assert counted <= kind.work(p).flops <= 1.4 * counted


@pytest.mark.parametrize("name", ["conv-backward", "norm-backward", "softmax-backward", "activation-backward"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bytes_are_those_of_what_is_read_and_written(name: str, dtype: str) -> None:
    kind, draw = KINDS.load(name), random.Random(1)
    for _ in range(60):
        p = kind.draw({axis: choice.at(draw.random()) for axis, choice in kind.space.items()},
                      Setting(language="aten", dtype=dtype))  # fmt: skip
        if p is None:
            continue
        call, work = kind.to_aten(p), kind.work(p)
        assert work.written_bytes == sum(spec.size_bytes for spec in call.outputs)
        if name != "conv-backward" or p.input_gradient:
            # The shift of a layer norm and the running means of a batch norm are arguments that nobody reads.
            assert work.read_bytes == pytest.approx(sum(spec.size_bytes for spec in call.tensors), rel=0.3, abs=256)


def test_the_place_of_a_maximum_is_in_its_own_window() -> None:
    import torch

    p = PoolBackward(op="max", batch=1, channels=2, size=(8, 8), kernel=(2, 2), stride=(2, 2))
    call = KINDS.load("pool-backward").to_aten(p)
    assert call is not None
    [(positional, _)] = operands(call, copies=1, rotated=False)
    places = positional[-1]
    rows, columns = places[0, 0] // 8, places[0, 0] % 8
    assert torch.equal(rows // 2, torch.arange(4)[:, None].expand(4, 4))
    assert torch.equal(columns // 2, torch.arange(4)[None, :].expand(4, 4))


def test_slices_are_counted_from_the_front() -> None:
    call = AtenCall(
        op="slice_backward.default",
        arguments=(TensorSpec((2, 3, 4)), (2, 8, 4), 1, -3, 2**63 - 1, 1),
        outputs=(TensorSpec((2, 8, 4)),),
    )
    kernel, work = of_aten(call)
    assert (kernel.params["start"], kernel.params["end"]) == (5, 8)
    assert (work.read_bytes, work.written_bytes) == (96, 256 + 96)


def test_lists_of_numbers_are_a_list_operation_too() -> None:
    specs = (TensorSpec((5,)), TensorSpec((7, 2)))
    call = AtenCall(op="_foreach_addcdiv_.ScalarList", arguments=(specs, specs, specs, (0.1, 0.2)), outputs=specs)
    assert of_aten(call)[0] == KINDS.load("update").kernel(Update(op="addcdiv", tensors=2, elements=19))


@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_kernels_of_other_devices_are_read_as_they_are_written(variant: str) -> None:
    kind, p = KINDS.load("attention-backward"), changed(ATTENTION, variant=variant)
    call = kind.to_aten(p)
    assert kind.from_aten(call) == p


def test_every_normalisation_has_its_gradient() -> None:
    p = NormBackward(op="rms", shape=(4, 32), shift_gradient=False)
    kind = KINDS.load("norm-backward")
    assert set(NORMS) == {"batch-training", "batch", "layer", "group", "rms"}
    assert kind.from_aten(kind.to_aten(p)) == p


@pytest.mark.parametrize("op", ["layer", "batch-training", "batch", "group"])
def test_torch_runs_gradients_of_norms_that_are_drawn_in_bfloat16(op: str) -> None:
    import torch

    kind = KINDS.load("norm-backward")
    values = {"op": op, "batch": 2, "length": 5, "size": 6, "channels": 32, "groups": 8}
    p = kind.draw(values, Setting(language="aten", dtype="bfloat16"))
    assert p is not None
    call = kind.to_aten(p)
    assert call is not None
    [(positional, keywords)] = operands(call, copies=1, rotated=False)
    with torch.inference_mode():
        found = operator_of(call)(*positional, **keywords)
    assert [item.dtype for item in found] == [torch.bfloat16] * 3
