"""A suite file of exact kernels: what to measure so that a prediction becomes surer."""

import json
from collections.abc import Sequence
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.errors import NothingSelectedError
from opmark.core.files import write_text
from opmark.core.kernel import Kernel

_SCHEMA = 1


def write_suite(path: Path, kernels: Sequence[Kernel], *, target: str, model: str) -> None:
    """Write the suite of `kernels` on `target` that `opmark bench run` reads. Raises `NothingSelectedError`."""
    if not kernels:
        raise NothingSelectedError("no kernel would make this prediction surer", where=str(path))
    lines = [
        f"# What makes the prediction of {model} uncertain, the worst first.",
        f"schema: {_SCHEMA}",
        f"name: {path.stem}",
        f"targets: [{target}]",
        "at_least: 0",
        "exact:",
    ]
    # JSON is YAML, and keeps every parameter's type
    lines += [
        f"- {json.dumps({'kind': one.kind, 'parameters': plain(one.params)}, ensure_ascii=False)}" for one in kernels
    ]
    write_text(path, "\n".join(lines) + "\n")
