"""The archive of a program: tensors stay within their bytes, and members are what they are."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.models.programs.attacks import honest, in_json, rewritten

from opmark.core.errors import ContentError
from opmark.models.programs.archive import scalar_type, whole
from opmark.models.programs.program import program_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta["sizes"].append({"as_int": 10**9}),
        lambda meta: meta["storage_offset"].update(as_int=-4),
        lambda meta: meta["storage_offset"].update(as_int=2**62),
        lambda meta: meta["strides"][0].update(as_int=10**9),
        lambda meta: meta.update(dtype=99),
        lambda meta: (meta["sizes"][0].update(as_int=2**40), meta["strides"][0].update(as_int=0)),
    ],
)
def test_a_tensor_beyond_its_bytes_is_refused(tmp_path: Path, change: Callable[[Any], None]) -> None:
    path = honest(tmp_path / "small.pt2")
    config = in_json(lambda found: change(found["config"]["inner.weight"]["tensor_meta"]))
    with pytest.raises(ContentError, match=r"torch\.export"):
        program_of(rewritten(path, {"data/weights/model_weights_config.json": config}))


def test_a_compressed_archive_and_a_member_twice_are_refused(tmp_path: Path) -> None:
    path = honest(tmp_path / "small.pt2")
    with zipfile.ZipFile(path) as opened:
        members = [(name, opened.read(name)) for name in opened.namelist()]
    for kind, items in ((zipfile.ZIP_DEFLATED, members), (zipfile.ZIP_STORED, [*members, members[0]])):
        with zipfile.ZipFile(path, "w", kind) as opened:
            for name, content in items:
                opened.writestr(name, content)
        with pytest.raises(ContentError, match=r"torch\.export"):
            program_of(path)


def test_a_tensor_without_bytes_has_no_elements(tmp_path: Path) -> None:
    path = honest(tmp_path / "small.pt2")
    with zipfile.ZipFile(path) as opened:
        weights = [name.partition("/")[2] for name in opened.namelist() if "data/weights/weight" in name]
    with pytest.raises(ContentError, match=r"torch\.export"):
        program_of(rewritten(path, {name: lambda _: b"" for name in weights}))


def test_a_compressed_pickle_of_tensors_is_not_unpacked(tmp_path: Path) -> None:
    """torch unpacks a member of any size."""
    inner, deflated = io.BytesIO(), io.BytesIO()
    torch.save({"inner.weight": torch.zeros(2**18)}, inner)
    with zipfile.ZipFile(inner) as stored, zipfile.ZipFile(deflated, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    assert len(deflated.getvalue()) < len(inner.getvalue()) / 100
    path = rewritten(honest(tmp_path / "small.pt2"), {"data/weights/model.pt": deflated.getvalue()})
    with pytest.raises(ContentError, match=r"torch\.export"):
        program_of(path)


def test_inputs_beyond_this_machine_are_not_made(tmp_path: Path) -> None:
    def grow(model: Any) -> None:
        values = model["graph_module"]["graph"]["tensor_values"]
        values["x"]["sizes"][0] = {"as_int": 2**44}

    path = rewritten(honest(tmp_path / "small.pt2"), {"models/model.json": in_json(grow)})
    with pytest.raises(ContentError, match=r"its inputs take .*, more than half of this machine's memory"):
        program_of(path)


def test_element_types_have_the_numbers_of_the_schema() -> None:
    from torch._export.serde.schema import SCALAR_TYPE_TO_C10
    from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE

    assert SCALAR_TYPE_TO_C10
    for dtype, number in _TORCH_TO_SERIALIZE_DTYPE.items():
        if int(number) <= 32:
            assert scalar_type(int(number)) == dtype


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 2**63])
def test_a_whole_number_is_one_of_64_bits(value: Any) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        whole(value)
