"""A kind's texts in one compressed file."""

import gzip
import json
import time

import pytest

from opmark.core.errors import ContentError
from opmark.predictors.model.packing import Packed, member_name, pack, unpack

TEXTS = {"b.txt": "zwei\n" * 100, "a.json": '{"µ": 1}\n'}


def test_the_same_texts_give_the_same_bytes_whenever_they_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pack(TEXTS)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    assert pack(dict(reversed(TEXTS.items()))) == first
    assert first[4:8] == b"\0\0\0\0"
    assert first[3] == 0
    assert json.loads(gzip.decompress(first)) == TEXTS
    assert unpack(first, "here") == TEXTS


def test_a_packed_mapping_is_the_texts() -> None:
    packed = Packed(pack(TEXTS), "here")
    assert dict(packed) == TEXTS
    assert len(packed) == 2
    assert packed.get("c") is None
    assert "a.json" in packed


def test_what_is_spoiled_is_named_when_it_is_asked_for() -> None:
    packed = Packed(pack(TEXTS)[:-9], "gemm.json.gz")
    with pytest.raises(ContentError, match="cut off") as raised:
        packed["a.json"]
    assert raised.value.where == "gemm.json.gz"
    assert member_name("gemm") == "gemm.json.gz"
