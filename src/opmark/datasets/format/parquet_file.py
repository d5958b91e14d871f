"""Read Parquet files of others: plain files of bounded size, with numbers and texts and lists of numbers only.

A small file can stand for any amount of memory: a column of one value repeated, a dictionary with one long text, a page
that unpacks to gigabytes. So the extent is added up from the footer, from every page's own header and from the
dictionaries, before the table is made. Page headers are those of the Parquet format, in Thrift's compact protocol.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError
from opmark.core.reading import LARGE_BYTES, read_bytes

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

# The largest published table has 0.2 million rows.
ROWS_AT_MOST = 5_000_000
VALUES_AT_MOST = 2**28
UNPACKED_BYTES_AT_MOST = 2**31
COLUMNS_AT_MOST = 1_000
GROUPS_AT_MOST = 1_000
# Limits of the lists and texts in the footer and in page headers.
_LISTS_AT_MOST, _TEXTS_AT_MOST = 100_000, 2**24
_DEPTH_AT_MOST = 20
# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


def read_parquet(path: Path) -> "pyarrow.Table":
    """The table in a Parquet file.

    Raises `ContentError` naming the file: no plain file, damaged, too large, texts that are none; and the column, where
    one stands twice or holds neither numbers, texts nor lists of numbers.
    """
    import pyarrow
    import pyarrow.parquet

    content = read_bytes(path, at_most=LARGE_BYTES)
    where = str(path)
    try:
        opened = _opened(content, ())
        _check_extent(opened.metadata, where)
        texts = _text_columns(opened.schema_arrow, where)
        unpacked = sum(_unpacked_bytes(content, opened.metadata))
        if unpacked > UNPACKED_BYTES_AT_MOST:
            raise ContentError(f"unpacks to more than {UNPACKED_BYTES_AT_MOST >> 20:,} MiB", where=where)
        table = _opened(content, texts).read(use_threads=False)
        table.validate(full=True)
        return _with_texts(table, texts, where)
    except (OSError, ValueError, KeyError, IndexError, TypeError, pyarrow.ArrowException) as error:
        raise ContentError("not a readable Parquet file", where=where) from error


def _opened(content: bytes, texts: tuple[str, ...]) -> "pyarrow.parquet.ParquetFile":
    """The file with the columns `texts` as dictionaries, which stay as small as they are stored."""
    import pyarrow
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(
        pyarrow.BufferReader(content),
        read_dictionary=list(texts),
        thrift_string_size_limit=_TEXTS_AT_MOST,
        thrift_container_size_limit=_LISTS_AT_MOST,
    )


def _check_extent(metadata: "pyarrow.parquet.FileMetaData", where: str) -> None:
    counts = (
        ("rows", metadata.num_rows, ROWS_AT_MOST),
        ("columns", metadata.num_columns, COLUMNS_AT_MOST),
        ("row groups", metadata.num_row_groups, GROUPS_AT_MOST),
    )
    for noun, count, most in counts:
        if not 0 <= count <= most:
            raise ContentError(f"{count:,} {noun}, more than {most:,}", where=where)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = [group.column(place).num_values for group in groups for place in range(group.num_columns)]
    if min(values, default=0) < 0 or sum(values) > VALUES_AT_MOST:
        raise ContentError(f"more than {VALUES_AT_MOST:,} values", where=where)
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise ContentError("its parts have another number of rows than the whole", where=where)


def _text_columns(schema: "pyarrow.Schema", where: str) -> tuple[str, ...]:
    """The names of the columns with texts. Raises `ContentError` for a column twice, or of a type that is not read."""
    texts = []
    for number, field in enumerate(schema):
        if field.name in schema.names[:number]:
            raise ContentError("the column stands twice", where=f"{where}: {field.name}")
        if is_text(field.type):
            texts.append(field.name)
        elif not (_is_single(field.type) or (is_list(field.type) and is_number(field.type.value_type))):
            raise ContentError(
                f"holds {field.type}, and only numbers, texts and lists of numbers are read",
                where=f"{where}: {field.name}",
            )
    return tuple(texts)


def is_text(kind: "pyarrow.DataType") -> bool:
    """True for a column of texts, as they are or in a dictionary."""
    from pyarrow import types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))


def is_number(kind: "pyarrow.DataType") -> bool:
    """True for a column of whole or broken numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_list(kind: "pyarrow.DataType") -> bool:
    """True for a column of lists."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind))


def is_alike(found: "pyarrow.DataType", wanted: "pyarrow.DataType") -> bool:
    """True where values keep their meaning: a text a text, a whole number whole, a list a list."""
    from pyarrow import types

    if types.is_null(found):
        return True
    if is_text(wanted):
        return is_text(found)
    if is_list(wanted):
        return is_list(found) and is_alike(found.value_type, wanted.value_type)
    return bool(types.is_integer(found)) or (is_number(found) and bool(types.is_floating(wanted)))


def _is_single(kind: "pyarrow.DataType") -> bool:
    from pyarrow import types

    return is_number(kind) or bool(types.is_boolean(kind) or types.is_null(kind))


def _with_texts(table: "pyarrow.Table", texts: tuple[str, ...], where: str) -> "pyarrow.Table":
    """The table with its texts written out. Raises `ContentError` where they take too much memory."""
    import pyarrow
    import pyarrow.compute

    room = UNPACKED_BYTES_AT_MOST // 4
    for name in texts:
        column = table.column(name)
        if not pyarrow.types.is_dictionary(column.type):
            raise ContentError(f"holds {column.type}, expected texts", where=f"{where}: {name}")
        for chunk in column.chunks:
            lengths = pyarrow.compute.binary_length(chunk.dictionary).cast(pyarrow.int64())
            room -= pyarrow.compute.sum(lengths.take(chunk.indices)).as_py() or 0
            if room < 0:
                raise ContentError("its texts take too much memory", where=f"{where}: {name}")
        table = table.set_column(table.column_names.index(name), name, column.cast(pyarrow.string()))
    return table


def _unpacked_bytes(content: bytes, metadata: "pyarrow.parquet.FileMetaData") -> Iterator[int]:
    """The size of each page after decompression, as its own header says; the footer's sums may be wrong."""
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            if not column.num_values:
                continue
            starts = (column.dictionary_page_offset, column.data_page_offset)
            at = min(start for start in starts if start)
            end = at + column.total_compressed_size
            if not 0 <= at <= end <= len(content):
                raise ValueError("a column outside the file")
            left = column.num_values
            while at < end and left > 0:
                header = _Header(content, at)
                if not 0 <= header.unpacked_bytes < 2**31 or not 0 <= header.packed_bytes <= end - header.end:
                    raise ValueError("a page outside its column")
                yield header.unpacked_bytes
                left -= header.values
                at = header.end + header.packed_bytes


class _Header:
    """The header of one page: sizes, the number of its values (0 for a dictionary), and the place behind it."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self.end = at
        self.unpacked_bytes = self.packed_bytes = -1
        self.values = 0
        self._read()

    def _read(self) -> None:
        for number, kind in self._fields():
            if number == 2 and kind in _INTEGERS:
                self.unpacked_bytes = self._integer()
            elif number == 3 and kind in _INTEGERS:
                self.packed_bytes = self._integer()
            elif number in {5, 8} and kind == _STRUCT:  # a page of data, of either version
                for inner, inner_kind in self._fields():
                    if inner == 1 and inner_kind in _INTEGERS:
                        self.values = max(0, self._integer())
                    else:
                        self._skip(inner_kind, 1)
            else:
                self._skip(kind, 0)

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; the caller reads or skips its value."""
        number = 0
        while byte := self._byte():
            step = byte >> 4
            number = number + step if step else self._integer()
            yield number, byte & 15

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEPTH_AT_MOST:
            raise ValueError("a header that nests too deep")
        if kind in {_TRUE, _FALSE}:
            return
        if kind in {_BYTE, _DOUBLE}:
            self._move(1 if kind == _BYTE else 8)
        elif kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            self._move(self._varint())
        elif kind in {_LIST, _SET}:
            byte = self._byte()
            count = byte >> 4 if byte >> 4 < 15 else self._varint()
            if count > _LISTS_AT_MOST:
                raise ValueError("a list that is too long")
            for _ in range(count):
                # In a list, a truth value takes a byte.
                self._skip(_BYTE if byte & 15 in {_TRUE, _FALSE} else byte & 15, depth + 1)
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        else:
            raise ValueError("an unknown type")

    def _integer(self) -> int:
        found = self._varint()
        return found >> 1 ^ -(found & 1)

    def _varint(self) -> int:
        found = 0
        for place in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 127) << place
            if byte < 128:
                return found
        raise ValueError("a number that is too long")

    def _byte(self) -> int:
        self.end += 1
        return self._content[self.end - 1]

    def _move(self, count: int) -> None:
        if count > len(self._content) - self.end:
            raise ValueError("beyond the end of the file")
        self.end += count
