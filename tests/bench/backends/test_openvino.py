"""OpenVINO lies in a folder of its own, and says so where it does not; its fusion is known by the clock alone."""

import os
from pathlib import Path

import pytest

from opmark.bench.backends.openvino import BACKEND, FOLDER
from opmark.bench.fusion.worker import reported_pieces
from opmark.bench.run.runner import run
from opmark.bench.worker.backend import CHAIN, PARALLEL, available_target, backend_of
from opmark.core.errors import UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS

TARGET = Target(device="d", backend="openvino", provider="cpu", version="1.24")


def kernel(kind: str, **parameters: object) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


PRODUCT = kernel("gemm", m=64, k=64, n=64, bias="none")
RELU = kernel("elementwise", op="relu", shapes=((8, 64),))


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


def test_only_matrix_work_runs_in_chains() -> None:
    assert BACKEND.construction(PRODUCT) == CHAIN
    assert BACKEND.construction(RELU) == PARALLEL


def test_it_reports_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match="does not report"):
        BACKEND.pieces([PRODUCT, RELU], TARGET)
    parts = {"first": [PRODUCT], "second": [RELU], "block": [PRODUCT, RELU]}
    assert reported_pieces(BACKEND, parts, TARGET) == {"first": (), "second": (), "block": ()}


def test_it_measures_where_it_is_installed(tmp_path: Path) -> None:
    if not os.environ.get(FOLDER):
        pytest.skip(f"{FOLDER} names no folder with onnxruntime-openvino")
    from opmark.bench.suite.suite import ExactKernel, Suite

    chosen = (PRODUCT, RELU)
    suite = Suite(
        name="tiny",
        targets=("openvino-cpu-t1",),
        quality="quick",
        at_least=0,
        exact=tuple(ExactKernel(kind=one.kind, parameters=one.params) for one in chosen),
    )
    summary = run(suite, journal=tmp_path / "tiny.jsonl", budget_s=30)
    assert summary.kernels == len(chosen)
