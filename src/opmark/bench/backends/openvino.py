"""OpenVINO's execution provider of ONNX Runtime. It fuses without telling; OpenVINO's own library tells.

The packages onnxruntime-openvino and onnxruntime exclude each other. So OpenVINO's lies in a folder of its own, which
the variable OPMARK_OPENVINO names, and only worker processes see that folder.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from opmark.bench.backends._onnx.openvino_library import library, pieces_of
from opmark.bench.backends._onnx.runtime import OnnxRuntime, node_of, use_provider
from opmark.bench.backends._onnx.sequence import sequence
from opmark.bench.worker.backend import PARALLEL, SUM, Piece
from opmark.core.errors import ContentError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Fact
from opmark.core.reading import parse_json
from opmark.kinds import kind_of

FOLDER = "OPMARK_OPENVINO"
_PROVIDER = "OpenVINOExecutionProvider"
_PROBE = "import json, onnxruntime as o; print(json.dumps([o.__version__, o.get_available_providers()]))"
_PROBE_LIMIT_S = 60
# Enough calls for a mean time above the clock of the library, which counts microseconds.
_CALLS = 5
# Alone, a convolution converts the layout of all that it reads and writes, which a network does at its ends only. It
# adds results up by itself, unlike a transposed one (decision 0029).
_ADDED_UP = frozenset({"conv"})
_HOW = f"pip install --no-deps --target FOLDER onnxruntime-openvino, then set {FOLDER} to FOLDER"


class OpenVino(OnnxRuntime):
    """OpenVINO on the processor of this machine."""

    name: ClassVar[str] = "openvino"
    to_install: ClassVar[str] = _HOW
    # Its sessions run compiled parts, which cannot be read: only its library tells what runs.
    shows_kernels: ClassVar[bool] = False

    def unavailable(self) -> str | None:
        """The reason why it cannot be used; None if it can."""
        return super().unavailable() or _found(os.environ.get(FOLDER, ""))[1]

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """The processor with each number of threads."""
        version = ".".join(_found(os.environ.get(FOLDER, ""))[0].split(".")[:2])
        return tuple(
            Target(device=device, backend=self.name, provider="cpu", threads=count, version=version)
            for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """The version of its ONNX Runtime."""
        return {"version": _found(os.environ.get(FOLDER, ""))[0], "providers": _PROVIDER}

    def environment_variables(self, target: Target) -> Mapping[str, str]:
        """Its folder comes before all others."""
        del target
        paths = [os.environ.get(FOLDER, ""), os.environ.get("PYTHONPATH", "")]
        return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}

    def start(self, target: Target) -> None:
        """Let OpenVINO run what is asked of the processor, on the target's threads and in one stream."""
        settings = {"device_type": "CPU", "num_of_threads": str(target.threads), "num_streams": "1"}
        use_provider(target.provider, _PROVIDER, settings)
        super().start(target)

    def construction(self, kernel: Kernel) -> str:
        """A sum of convolutions and a chain of other matrix work; of other kernels in a row, OpenVINO makes one."""
        found = super().construction(kernel)
        if kernel.kind in _ADDED_UP:
            return SUM
        return found if kind_of(kernel).matrix else PARALLEL

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """The nodes that OpenVINO's own library runs for the same sequence."""
        model = sequence([node_of(kernel) for kernel in kernels]).model
        compiled = library(os.environ.get(FOLDER, "")).compiled(model, threads=target.threads)
        try:
            compiled.call(_CALLS)
            return pieces_of(compiled.nodes(), len(kernels))
        finally:
            compiled.close()


@cache
def _found(folder: str) -> tuple[str, str | None]:
    """The version in `folder`, and the reason why it cannot be used, or None."""
    if not folder:
        return "", "onnxruntime-openvino has no folder of its own yet"
    if not (Path(folder) / "onnxruntime").is_dir():
        return "", f"{folder} holds no onnxruntime-openvino"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            timeout=_PROBE_LIMIT_S,
            check=True,
        )
        version, providers = parse_json(done.stdout.encode(), "onnxruntime-openvino")
    except (OSError, subprocess.SubprocessError, ContentError, TypeError, ValueError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()
        return "", f"onnxruntime-openvino in {folder} does not start: {said[-1][:160] if said else error}"
    if _PROVIDER not in providers:
        return "", f"{folder} holds another build of onnxruntime"
    return str(version), None


BACKEND = OpenVino()
