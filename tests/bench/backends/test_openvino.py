"""OpenVINO lies in a folder of its own, and says so where it does not; its own library tells what runs."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.forked_workers import fork_workers, start_workers

from opmark.bench.backends._onnx.model import stack
from opmark.bench.backends._onnx.openvino_library import REORDER, PlannedNode, library, pieces_of, with_weights
from opmark.bench.backends.openvino import BACKEND, FOLDER
from opmark.bench.fusion.worker import reported_pieces
from opmark.bench.run.runner import run
from opmark.bench.worker.backend import CHAIN, PARALLEL, SUM, available_target, backend_of
from opmark.bench.worker.calls import call_in
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.kernels.call import OnnxNode
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.journal import read_journal
from opmark.kinds import KINDS

TARGET = Target(device="d", backend="openvino", provider="cpu", version="1.24")


def kernel(kind: str, **parameters: object) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


PRODUCT = kernel("gemm", m=64, k=64, n=64, bias="none")
RELU = kernel("elementwise", op="relu", shapes=((8, 64),))
IMAGE = (1, 32, 28, 28)
CONVOLUTION = kernel(
    "conv",
    batch=1,
    channels_in=32,
    channels_out=32,
    size=IMAGE[2:],
    kernel=(3, 3),
    stride=(1, 1),
    pads=(1, 1, 1, 1),
    dilation=(1, 1),
)


def each(op: str) -> Kernel:
    return kernel("elementwise", op=op, shapes=(IMAGE,))


def stub(folder: Path, providers: list[str]) -> str:
    """A folder with a made-up package that answers what the backend asks."""
    package = folder / "onnxruntime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        f"__version__ = '1.24.1'\ndef get_available_providers():\n    return {providers!r}\n"
    )
    return str(folder)


def test_without_a_folder_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(UnavailableError, match=r"cannot measure on openvino-cpu-t1: .* has no folder") as missing:
        available_target("openvino-cpu-t1")
    assert "pip install --no-deps --target FOLDER onnxruntime-openvino" in (missing.value.hint or "")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert "holds no onnxruntime-openvino" in (BACKEND.unavailable() or "")
    monkeypatch.setenv(FOLDER, stub(tmp_path / "plain", ["CPUExecutionProvider"]))
    assert "another build of onnxruntime" in (BACKEND.unavailable() or "")
    broken = tmp_path / "broken" / "onnxruntime"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no library is called libx')")
    monkeypatch.setenv(FOLDER, str(broken.parent))
    assert "does not start: ImportError: no library is called libx" in (BACKEND.unavailable() or "")


def test_its_target_and_facts_are_those_of_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = stub(tmp_path, ["OpenVINOExecutionProvider", "CPUExecutionProvider"])
    monkeypatch.setenv(FOLDER, folder)
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert BACKEND.unavailable() is None
    assert BACKEND.targets("d") == (TARGET,)
    assert backend_of("openvino-cpu-t1") is BACKEND
    assert BACKEND.facts()["version"] == "1.24.1"
    assert BACKEND.environment_variables(TARGET) == {"PYTHONPATH": os.pathsep.join((folder, "elsewhere"))}


def test_convolutions_are_added_up_and_only_other_matrix_work_runs_in_chains() -> None:
    assert BACKEND.construction(CONVOLUTION) == SUM
    assert BACKEND.construction(PRODUCT) == CHAIN
    assert BACKEND.construction(RELU) == PARALLEL


def test_without_its_library_it_reports_no_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(UnavailableError, match="holds no library of OpenVINO"):
        BACKEND.pieces([CONVOLUTION], TARGET)
    parts = {"first": [CONVOLUTION], "second": [each("relu")], "block": [CONVOLUTION, each("relu")]}
    assert reported_pieces(BACKEND, parts, TARGET) == {"first": (), "second": (), "block": ()}


def planned(*nodes: tuple[str, str, str, float]) -> tuple[PlannedNode, ...]:
    return tuple(PlannedNode(name=name, kind=kind, primitive=code, time_ns=ns) for name, kind, code, ns in nodes)


def test_nodes_become_the_kernels_of_the_operators_that_they_cover() -> None:
    # as the library of OpenVINO 2025.4 told them
    convolution = planned(
        ("x0_0_abcd_acdb_Multiply_7903", "Reorder", "jit_uni_f32", 41e3),
        ("Multiply_7903", "Convolution", "brgconv_avx2_f32", 750e3),
        ("copy2", "Relu", "undef", 0.0),
        ("copy3/WithoutBiases", "Convolution", "brgconv_avx2_1x1_f32", 84e3),
        ("copy3/WithoutBiases_acdb_abcd_y0_3/sink_port_0", "Reorder", "reorder_f32", 50e3),
    )
    assert [(piece.name, piece.covers) for piece in pieces_of(convolution, 4)] == [
        ("Reorder", ()),
        ("Convolution", (0, 1, 2)),
        ("Convolution", (3,)),
        ("Reorder", ()),
    ]
    # a view after a product costs nothing, and after a reorder it belongs to no kernel
    product = planned(("copy0", "FullyConnected", "gemm", 9e3), ("y0_1", "Reshape", "unknown_f32", 0.0))
    assert [piece.covers for piece in pieces_of(product, 2)] == [(0, 1)]
    apart = planned(
        ("copy0/WithoutBiases", "Convolution", "brgconv", 9e3),
        ("copy0/WithoutBiases_acdb_abcd_y0_1", "Reorder", "reorder_f32", 2e3),
        ("y0_1", "Reshape", "unknown_f32", 0.0),
    )
    assert [piece.covers for piece in pieces_of(apart, 2)] == [(0,), (), (1,)]
    # operators that no node is called after ran in the last kernel
    assert [piece.covers for piece in pieces_of(planned(("copy0", "MatMul", "gemm", 9e3)), 2)] == [(0, 1)]


def test_its_library_tells_that_a_sum_converts_layouts_at_its_ends_alone() -> None:
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"{FOLDER} names no folder with onnxruntime-openvino")
    node = call_in("onnx", CONVOLUTION)
    assert isinstance(node, OnnxNode)
    for copies in (1, 4):
        made = stack(node, copies=copies, chain=False, rotated=False, added=copies > 1)
        compiled = library(folder).compiled(with_weights(made.model, made.constants), threads=1)
        assert all(ns > 0 for ns in compiled.call(3))
        kinds = Counter(one.kind for one in compiled.nodes() if not one.is_inside)
        compiled.close()
        # the sums run inside the convolutions
        assert kinds == {"Convolution": copies, REORDER: 2}
    pieces = BACKEND.pieces([CONVOLUTION, each("relu")], TARGET)
    assert [piece.covers for piece in pieces if piece.covers] == [(0, 1)]


def test_a_model_that_it_refuses_is_one_sentence() -> None:
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"{FOLDER} names no folder with onnxruntime-openvino")
    with pytest.raises(MeasurementError, match="OpenVINO refuses it: "):
        library(folder).compiled(b"no model", threads=1)


@pytest.fixture
def commands() -> Iterator[None]:
    """Workers as commands: a forked one has imported the other wheel."""
    start_workers()
    yield
    fork_workers()


@pytest.mark.usefixtures("commands")
def test_it_measures_where_it_is_installed(tmp_path: Path) -> None:
    if not os.environ.get(FOLDER):
        pytest.skip(f"{FOLDER} names no folder with onnxruntime-openvino")
    from opmark.bench.suite.suite import ExactKernel, Suite

    chosen = (PRODUCT, RELU, CONVOLUTION)
    suite = Suite(
        name="tiny",
        targets=("openvino-cpu-t1",),
        quality="quick",
        at_least=0,
        exact=tuple(ExactKernel(kind=one.kind, parameters=one.params) for one in chosen),
    )
    summary = run(suite, journal=tmp_path / "tiny.jsonl", budget_s=30)
    assert summary.kernels == len(chosen)
    found = {row.kernel.kind: row for row in read_journal(tmp_path / "tiny.jsonl").measurements}
    assert found["conv"].construction == SUM
    assert found["conv"].latency_rotated_ns is not None
