"""Every field of a stored problem has a shipped instance that uses it, or an issue that will."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from opmark.core.hardware.cluster import Cluster, Device
from opmark.core.hardware.link import Link
from opmark.leaderboards.problem.fields import CostOrigin, ReferenceCosts, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

ROOT = Path(__file__).resolve().parents[2]
# The boards on real costs will use these: synchronisation of replicas, splits, slowdown between units that share a
# device, requests, dispatch times and blocking copies of edge devices, own copies of cores. `profile` is that of
# imported problems, `semantics` a version number. A field leaves the list with its first shipped instance, or it leaves
# the problem.
WAITING = {
    "Problem": {
        "arrivals",
        "interference",
        "profile",
        "semantics",
        "synchronisation",
    },
    "Unit": {"splits"},
    "Tensor": {"home"},
    "Cluster": {"routes"},
    "Device": {"slots", "dispatch_ns", "blocking_copy", "own_copies"},
}


@cache
def problems() -> list[dict[str, Any]]:
    """Every shipped problem as it is stored."""
    paths = sorted((ROOT / "leaderboards").glob("*/*/*.json*"))
    return [
        json.loads(gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes())
        for path in paths
        if path.parent.name in {"problems", "validation"}
    ]


def items(kind: str) -> Iterator[dict[str, Any]]:
    """Every stored object of one type."""
    for problem in problems():
        cluster = problem["cluster"]
        parts = {
            "Problem": [problem],
            "Unit": problem["units"],
            "Tensor": problem["tensors"],
            "CostOrigin": [problem.get("provenance") or {}],
            "ReferenceCosts": [problem.get("reference") or {}],
            "Cluster": [cluster],
            "Device": cluster["devices"],
            "Link": cluster["links"],
        }
        yield from parts[kind]


@pytest.mark.parametrize("kind", [Problem, Unit, Tensor, CostOrigin, ReferenceCosts, Cluster, Device, Link])
def test_a_shipped_instance_uses_every_field(kind: type) -> None:
    usual = {}
    for field in fields(kind):
        usual[field.name] = field.default if field.default is not MISSING else None
    used = set()
    for item in items(kind.__name__):
        used |= {name for name, value in item.items() if value not in (usual.get(name), None, {}, [])}
    assert set(usual) - used == WAITING.get(kind.__name__, set())
