"""The small values: kernels, kinds, calls, tensors, targets, environments, measurements, clusters, workspaces."""

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import ContentError, ExitCode, MissingExtraError, OpMarkError, UsageError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.hardware.target import Target, parse_target_name
from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kernel import Kernel, frozen
from opmark.core.kernels.kind import Axis, Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec, broadcast_shape, dtype_bytes
from opmark.core.kernels.work import Work
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.measurement import FAILED, OK, QUANTILES, Measurement
from opmark.core.workspace import ROOMS, Workspace, find_workspace, version_key, versions

WORK = Work(flops=2, read_bytes=8, written_bytes=4, weight_bytes=4)


def test_errors_say_where_and_what_to_do() -> None:
    error = MissingExtraError("this needs duckdb", where="report", hint="pip install it")
    assert str(error) == "report: this needs duckdb"
    assert (error.exit_code, error.hint) == (ExitCode.UNAVAILABLE, "pip install it")
    assert str(OpMarkError("plain")) == "plain"


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.lists(st.integers()) | st.text(), max_size=5))
def test_a_kernel_is_its_content(parameters: dict[str, Any]) -> None:
    kernel = Kernel.of("conv", parameters)
    assert kernel == Kernel.of("conv", dict(reversed(parameters.items())))
    assert kernel.key == Kernel.of("conv", kernel.params).key
    assert kernel.key != Kernel.of("gemm", parameters).key
    assert hash(kernel) == hash(Kernel.of("conv", parameters))


def test_kernels_print_themselves() -> None:
    assert str(Kernel.of("gemm", {"n": 2, "m": [1, 2]})) == "gemm(m=(1, 2), n=2)"
    assert frozen([1, [2, 3]]) == (1, (2, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    side: int
    dtype: str = "float32"


class SquareKind(Kind[Square]):
    """The smallest kind."""

    name = "square"
    parameters = Square
    space: ClassVar[Mapping[str, Axis]] = {"side": Range(8, 512, 8), "dtype": Choice(("float32", "float16"))}

    def work(self, p: Square) -> Work:
        return Work(flops=p.side**2, read_bytes=4 * p.side, written_bytes=0)

    def features(self, p: Square) -> dict[str, float]:
        return {"side": float(p.side)}

    def shape_group(self, p: Square) -> str:
        return str(p.side)

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Square | None:
        return Square(side=values["side"], dtype=setting.dtype)

    def vary(self, p: Square, width: float, extent: float) -> Square:
        return replace(p, side=round(p.side * extent))


def test_a_kind_reads_back_its_own_kernels() -> None:
    kind = SquareKind()
    kernel = kind.kernel(Square(side=3))
    assert kernel.params == {"side": 3, "dtype": "float32"}
    assert kind.parse(kernel) == Square(side=3)
    assert kind.to_onnx(Square(side=3)) is None
    assert kind.from_aten(AtenCall(op="add.Tensor")) is None
    with pytest.raises(ContentError, match="not a square kernel"):
        kind.parse(Kernel.of("square", {"side": 3, "colour": "red"}))


@given(st.floats(min_value=0, max_value=1, exclude_max=True))
def test_axes_stay_inside_their_ends(fraction: float) -> None:
    assert 8 <= Range(8, 512, 8).at(fraction) <= 512
    assert Range(8, 512, 8).at(fraction) % 8 == 0
    assert Choice(("a", "b", "c")).at(fraction) in {"a", "b", "c"}
    assert Range(1, 1).at(fraction) == 1


def test_calls_list_their_tensors_in_order() -> None:
    a, b, c = (TensorSpec((size,)) for size in (1, 2, 3))
    call = AtenCall(op="cat", arguments=((a, b), 0), keywords={"out": c, "flag": "x"})
    assert call.tensors == (a, b, c)
    with_defaults = OnnxNode(op_type="Relu", inputs=(Operand(spec=a), None), outputs=(b,))
    assert (with_defaults.domain, with_defaults.opset) == ("", 20)


def test_tensor_sizes() -> None:
    assert TensorSpec((2, 3, 4), "float16").size_bytes == 48
    assert TensorSpec(()).elements == 1
    with pytest.raises(ContentError, match="float12"):
        dtype_bytes("float12")


@given(st.lists(st.integers(1, 5), max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_broadcasting_with_ones_gives_the_full_shape(shape: list[int], kept: list[bool]) -> None:
    partly = tuple(size if keep else 1 for size, keep in zip(shape, kept, strict=False))
    assert broadcast_shape(tuple(shape), partly) == tuple(shape)


def test_broadcasting_refuses() -> None:
    assert broadcast_shape((3, 1), (4,)) == (3, 4)
    with pytest.raises(ContentError, match="do not broadcast"):
        broadcast_shape((3,), (4,))


def test_target_names() -> None:
    target = Target(device="x86-box", backend="onnxruntime", provider="cpu", threads=2, version="1.31")
    assert (target.name, str(target)) == ("onnxruntime-cpu-t2", "x86-box/onnxruntime-cpu-t2")
    assert parse_target_name(target.name) == ("onnxruntime-cpu", 2)
    assert parse_target_name("null-t1") == ("null", 1)
    assert target.id != replace(target, options=("arena",)).id
    for text in ("onnxruntime", "t1", "Torch-t1", ""):
        with pytest.raises(UsageError):
            parse_target_name(text)


def test_environments_differ_only_in_what_is_checked() -> None:
    first = Environment(device="d", checked={"a": 1, "b": "x"}, noted={"load": 0.5})
    second = Environment(device="d", checked={"a": 1, "b": "x"}, noted={"load": 3.0})
    third = Environment(device="d", checked={"a": 2, "c": True})
    assert first.id == second.id != third.id
    assert first.differences(second) == {}
    assert first.differences(third) == {"a": (1, 2), "b": ("x", None), "c": (None, True)}


@pytest.mark.parametrize("latency_ns", [None, 0.0, -1.0, float("nan")])
def test_a_usable_row_has_a_positive_latency(latency_ns: float | None) -> None:
    kernel = Kernel.of("gemm", {"m": 1})
    with pytest.raises(ContentError, match="latency_hot_ns"):
        Measurement(kernel=kernel, work=WORK, target="t", status=OK, latency_hot_ns=latency_ns)
    assert Measurement(kernel=kernel, work=WORK, target="t", status=FAILED, reason="crash").latency_hot_ns is None
    with pytest.raises(ContentError, match="unknown status"):
        Measurement(kernel=kernel, work=WORK, target="t", status="fine")


def test_quantiles_and_work() -> None:
    assert (len(QUANTILES), QUANTILES[0], QUANTILES[2], QUANTILES[-1]) == (21, 0.0, 0.1, 1.0)
    assert Work(flops=4, read_bytes=16, written_bytes=8, weight_bytes=8) == WORK + WORK


def cluster(**changes: Any) -> Cluster:
    device = Device(name="cpu", type="cpu", memory_bytes=1)
    link = Link(source="cpu", destination="gpu", latency_ns=0, bandwidth_bytes_per_s=1e9)
    good = Cluster(name="c", devices=(device, replace(device, name="gpu")), links=(link,), host="cpu")
    return replace(good, **changes)


def test_a_good_cluster_has_no_problems() -> None:
    assert cluster().checked("here") is not None
    assert cluster().problems() == []


def test_everything_wrong_with_a_cluster_is_named_at_once() -> None:
    devices = (
        Device(name="cpu", type="cpu", memory_bytes=0, slots=0, dispatch_ns=-1, provenance="guess"),
        Device(name="cpu", type="cpu", memory_bytes=1),
    )
    links = (Link(source="cpu", destination="moon", latency_ns=-1, bandwidth_bytes_per_s=0),)
    with pytest.raises(ContentError) as caught:
        cluster(devices=devices, links=links, host="sun").checked("cluster.yaml")
    message = str(caught.value)
    for part in ("twice", "memory_bytes", "slots", "dispatch_ns", "provenance", "moon", "bandwidth", "latency", "sun"):
        assert part in message
    assert "devices: at least one is needed" in cluster(devices=(), links=(), host="").problems()


def test_a_workspace_is_found_upward(tmp_path: Path) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    deep = tmp_path / "bench" / "suites"
    deep.mkdir()
    found = find_workspace(deep)
    assert found == Workspace(tmp_path)
    assert {found.suites, found.journals} == {deep, tmp_path / "bench" / "journals"}
    assert [found.datasets.name, found.predictors.name, found.leaderboards.name] == list(ROOMS[1:])
    assert found.cache == tmp_path / ".cache"


def test_no_workspace_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ContentError) as caught:
        find_workspace(tmp_path)
    assert "opmark init" in (caught.value.hint or "")


def test_versions_sort_as_numbers(tmp_path: Path) -> None:
    for name in ("1.10.0", "1.9.0", "draft", "1.9"):
        (tmp_path / name).mkdir()
    (tmp_path / "2.0.0").write_text("a file is not a version")
    assert versions(tmp_path) == ["1.9.0", "1.10.0"]
    assert versions(tmp_path / "absent") == []
    with pytest.raises(ContentError):
        version_key("1.0")


def test_a_kernel_is_found_again_in_another_process() -> None:
    kernel = Kernel.of("gemm", {"m": 4, "shape": [1, [2, 3]]})
    script = "import pickle, sys; kernel, known = pickle.load(sys.stdin.buffer); print(kernel in known)"
    known = {kernel: 1}
    found = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps((kernel, known)),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert found.stdout.strip() == b"True"
    again = Kernel.of("gemm", {"m": 4, "shape": [1, [2, 3]]})
    assert hash(kernel) == hash(again)
    assert kernel == again
