"""Tell what a kernel's own work does to the readings beside it from what the machine does (decision 0066).

Work that reads and writes more than the caches hold takes the lines of the memory sentinel out of them. Its readings
are slow after every call, however calm the machine is. Other work of the same length does not show that, but the work
itself does, in other looks: its fastest readings are those of calm moments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from opmark.core.measurements.looks import STATES, Look

K = TypeVar("K")

# This share of the readings beside calm work is faster than the calm one, as of those beside all work.
_CALM_SHARE = 0.1
# What counts against the square of the processes: a single one may have met no calm moment, but hardly three.
_DOUBT = 0.5
_MEMORY = STATES.index("memory")
# Work that lengthens readings by this much, in logarithms, does not find its tensors in the caches.
_BEYOND_CACHES = 0.2


def beside_own_work(
    looks: Mapping[K, Sequence[Look]], groups: Mapping[K, str]
) -> tuple[dict[K, list[Look]], dict[K, str]]:
    """The looks, with the state of memory relative to calm moments of the same work, and the groups of such work.

    Kernels that work beyond the caches are a group beside the others of theirs: shared memory differs by more between
    processes.
    """
    own = {key: _own_work(found) for key, found in looks.items() if found}
    told = {key: [_relative(look, own[key]) for look in looks[key]] for key in own}
    return told, {
        key: f"{groups[key]}, beyond caches" if work > _BEYOND_CACHES else groups[key] for key, work in own.items()
    }


def _own_work(looks: Sequence[Look]) -> float:
    """By how much this work lengthens readings of memory more than other work of its length does, in logarithms."""
    states = np.concatenate([look.states[:, _MEMORY] for look in looks])
    processes = len({look.process for look in looks})
    return float(np.quantile(states, _CALM_SHARE)) * processes**2 / (processes**2 + _DOUBT)


def _relative(look: Look, own: float) -> Look:
    states = look.states.copy()
    states[:, _MEMORY] -= own
    return replace(look, state=states)
