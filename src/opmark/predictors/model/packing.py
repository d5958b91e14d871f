"""The compressed files of a bundle, one per kind: the same texts give the same bytes."""

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property

from opmark.core.errors import ContentError
from opmark.core.reading import parse_json
from opmark.predictors.model.manifest import AGAIN

SUFFIX = ".json.gz"
# A kind of ten thousand rows takes 2 MB; a file a hundred times as large is no predictor.
MOST_BYTES = 256 * 2**20
_GZIP = 16 + zlib.MAX_WBITS


def member_name(kind: str) -> str:
    """Name the file of a kind's learner."""
    return f"{kind}{SUFFIX}"


def pack(texts: Mapping[str, str]) -> bytes:
    """Compress a JSON object of texts by name, without a time stamp or file name."""
    content = json.dumps(dict(texts), sort_keys=True, ensure_ascii=False).encode()
    stream = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=9, mtime=0) as packed:
        packed.write(content)
    return stream.getvalue()


def unpack(content: bytes, where: str) -> dict[str, str]:
    """Read the texts of `pack`.

    Raises `ContentError` naming `where` for content that is not compressed, cut off, followed by more, larger than
    256 MiB, or no JSON object of texts.
    """
    stream = zlib.decompressobj(_GZIP)
    try:
        unpacked = stream.decompress(content, MOST_BYTES + 1)
    except zlib.error as error:
        raise ContentError("not a compressed member of a bundle", where=where, hint=AGAIN) from error
    if len(unpacked) > MOST_BYTES:
        raise ContentError(f"unpacks to more than {MOST_BYTES >> 20} MiB", where=where, hint=AGAIN)
    if not stream.eof:
        raise ContentError("cut off", where=where, hint=AGAIN)
    if stream.unused_data:
        raise ContentError("goes on after its end", where=where, hint=AGAIN)
    try:
        texts = parse_json(unpacked, where)
    except ContentError as error:
        raise ContentError(f"unpacks to no JSON: {error.message}", where=where, hint=AGAIN) from error
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ContentError("unpacks to no JSON object of texts", where=where, hint=AGAIN)
    return texts


class Packed(Mapping[str, str]):
    """The texts of a kind, unpacked on first use, which raises `ContentError` as `unpack` does."""

    def __init__(self, content: bytes, where: str) -> None:
        self._content = content
        self.where = where

    @cached_property
    def _texts(self) -> dict[str, str]:
        return unpack(self._content, self.where)

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
