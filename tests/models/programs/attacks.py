"""Hostile `.pt2` files: an honest one in which some members are replaced by what would run code."""

import json
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

MODEL = "models/model.json"


class Payload:
    """A pickle that makes a folder when it is loaded with full power."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os

        return os.mkdir, (str(self.marker),)


def honest(path: Path, *, dynamic: bool = False) -> Path:
    """A small program with a parameter, a buffer and a constant, saved at `path`."""

    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(4, 3)
            self.register_buffer("shift", torch.ones(3))
            self.constant = torch.tensor([1.0, 2.0, 3.0])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.inner(x) + self.shift) * self.constant

    shapes = ({0: torch.export.Dim("rows", min=2, max=64)},) if dynamic else None
    torch.export.save(torch.export.export(Small(), (torch.randn(2, 4),), dynamic_shapes=shapes), path)
    return path


def rewritten(path: Path, changes: Mapping[str, bytes | Callable[[bytes], bytes] | None]) -> Path:
    """`path` with members replaced, changed, added, or (with None) removed."""
    with zipfile.ZipFile(path) as opened:
        folder = opened.namelist()[0].partition("/")[0]
        members = {name.partition("/")[2]: opened.read(name) for name in opened.namelist()}
    for name, change in changes.items():
        if change is None:
            del members[name]
        else:
            members[name] = change(members[name]) if callable(change) else change
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as opened:
        for name, content in members.items():
            opened.writestr(f"{folder}/{name}", content)
    return path


def in_json(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    """A change of a member's JSON, made in place."""

    def changed(content: bytes) -> bytes:
        value = json.loads(content)
        change(value)
        return json.dumps(value).encode()

    return changed


def saved(marker: Path) -> bytes:
    """What `torch.save` writes for an object that runs code when it is loaded."""
    import io

    stream = io.BytesIO()
    torch.save((Payload(marker),), stream)
    return stream.getvalue()


def pickled(marker: Path) -> bytes:
    """The plain pickle of an object that runs code when it is loaded."""
    return pickle.dumps(Payload(marker))


def old_format(path: Path, changes: Mapping[str, bytes] = {}) -> Path:
    """The same program as torch 2.7 wrote it, with members replaced by `changes`."""
    import io

    program = torch.export.load(path)

    def written(value: Any) -> bytes:
        stream = io.BytesIO()
        torch.save(value, stream)
        return stream.getvalue()

    with zipfile.ZipFile(path) as opened:
        model = next(opened.read(name) for name in opened.namelist() if name.endswith(MODEL))
    members = {
        "version": b"8.20",
        "serialized_exported_program.json": model,
        "serialized_state_dict.pt": written(dict(program.state_dict)),
        "serialized_constants.pt": written(dict(program.constants)),
        "serialized_example_inputs.pt": written(program.example_inputs),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as opened:
        for name, content in {**members, **changes}.items():
            opened.writestr(name, content)
    return path
