"""Read YAML and JSON files as frozen dataclasses; one error names every wrong key (pydantic validates)."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from opmark.core.checksums import sealed_parts
from opmark.core.errors import ContentError
from opmark.core.reading import PACKED, USUAL_BYTES, may_hold_large_numbers, read_bytes, read_json
from opmark.core.yaml_file import read_yaml


class ListsFaults(Protocol):
    """Content that lists its own faults."""

    def problems(self) -> list[str]:
        """List the faults, one sentence each."""
        ...


T = TypeVar("T")
C = TypeVar("C", bound=ListsFaults)
# Files that OpMark wrote begin like this.
_FIRST_ENTRY = re.compile(rb'\{\s*"schema":\s*(\d{1,9}),')
# Whole numbers take at most 64 bits, with or without a sign.
_SINGLE: dict[str, dict[str, Any]] = {
    "int": {"ge": -(2**63), "lt": 2**64},
    **{name: {} for name in ("float", "bool", "str")},
}


def load(
    path: Path,
    kind: type[T],
    *,
    schema: int,
    oldest: int | None = None,
    sealed: bool = False,
    at_most: int = USUAL_BYTES,
) -> T:
    """Read `path` (YAML by its suffix, else JSON) as the dataclass `kind`; the file starts with `schema: N`.

    Files from the schema `oldest` on can be read too. A field `schema` of the dataclass gets the number. `sealed` and
    `at_most` are those of `reading.read_json`. Raises `ContentError` with the file and every wrong key.
    """
    named = "schema" in getattr(kind, "__dataclass_fields__", ())
    yaml = path.suffix in {".yaml", ".yml"}
    if sealed and not yaml and not named:
        found = _at_once(path, kind, schema, at_most)
        if found is not None:
            return found
    content = read_yaml(path) if yaml else read_json(path, sealed=sealed, at_most=at_most)
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    check_schema(content, schema, path, oldest=oldest)
    fields = {key: value for key, value in content.items() if named or key != "schema"}
    return convert(fields, kind, where=str(path))


def load_checked(path: Path, kind: type[C], *, schema: int) -> C:
    """Read `path` as `load` does. Raises `ContentError` also where the content lists faults, with all of them."""
    found = load(path, kind, schema=schema)
    if faults := found.problems():
        raise ContentError("; ".join(faults), where=str(path))
    return found


def convert(content: Any, kind: type[T], *, where: str) -> T:
    """Convert `content` (plain JSON types) to a `kind`; unknown keys are errors. Raises `ContentError`."""
    result: T = _converted(_validator(kind).validate_python, content, where)  # type: ignore[arg-type]
    return result


def convert_json(text: bytes, kind: type[T], *, where: str) -> T:
    """As `convert` from JSON text in which no key stands twice, in half the time."""
    result: T = _converted(_validator(kind).validate_json, text, where)  # type: ignore[arg-type]
    return result


def _converted(validate: Callable[[Any], T], content: Any, where: str) -> T:
    import pydantic

    try:
        return validate(content)
    except pydantic.ValidationError as error:
        raise ContentError("; ".join(_sentences(error.errors())), where=where, hint=_unknown_key_hint(error)) from None


def sealed_text(path: Path, *, schema: int, at_most: int = USUAL_BYTES) -> bytes | None:
    """The JSON text of a file that OpMark wrote, without its schema number and checksum.

    None for a file that is compressed, has another schema, or does not fit its checksum.
    """
    if path.suffix == PACKED:
        return None
    parts = sealed_parts(read_bytes(path, at_most=at_most))
    first = _FIRST_ENTRY.match(parts[0]) if parts else None
    if parts is None or first is None or int(first[1]) != schema or may_hold_large_numbers(parts[0].tobytes()):
        return None
    return b"".join((b"{", parts[0][first.end() :], parts[1]))  # files may be large: one copy


def _at_once(path: Path, kind: type[T], schema: int, at_most: int) -> T | None:
    """A sealed file of this schema as a `kind`; None where anything is unusual, which `load` then explains.

    Parsing and converting in one step takes half as long as `read_json` and `convert`.
    """
    import pydantic

    text = sealed_text(path, schema=schema, at_most=at_most)
    try:
        result: T | None = None if text is None else _validator(kind).validate_json(text)  # type: ignore[arg-type]
    except pydantic.ValidationError:
        return None
    return result


def json_schema(kind: type[Any], *, schema: int) -> dict[str, Any]:
    """The JSON Schema of a file that holds a `kind`, including its `schema` number."""
    described: dict[str, Any] = _adapter(kind).json_schema()  # type: ignore[arg-type]
    described["properties"] = {"schema": None, **described["properties"]} | {"schema": {"const": schema}}
    described["required"] = ["schema", *described.get("required", [])]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}


def check_schema(content: dict[str, Any], schema: int, path: Path, *, oldest: int | None = None) -> None:
    """Raise `ContentError` unless the file has this schema number, or one from `oldest` on.

    Old, new and missing numbers give different errors.
    """
    found = content.get("schema")
    where = f"{path}: schema"
    if found is None:
        raise ContentError("missing", where=where, hint=f"start the file with schema: {schema}")
    if not isinstance(found, int) or isinstance(found, bool):
        raise ContentError(f"expected a whole number, not {found!r}", where=where)
    if found > schema:
        raise ContentError(f"version {found} is newer than {schema}", where=where, hint="upgrade OpMark")
    if found < (schema if oldest is None else oldest):
        raise ContentError(f"version {found} is older than {schema}", where=where, hint="make the file again")


@cache
def _adapter(kind: type[Any]) -> Any:
    import pydantic

    @pydantic.with_config(pydantic.ConfigDict(extra="forbid", allow_inf_nan=False))
    class _Strict:
        """Carries only the configuration."""

    if not hasattr(kind, "__pydantic_config__"):
        kind.__pydantic_config__ = _Strict.__pydantic_config__  # type: ignore[attr-defined]
    return pydantic.TypeAdapter(kind)


@cache
def _validator(kind: type[Any]) -> Any:
    """The validator of `kind`: a number is a number, a text a text; lists become tuples and mappings dataclasses.

    Strict pydantic would refuse the latter two, so the types of single values alone are strict.
    """
    from pydantic_core import SchemaValidator

    return SchemaValidator(_strict(_adapter(kind).core_schema))  # type: ignore[arg-type]


def _strict(schema: Any) -> Any:
    if isinstance(schema, dict):
        # A key of JSON is always a text, also where it stands for a number.
        found = {key: value if key == "keys_schema" else _strict(value) for key, value in schema.items()}
        limits = _SINGLE.get(found["type"]) if isinstance(found.get("type"), str) else None
        return found if limits is None else {"strict": True, **limits, **found}
    if isinstance(schema, list | tuple):
        return type(schema)(map(_strict, schema))
    return schema


def _sentences(items: list[Any]) -> list[str]:
    """One sentence per wrong key. A key of type `int | float` fails twice, under the names of both types."""
    places = {item["loc"] for item in items}
    found = []
    for item in items:
        *key, last = item["loc"] or ("",)
        if last == "int" and (*key, "float") in places:
            continue
        both = last == "float" and (*key, "int") in places
        found.append(_sentence({**item, "loc": tuple(key)} if both else item))
    return found


def _sentence(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{path}: unknown key"
    # pydantic names the Python class that a mapping becomes.
    mapping = item["type"] in {"dataclass_type", "dict_type"}
    message: str = "Input should be a mapping" if mapping else item["msg"].removeprefix("Value error, ")
    if not path:
        return message
    shown = item["input"] if isinstance(item["input"], (str, int, float, bool)) else type(item["input"]).__name__
    missing = item["type"] in {"missing", "missing_argument", "missing_keyword_only_argument"}
    return f"{path}: missing" if missing else f"{path}: {message[0].lower()}{message[1:]}, not {shown!r}"


def _unknown_key_hint(error: Any) -> str | None:
    unknown = [item for item in error.errors() if item["type"] in {"extra_forbidden", "unexpected_keyword_argument"}]
    return "remove the unknown key or check its spelling" if unknown else None
