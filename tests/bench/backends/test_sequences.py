"""Sequences of operators on the real runtimes: what becomes one kernel, and that they run."""

import pytest

from opmark.bench.backends._onnx.sequence import _input_like
from opmark.bench.backends._torch.sequence import _place
from opmark.bench.fusion.operators import chain, shapes
from opmark.bench.fusion.pairs import PAIRS
from opmark.bench.fusion.worker import described, joined
from opmark.bench.worker.backend import target_named
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.hardware.target import Target
from opmark.kinds import kind_of

FUSED_BY_ONNX_RUNTIME = {
    "conv+relu": True,
    "conv+relu6": True,
    "conv+bn": True,
    "conv-bn+relu": True,
    "convtrans+bn": True,
    "convtrans+relu": False,
    "conv+hswish": False,
    "conv+reshape": False,
    "bn+relu": False,
    "fc+relu": True,
    "fc+gelu": False,
    "linear+bias": True,
    "add+layernorm": True,
    "scores+scale": True,
    "scores-scale+softmax": False,
}


@pytest.mark.parametrize(("name", "fused"), FUSED_BY_ONNX_RUNTIME.items(), ids=FUSED_BY_ONNX_RUNTIME)
def test_onnx_runtime_says_what_it_fuses(name: str, fused: bool) -> None:
    pytest.importorskip("onnxruntime")
    backend, target = target_named("onnxruntime-cpu-t1", "here")
    pair = PAIRS[name]
    shape = shapes(pair.domain, "onnx")[0]
    kernels = chain(pair.operators, shape, "onnx")
    pieces = backend.pieces(kernels, target)
    assert joined(pieces, pair.split) == fused, described(pieces, list(pair.operators))
    assert {place for piece in pieces for place in piece.covers} == set(range(len(kernels)))
    prepared = backend.prepare_sequence(kernels, target)
    prepared.call()
    prepared.close()


@pytest.mark.parametrize(
    "name", ["conv-bn+relu", "conv+concat", "conv+maxpool", "linear-bias+gelu", "scores-scale-mask+softmax"]
)
def test_eager_torch_fuses_nothing_and_runs_it(name: str) -> None:
    torch = pytest.importorskip("torch")
    backend, target = target_named("torch-eager-t1", "here")
    pair = PAIRS[name]
    shape = shapes(pair.domain, "aten")[0]
    kernels = chain(pair.operators, shape, "aten")
    assert not joined(backend.pieces(kernels, target), pair.split)
    prepared = backend.prepare_sequence(kernels, target)
    prepared.call()
    last = prepared._kept  # type: ignore[attr-defined]
    kind = kind_of(kernels[-1])
    call = kind.to_aten(kind.parse(kernels[-1]))
    assert call is not None
    assert tuple(last.shape) == call.outputs[0].shape
    assert torch.isfinite(last).all()
    prepared.close()


def test_what_does_not_follow_is_refused() -> None:
    (conv,) = chain(["conv"], (1, 8, 8, 8), "onnx")
    (other,) = chain(["relu"], (1, 4, 4, 4), "onnx")
    kind = kind_of(other)
    node, call = kind.to_onnx(kind.parse(other)), kind.to_aten(kind.parse(other))
    made = kind_of(conv).to_onnx(kind_of(conv).parse(conv)).outputs[0]  # type: ignore[union-attr]
    assert node is not None
    assert call is not None
    assert made is not None
    with pytest.raises(MeasurementError, match="no input of shape"):
        _input_like(node, made)
    with pytest.raises(MeasurementError, match="no input of shape"):
        _place(call, made)


def test_a_provider_that_tells_nothing_says_so() -> None:
    pytest.importorskip("onnxruntime")
    backend, _ = target_named("onnxruntime-cpu-t1", "here")
    with pytest.raises(UnavailableError, match="CPU provider only"):
        backend.pieces((), Target(device="here", backend="onnxruntime", provider="cuda"))
