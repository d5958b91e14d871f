"""Quantises an ONNX file to eight bits with ONNX Runtime's tools."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.models.capture.onnx_session import refusals
from opmark.models.capture.quiet import quiet
from opmark.models.onnx_file import OnnxFile, constant_names

if TYPE_CHECKING:
    import onnx

# Ranges of random inputs settle after very few samples, and latency does not depend on them.
_SAMPLES = 2
# A whole-number input may index anything, such as a table of two token types; these exist everywhere.
_FEWEST_INDICES = 2


def quantise(file: OnnxFile, variant: str, path: Path) -> None:
    """Write `file` with eight-bit weights to `path`: `int8-dynamic` scales activations as it runs, `int8-static` once.

    Static quantisation writes QDQ pairs around every operator. Activations are unsigned, as the CPU
    provider's operators need them on x86 (signed ones leave many pairs unfused there); weights are signed, but unsigned
    in dynamic quantisation, since the provider's ConvInteger takes no others.
    Raises `ContentError` where the tools cannot.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(prefix="opmark-") as folder, _silent():
        given, prepared = Path(folder, "given.onnx"), Path(folder, "prepared.onnx")
        onnx.save_model(_fixed(file), given)
        try:
            quant_pre_process(given, prepared, skip_symbolic_shape=True)
            _forget_weight_shapes(prepared)
            if variant == "int8-static":
                reader: Any = _Samples(prepared)
                quantize_static(
                    prepared,
                    path,
                    reader,
                    activation_type=QuantType.QUInt8,
                    nodes_to_exclude=_left_floating(prepared),
                )
            else:
                quantize_dynamic(prepared, path, weight_type=QuantType.QUInt8)
        except _faults() as error:
            raise ContentError(
                f"ONNX Runtime's tools cannot quantise it: {_first_line(error)}", where=file.path.name
            ) from error


class _Samples:
    """A calibration reader: a few random inputs, the same on every run."""

    def __init__(self, path: Path) -> None:
        import onnx

        graph = onnx.load(path, load_external_data=False).graph
        constants = constant_names(graph)
        self._inputs = [item for item in graph.input if item.name not in constants]
        self._left: Iterator[dict[str, Any]] = iter(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import numpy as np
        from onnx import helper

        chance = np.random.default_rng(0)
        for _ in range(_SAMPLES):
            sample = {}
            for item in self._inputs:
                content = item.type.tensor_type
                shape = [dim.dim_value for dim in content.shape.dim]
                dtype = helper.tensor_dtype_to_np_dtype(content.elem_type)
                if np.issubdtype(dtype, np.floating):
                    sample[item.name] = chance.standard_normal(shape).astype(dtype)
                else:
                    sample[item.name] = chance.integers(0, _FEWEST_INDICES, size=shape).astype(dtype)
            yield sample

    def get_next(self) -> dict[str, Any] | None:
        """The next sample, or None after the last; called by the tools."""
        return next(self._left, None)


def _forget_weight_shapes(path: Path) -> None:
    """Remove noted shapes of weights: the tools transpose some weights and then fail on the old shape."""
    import onnx

    model = onnx.load(path)
    known = constant_names(model.graph)
    for items in (model.graph.input, model.graph.value_info):
        for item in [item for item in items if item.name in known]:
            items.remove(item)
    onnx.save_model(model, path)


def _left_floating(path: Path) -> list[str]:
    """Names of instance norms: the runtime has no eight-bit one, and the tools refuse two that share a shift."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    return [node.name for node in graph.node if node.op_type == "InstanceNormalization" and node.name]


def _fixed(file: OnnxFile) -> "onnx.ModelProto":
    """The model with every dimension given and its weights inside."""
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(file.model)
    onnx.load_external_data_for_model(model, str(file.path.parent))
    for item in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dimension in item.type.tensor_type.shape.dim:
            if dimension.dim_param in file.overrides:
                dimension.dim_value = file.overrides[dimension.dim_param]
    return model


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Silence the tools, which use the root logger, and their sessions, which use the runtime's logger."""
    import onnxruntime

    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    onnxruntime.set_default_logger_severity(4)
    try:
        with quiet():
            yield
    finally:
        onnxruntime.set_default_logger_severity(2)
        logging.disable(before)


def _faults() -> tuple[type[Exception], ...]:
    """The exceptions of the tools for networks they cannot handle, and of the runtime for models it refuses."""
    return (ValueError, RuntimeError, KeyError, TypeError, AssertionError, *refusals())


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
