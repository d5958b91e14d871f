"""Whether two environments may stand in one release."""

from collections.abc import Iterable

from opmark.core.environment import Environment, Fact


def conflicts(first: Environment, other: Environment) -> dict[str, tuple[Fact, Fact]]:
    """The checked facts on which the two disagree.

    A fact of a runtime (`onnxruntime.version`) is only recorded where that runtime was measured: one side may lack it.
    """
    return {
        name: pair
        for name, pair in first.differences(other).items()
        if "." not in name or (name in first.checked and name in other.checked)
    }


def common_facts(environments: Iterable[Environment]) -> dict[str, Fact]:
    """Every checked fact of environments that do not conflict."""
    return {name: value for environment in environments for name, value in sorted(environment.checked.items())}
