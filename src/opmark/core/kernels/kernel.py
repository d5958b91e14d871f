"""A kernel: one kind with concrete parameters, identified by its content."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

from opmark.core.canonical import canonical_json, plain, text_id

Parameter = Union[bool, int, float, str, None, tuple["Parameter", ...]]  # noqa: UP007 (refers to itself)


def frozen(value: Any) -> Parameter:
    """`value` with lists turned into tuples, so that it can be hashed."""
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    return value  # type: ignore[no-any-return]


def _is_parameter(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_parameter, value))
    return value is None or isinstance(value, str) or (isinstance(value, int | float) and abs(value) < math.inf)


@dataclass(frozen=True)
class Kernel:
    """`kind` names a file of `opmark.kinds`; `parameters` are sorted by name.

    Everything that changes the computation is a parameter, the element type included, so that (kind, parameters) is
    enough to build the kernel again on any machine.
    """

    kind: str
    parameters: tuple[tuple[str, Parameter], ...]

    @classmethod
    def of(cls, kind: str, parameters: Mapping[str, Any]) -> "Kernel":
        """The kernel of `kind` with these parameters, in any order."""
        return cls(kind, tuple(sorted((name, frozen(value)) for name, value in parameters.items())))

    @property
    def params(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(self.parameters)

    # Kernels are looked up hundreds of thousands of times, and hashing nested shapes takes microseconds.
    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.parameters))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> "tuple[type[Kernel], tuple[str, tuple[tuple[str, Parameter], ...]]]":
        # a hash of strings means nothing to another process
        return Kernel, (self.kind, self.parameters)

    def content(self) -> dict[str, Any]:
        """The kernel as JSON: its kind, and its parameters by name."""
        return {"kind": self.kind, "parameters": plain(self.params)}

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        """Decode what `content` encodes."""
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(cls._decode)

    @classmethod
    def _decode(cls, content: Any) -> "Kernel":
        if isinstance(content, Kernel):
            return content
        if not isinstance(content, Mapping) or content.keys() != {"kind", "parameters"}:
            raise ValueError("expected a kernel with its kind and parameters")
        if not isinstance(content["kind"], str) or not isinstance(content["parameters"], Mapping):
            raise ValueError("kind must be a text and parameters a mapping")
        wrong = next((name for name, value in content["parameters"].items() if not _is_parameter(value)), None)
        if wrong is not None:
            raise ValueError(f"parameters.{wrong}: expected a finite number, a text, or a list of them")
        return cls.of(content["kind"], content["parameters"])

    @cached_property
    def key(self) -> str:
        """The kernel's identity: 16 hex digits of the hash of its canonical JSON."""
        return key_of(self.kind, canonical_json(self.params))

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{name}={value}' for name, value in self.parameters)})"


def key_of(kind: str, parameters: str) -> str:
    """The key of the kernel of `kind` whose parameters have this canonical JSON."""
    return text_id(f"[{canonical_json(kind)},{parameters}]")
