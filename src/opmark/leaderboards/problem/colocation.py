"""Which units must share a device: named classes, and in training everything that touches an updated weight."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opmark.leaderboards.problem.problem import Problem


def class_names(problem: "Problem") -> list[str]:
    """The class of each unit, "" for none; joined classes are called after their first unit's.

    Units that name a weight which an update unit names (its forward, backward and update) belong together.
    """
    updated = {name for unit in problem.units if unit.phase == "update" for name in unit.weights}
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    first: dict[str, str] = {}
    for unit in problem.units:
        keys = [f"class {unit.colocation}"] if unit.colocation else []
        keys += [f"weight {name}" for name in unit.weights if name in updated]
        for key in keys:
            parent.setdefault(key, key)
            parent[root(key)] = root(keys[0])
        if keys:
            first[unit.name] = keys[0]
    shown: dict[str, str] = {}
    found = []
    for unit in problem.units:
        key = root(first[unit.name]) if unit.name in first else ""
        found.append(shown.setdefault(key, first[unit.name].partition(" ")[2]) if key else "")
    return found
