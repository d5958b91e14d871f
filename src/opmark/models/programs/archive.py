"""The archive of a `.pt2` file: its program as JSON and its tensors as plain bytes.

`torch.export.load` unpickles whatever an archive asks for, and a pickle runs code. Here nothing is unpickled with full
power: sample inputs and compiled code are not read, custom objects are refused, and an older file's tensors are read
with `weights_only`.
"""

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.core.reading import parse_json

if TYPE_CHECKING:
    import torch

# A program of a million operators takes 1 GiB of JSON.
_MOST_JSON_BYTES = 2**30
_MOST_REPEATED_BYTES = 2**28
_FORMAT = b"pt2"
_MODEL = "models/model.json"
_OLD_MODEL = "serialized_exported_program.json"
HINT = "save it again with torch.export.save(torch.export.export(module, inputs), path)"


@dataclass(frozen=True, kw_only=True)
class SavedProgram:
    """The content of a `.pt2` file: the program's JSON, and its tensors by their names in the module."""

    path: Path
    content: Mapping[str, Any]
    tensors: "Mapping[str, torch.Tensor]"


def read_program(path: Path) -> SavedProgram:
    """Read the program in `path`. Raises `ContentError` for another file and for one that only a pickle could restore.

    `KeyError`, `TypeError`, `ValueError` and their like mean another schema; the caller turns them into one sentence.
    """
    with zipfile.ZipFile(path) as opened:
        archive = _Archive(path=path, opened=opened)
        if archive.has(_OLD_MODEL):
            return _old(archive)
        if not archive.has("archive_format") or archive.read("archive_format") != _FORMAT or not archive.has(_MODEL):
            raise ValueError("no exported program")
        weights = _payloads(archive, "data/weights/", "weights")
        constants = _payloads(archive, "data/constants/", "constants")
        return SavedProgram(path=path, content=archive.json(_MODEL), tensors={**constants, **weights})


@dataclass(frozen=True, kw_only=True)
class _Archive:
    """A zip file whose members lie in one folder, uncompressed, so that reading one takes no more than its size."""

    path: Path
    opened: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for info in self.opened.infolist():
            folder, slash, name = info.filename.partition("/")
            name = name if slash and not folder.startswith("serialized_") else info.filename
            if name in self.members or info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise ValueError("members that appear twice or are compressed")
            self.members[name] = info

    def has(self, name: str) -> bool:
        return name in self.members

    def read(self, name: str) -> bytes:
        return self.opened.read(self.members[name])

    def json(self, name: str) -> Any:
        if self.members[name].file_size > _MOST_JSON_BYTES:
            raise ValueError("a program of more than 1 GiB")
        return parse_json(self.read(name), f"{self.path}: {name}")

    def unpickled(self, name: str) -> Any:
        """The content of a member that `torch.save` wrote, if it needs nothing but tensors and plain containers."""
        import torch

        content = self.read(name)
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                if any(info.compress_type != zipfile.ZIP_STORED for info in inner.infolist()):
                    raise ValueError("members that are compressed")  # torch would unpack them without a limit
        try:
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # a hostile pickle can fail with anything
            raise ContentError(
                f"{name} is a pickle of more than tensors, and loading one runs the code in it",
                where=str(self.path),
                hint="export the module without custom objects and tensor subclasses",
            ) from error


def _old(archive: _Archive) -> SavedProgram:
    """A file of torch 2.7 or older: JSON beside two pickles of tensors."""
    tensors: dict[str, Any] = {}
    for name in ("serialized_constants.pt", "serialized_state_dict.pt"):
        if archive.has(name) and archive.members[name].file_size:
            found = archive.unpickled(name)
            tensors.update(found if isinstance(found, dict) else {})
    return SavedProgram(path=archive.path, content=archive.json(_OLD_MODEL), tensors=_only_tensors(tensors, archive))


def _payloads(archive: _Archive, folder: str, what: str) -> "dict[str, torch.Tensor]":
    legacy = f"{folder}model.pt"
    if archive.has(legacy):
        return _only_tensors(dict(archive.unpickled(legacy)), archive)
    flat: dict[str, torch.Tensor] = {}
    found = {}
    for name, payload in archive.json(f"{folder}model_{what}_config.json")["config"].items():
        member = folder + str(payload["path_name"])
        if payload["use_pickle"] or not payload["tensor_meta"]:
            if payload["path_name"].startswith(("custom_obj", "opaque_obj")):
                raise ContentError(
                    f"{name!r} is a custom object, and loading one runs the code in it",
                    where=str(archive.path),
                    hint="export the module without custom objects",
                )
            found[name] = archive.unpickled(member)
        else:
            found[name] = _strided(archive, member, payload["tensor_meta"], flat)
    return _only_tensors(found, archive)


def _only_tensors(found: Mapping[str, Any], archive: _Archive) -> "dict[str, torch.Tensor]":
    import torch

    strange = [name for name, value in found.items() if type(value) not in (torch.Tensor, torch.nn.Parameter)]
    if strange:
        raise ContentError(f"{strange[0]!r} is not a plain tensor", where=str(archive.path), hint=HINT)
    return {str(name): value for name, value in found.items()}


def _strided(
    archive: _Archive, member: str, meta: Mapping[str, Any], flat: "dict[str, torch.Tensor]"
) -> "torch.Tensor":
    """A view of a member's bytes; tensors that share a member share memory."""
    import torch

    dtype = scalar_type(meta["dtype"])
    sizes, strides = ([whole(one["as_int"]) for one in meta[name]] for name in ("sizes", "strides"))
    offset = whole(meta["storage_offset"]["as_int"])
    if len(sizes) != len(strides) or min([*sizes, *strides, offset], default=0) < 0:
        raise ValueError("a tensor with a negative size")
    if not archive.members[member].file_size and not math.prod(sizes):
        return torch.zeros(sizes, dtype=dtype)
    if member not in flat:
        flat[member] = torch.frombuffer(bytearray(archive.read(member)), dtype=torch.uint8)
    whole_bytes = flat[member]
    item = torch.empty(0, dtype=dtype).element_size()
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if math.prod(sizes) and (last + 1) * item > len(whole_bytes):
        raise ValueError("a tensor beyond the end of its bytes")
    # Strides of 0 repeat a number, and whatever computes with the tensor writes the repetitions out.
    if math.prod(sizes) * item > max(_MOST_REPEATED_BYTES, len(whole_bytes)):
        raise ValueError("a tensor that repeats its bytes")
    return whole_bytes[: len(whole_bytes) // item * item].view(dtype).as_strided(sizes, strides, offset)


def scalar_type(number: Any) -> "torch.dtype":
    """The element type with this number in the schema of torch.export."""
    import torch

    names = (
        *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64"),
        *("complex128", "bool", "bfloat16"),
    )
    later = {28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz"}
    name = names[number - 1] if 1 <= whole(number) <= len(names) else later[number]
    found: torch.dtype = getattr(torch, name)
    return found


def whole(value: Any) -> int:
    """`value`, if it is a whole number of 64 bits. Raises `ValueError`."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
        raise ValueError(f"{value!r} is no whole number")
    return value
