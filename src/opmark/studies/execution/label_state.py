"""The state of this machine beside executions, relative to the one at which predictors tell their costs.

The release behind a predictor holds the readings of the sentinels at the state of its labels: the calm state, and in
older releases the usual one.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from opmark.bench.clock.machine import device_slug
from opmark.core.errors import OpMarkError
from opmark.core.measurements.calm_readings import calm_after
from opmark.core.measurements.labelling import LASTING_EFFECT
from opmark.core.measurements.looks import STATES
from opmark.core.workspace import Workspace
from opmark.datasets.format.manifest import read
from opmark.leaderboards.problem.problem import Problem
from opmark.predictors.model.bundle_paths import path_of
from opmark.predictors.model.manifest import read_manifest

# The readings of one device's sentinels in ns, by name.
Readings = Mapping[str, float]
MachineState = tuple[float, ...]


def label_readings(problem: Problem, workspace: Workspace) -> tuple[Readings, ...]:
    """The readings at the state of the labels, for each device of `problem`; empty for costs of another machine.

    They are empty too where the release is not at hand: then nothing is known about the state of the labels.
    """
    found: dict[str, Readings] = {}
    for target in {device.target for device in problem.cluster.devices}:
        found[target] = {}
        with contextlib.suppress(OpMarkError):
            found[target] = _told_at(target, workspace)
    return tuple(found[device.target] for device in problem.cluster.devices)


def _told_at(target: str, workspace: Workspace) -> Readings:
    name = target.rpartition("/")[2]
    origin = read_manifest(path_of(workspace, target)).origin
    if origin.device != device_slug():
        return {}
    sources = read(workspace.datasets / origin.device / origin.version).sources
    readings: dict[str, list[float]] = {}
    for source in sources:
        for key, ns in source.sentinels_ns.items():
            of, _, sentinel = key.rpartition("/")
            if of == name:
                readings.setdefault(sentinel, []).append(ns)
    return {sentinel: median(ns) for sentinel, ns in readings.items()}


def state_of(
    before: Sequence[Readings], after: Sequence[Readings], told_at: Sequence[Readings], busy_ns: Sequence[float]
) -> MachineState:
    """The state between two readings of every device: logarithms over `told_at`, one per sentinel.

    `told_at` are the readings after work as long as `busy_ns`. A device counts by the time that it is busy. The state
    is zero where that of the labels is unknown.
    """
    total = [0.0] * len(STATES)
    weight = 0.0
    for first, second, reference, busy in zip(before, after, told_at, busy_ns, strict=False):
        if all(name in reading for name in STATES for reading in (first, second, reference)):
            weight += busy
            for place, name in enumerate(STATES):
                told_at_ns = calm_after(reference, name, busy)
                total[place] += busy * fmean(math.log(one[name] / told_at_ns) for one in (first, second))
    return tuple(value / weight for value in total) if weight > 0 else tuple(0.0 for _ in STATES)


def label_factor(state: MachineState) -> float:
    """The factor that tells a time in this state at that of the labels, by the effect that most work has."""
    return math.exp(-sum(effect * value for effect, value in zip(LASTING_EFFECT, state, strict=True)))
