"""What travels between the run and its workers, as JSON types and back."""

import math
from collections.abc import Mapping
from typing import Any

from opmark.bench.clock.protocol import Protocol, Tier
from opmark.core.canonical import plain
from opmark.core.target import Target


def target_from(content: Mapping[str, Any]) -> Target:
    """The target written by `plain`."""
    return Target(**{**content, "options": tuple(content["options"])})


def protocol_from(content: Mapping[str, Any]) -> Protocol:
    """The protocol written by `protocol_content`."""
    tiers = tuple(Tier(**{**tier, "below_ns": tier["below_ns"] or math.inf}) for tier in content["tiers"])
    return Protocol(**{**content, "tiers": tiers})


def protocol_content(protocol: Protocol) -> dict[str, Any]:
    """`protocol` as JSON types; JSON has no infinity, so the last tier's limit is null."""
    content: dict[str, Any] = plain(protocol)
    for tier in content["tiers"]:
        if math.isinf(tier["below_ns"]):
            tier["below_ns"] = None
    return content
