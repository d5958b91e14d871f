"""OpenVINO's own library, which lies beside its execution provider: it tells the nodes that a compiled model runs.

The provider of ONNX Runtime hides them. The functions are those of OpenVINO's C interface (`openvino/c/openvino.h`).
"""

import ctypes
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opmark.bench.worker.backend import Piece
from opmark.core.errors import MeasurementError, UnavailableError

_LIBRARY = "onnxruntime/capi/libopenvino_c.so*"
_EXECUTED = 2
# Calls that touch memory for the first time and count in no mean.
_WARM_UP = 2
# Nodes that hand over what others computed.
_HANDED_OVER = frozenset({"Parameter", "Result", "Input", "Output", "Constant"})
REORDER = "Reorder"
# The codes of nodes that run inside the node before them, and of those that may only pass memory on.
_INSIDE, _PASSED = "undef", "unknown"
# The names that models of a sequence give to operators and to what they make; a reorder is called after both its ends.
_NUMBERED = re.compile(r"(?:copy|y0_)(\d+)(?:/|$)")


class _Profile(ctypes.Structure):
    _fields_ = (
        ("status", ctypes.c_int),
        ("real_us", ctypes.c_int64),
        ("cpu_us", ctypes.c_int64),
        ("name", ctypes.c_char_p),
        ("primitive", ctypes.c_char_p),
        ("kind", ctypes.c_char_p),
    )


class _Profiles(ctypes.Structure):
    _fields_ = (("each", ctypes.POINTER(_Profile)), ("size", ctypes.c_size_t))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """A node of a compiled model: its `kind` (Convolution, Reorder …), the code that runs it, and its mean time.

    `time_ns` is 0 for a node that runs inside the one before it, in no time, or in less than a microsecond.
    """

    name: str
    kind: str
    primitive: str
    time_ns: float

    @property
    def is_inside(self) -> bool:
        """True if it runs inside the node before it, or passes its memory on."""
        return self.primitive == _INSIDE or (self.primitive.startswith(_PASSED) and not self.time_ns)


class CompiledModel:
    """A model that OpenVINO has compiled, with inputs of its own."""

    def __init__(self, library: "OpenVinoLibrary", compiled: ctypes.c_void_p) -> None:
        self._library = library
        self._compiled = compiled
        self._request = ctypes.c_void_p()
        library.do("ov_compiled_model_create_infer_request", compiled, ctypes.byref(self._request))
        self._calls = 0
        self._fill_inputs()
        self.call(_WARM_UP)
        self._calls = 0
        self._before_ns = [node.time_ns for node in self._so_far()]

    def call(self, times: int = 1) -> tuple[float, ...]:
        """The times of so many calls, in ns."""
        found = []
        for _ in range(times):
            begun = time.perf_counter_ns()
            self._library.do("ov_infer_request_infer", self._request)
            found.append(float(time.perf_counter_ns() - begun))
        self._calls += times
        return tuple(found)

    def nodes(self) -> tuple[PlannedNode, ...]:
        """The nodes in the order of their execution, with the mean times of all calls so far."""
        # the library counts from the first call on
        return tuple(
            replace(
                node,
                time_ns=max(0.0, ((_WARM_UP + self._calls) * node.time_ns - _WARM_UP * earlier_ns) / self._calls),
            )
            for node, earlier_ns in zip(self._so_far(), self._before_ns, strict=True)
        )

    def close(self) -> None:
        """Free it."""
        self._library.free("ov_infer_request_free", self._request)
        self._library.free("ov_compiled_model_free", self._compiled)

    def _fill_inputs(self) -> None:
        """Make all inputs zero: memory that nothing has filled may hold slow numbers, or indices beyond a table."""
        count = ctypes.c_size_t()
        self._library.do("ov_compiled_model_inputs_size", self._compiled, ctypes.byref(count))
        for index in range(count.value):
            tensor, place, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
            which = ctypes.c_size_t(index)
            self._library.do("ov_infer_request_get_input_tensor_by_index", self._request, which, ctypes.byref(tensor))
            try:
                self._library.do("ov_tensor_data", tensor, ctypes.byref(place))
                self._library.do("ov_tensor_get_byte_size", tensor, ctypes.byref(size))
                ctypes.memset(place, 0, size.value)
            finally:
                self._library.free("ov_tensor_free", tensor)

    def _so_far(self) -> list[PlannedNode]:
        found = _Profiles()
        self._library.do("ov_infer_request_get_profiling_info", self._request, ctypes.byref(found))
        try:
            return [
                _planned(found.each[index]) for index in range(found.size) if not _is_handed_over(found.each[index])
            ]
        finally:
            self._library.free("ov_profiling_info_list_free", ctypes.byref(found))


class OpenVinoLibrary:
    """The library in the folder of an installed `onnxruntime-openvino`."""

    def __init__(self, folder: str) -> None:
        """Load it. Raises `UnavailableError` if `folder` holds none."""
        paths = sorted(Path(folder).glob(_LIBRARY)) if folder else []
        if not paths:
            raise UnavailableError(f"{folder or 'no folder'} holds no library of OpenVINO")
        try:
            self._library = ctypes.CDLL(str(paths[-1]))
        except OSError as error:
            raise UnavailableError(f"OpenVINO's library does not load: {error}") from error
        self._core = ctypes.c_void_p()
        self.do("ov_core_create", ctypes.byref(self._core))

    def compiled(self, model: bytes, *, threads: int) -> CompiledModel:
        """An ONNX file's content, compiled for `threads` threads. Raises `MeasurementError` if OpenVINO refuses it."""
        read, compiled = ctypes.c_void_p(), ctypes.c_void_p()
        text, size = ctypes.c_char_p(model), ctypes.c_size_t(len(model))
        self.do("ov_core_read_model_from_memory_buffer", self._core, text, size, None, ctypes.byref(read))
        settings = ("PERF_COUNT", "YES", "INFERENCE_NUM_THREADS", str(threads), "NUM_STREAMS", "1")
        try:
            self.do(
                "ov_core_compile_model",
                self._core,
                read,
                ctypes.c_char_p(b"CPU"),
                ctypes.c_size_t(len(settings)),
                ctypes.byref(compiled),
                *(ctypes.c_char_p(word.encode()) for word in settings),
            )
        finally:
            self.free("ov_model_free", read)
        return CompiledModel(self, compiled)

    def do(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status. Raises `MeasurementError` unless that is 0."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise MeasurementError(f"OpenVINO refuses it: {self._reason(status)}")

    def free(self, name: str, what: Any) -> None:
        """Call a function that frees something and returns nothing."""
        getattr(self._library, name)(what)

    def _reason(self, status: int) -> str:
        said = self._library.ov_get_last_err_msg
        said.restype = ctypes.c_char_p
        text = (said() or b"").decode(errors="replace").strip().splitlines()
        return text[-1][:200] if text else f"status {status}"


def _is_handed_over(one: _Profile) -> bool:
    return one.kind.decode() in _HANDED_OVER


def _planned(one: _Profile) -> PlannedNode:
    return PlannedNode(
        name=one.name.decode(),
        kind=one.kind.decode(),
        primitive=one.primitive.decode(),
        time_ns=1e3 * one.real_us if one.status == _EXECUTED else 0.0,
    )


@cache
def library(folder: str) -> OpenVinoLibrary:
    """The library in `folder`, loaded once."""
    return OpenVinoLibrary(folder)


def with_weights(model: bytes, constants: Mapping[str, Any]) -> bytes:
    """`model` with the `constants` that it names as external data inside; the library has no other way to get them."""
    import onnx

    proto = onnx.load_model_from_string(model)
    for tensor in proto.graph.initializer:
        if tensor.name in constants:
            tensor.ClearField("external_data")
            tensor.data_location = onnx.TensorProto.DEFAULT
            tensor.raw_data = np.ascontiguousarray(constants[tensor.name]).tobytes()
    return bytes(proto.SerializeToString())


def pieces_of(nodes: Sequence[PlannedNode], operators: int) -> tuple[Piece, ...]:
    """The kernels that `nodes` make of a sequence of so many operators, which `sequence` has numbered.

    A node is called after the last operator in it, or after none if a transformation has made it. A node that writes
    in the place of its input, such as a view, belongs to the kernel before it.
    """
    groups: list[list[PlannedNode]] = []
    for node in nodes:
        if groups and node.is_inside and groups[-1][0].kind != REORDER:
            groups[-1].append(node)
        else:
            groups.append([node])
    found: list[Piece] = []
    begun = 0
    for place, group in enumerate(groups):
        if group[0].kind == REORDER:
            found.append(Piece(name=REORDER, covers=()))
            continue
        numbers = _numbers(group)
        later = [other for other in groups[place + 1 :] if other[0].kind != REORDER]
        named = [number for other in later for number in _numbers(other)]
        # what no node is called after ran in the last one
        end = max(numbers) + 1 if numbers and later else min(named, default=operators)
        found.append(Piece(name=group[0].kind, covers=tuple(range(begun, end))))
        begun = max(begun, end)
    return tuple(found)


def _numbers(group: Sequence[PlannedNode]) -> list[int]:
    return [int(match[1]) for node in group if (match := _NUMBERED.match(node.name))]
