"""Names that become names of files and folders: letters, digits and a few signs, so that none leaves its folder."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from opmark.core.errors import ContentError

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

LONGEST = 160
# `fullmatch` and plain ranges: `$` lets a newline pass, and `\d` and `\w` let look-alikes of other scripts pass.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+@#-]{0,159}"
# Names of devices on Windows, with any suffix: nobody there could check out or unpack a folder that holds one.
_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", *(f"{name}{number}" for name in ("COM", "LPT") for number in range(1, 10))}
)
_VERSION = r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}"


@dataclass(frozen=True, slots=True)
class NameRule:
    """A pattern for the whole text, and the sentence for a text that it does not match; pydantic applies it."""

    pattern: str
    sentence: str
    empty: bool = False

    def accepts(self, text: str) -> bool:
        """True if `text` matches as a whole, and no part of it is a name that Windows keeps for a device."""
        if not text:
            return self.empty
        plain = all(part.partition(".")[0].upper() not in _DEVICES for part in text.split("/"))
        return plain and re.fullmatch(self.pattern, text) is not None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> "CoreSchema":
        """Add the rule to a text field."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Add the pattern to the JSON Schema of a file."""
        described: dict[str, Any] = handler(schema)
        return {**described, "pattern": f"^({self.pattern}{'|' if self.empty else ''})$"}

    def _checked(self, text: str) -> str:
        if not self.accepts(text):
            raise ValueError(self.sentence)
        return text


NAME = NameRule(_NAME, f"expected at most {LONGEST} letters, digits and . _ + @ # -, a letter or digit first")
VERSION = NameRule(_VERSION, "expected a version like 1.0.0")
# One type for every name that becomes part of a path, checked where a file is read.
Slug = Annotated[str, NAME]
SlugOrEmpty = Annotated[str, NameRule(_NAME, NAME.sentence, empty=True)]
# A folder and a name in it.
_PAIR = NameRule(f"{_NAME}/{_NAME}", "expected a folder and a name in it, like sailor/A100-40", empty=True)
SlugPairOrEmpty = Annotated[str, _PAIR]
Version = Annotated[str, VERSION]


def path_inside(root: Path, *names: str) -> Path:
    """The path `root/names…` for content that will be written, replaced or deleted.

    Raises `ContentError` for a name that is no slug, and for a path that links lead out of `root`.
    """
    for name in names:
        if not NAME.accepts(name):
            raise ContentError(f"{name!r} cannot name a file or folder", where=str(root), hint=NAME.sentence)
    path = root.joinpath(*names)
    if not path.resolve().is_relative_to(root.resolve()):
        raise ContentError("a link leads out of the folder", where=str(path), hint="remove the link")
    return path
