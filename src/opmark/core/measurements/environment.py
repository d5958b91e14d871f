"""The facts recorded about a machine during a measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from opmark.core.canonical import content_id
from opmark.core.slug import Slug

Fact = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A device slug with two sets of facts.

    Measurements may be merged only if their `checked` facts agree; `noted` facts inform the reader.
    """

    device: Slug
    checked: Mapping[str, Fact]
    noted: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Identity of the device and the checked facts."""
        return content_id([self.device, self.checked])

    def differences(self, other: "Environment") -> dict[str, tuple[Fact, Fact]]:
        """The checked facts that differ: name → (this value, the other value)."""
        names = sorted({*self.checked, *other.checked})
        pairs = {name: (self.checked.get(name), other.checked.get(name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
