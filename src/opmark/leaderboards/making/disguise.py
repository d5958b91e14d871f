"""Disguise a problem: new names, another order, and slightly rescaled costs.

An algorithm that recognises instances by names or by the order of their units does not recognise a disguised one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import CostOrigin, Tensor, Unit, UnitSplit
from opmark.leaderboards.problem.problem import Problem

# Costs of one kind of unit on one device type change together, by up to this share.
RESCALED_BY = 0.1


def disguise(problem: Problem, name: str, generator: np.random.Generator, *, rescale: float = RESCALED_BY) -> Problem:
    """A relabelled and permuted copy of `problem`, called `name`; with `rescale` 0 its costs are unchanged."""
    mask = _Mask.of(problem, generator, rescale)
    new = mask.weights
    return checked(
        replace(
            problem,
            name=name,
            cluster=_cluster(problem, mask.devices, mask.types),
            units=tuple(sorted(map(mask.unit, problem.units), key=lambda unit: unit.name)),
            tensors=tuple(sorted(map(mask.tensor, problem.tensors), key=lambda tensor: tensor.name)),
            weights={new[key]: size for key, size in sorted(problem.weights.items(), key=lambda item: new[item[0]])},
            interference={mask.types.get(key, key): table for key, table in problem.interference.items()},
            arrivals=tuple(
                replace(stream, units=tuple(sorted(mask.units[name] for name in stream.units)), source="")
                for stream in problem.arrivals
            ),
            # the new costs are at most this much larger, so that a goal that could be met still can be
            limits=problem.limits.loosened(1 + rescale),
            provenance=CostOrigin(),
            reference=None,
        ),
        name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mask:
    """New names for everything in a problem; cost factors are drawn when they are first needed."""

    units: dict[str, str]
    tensors: dict[str, str]
    weights: dict[str, str]
    classes: dict[str, str]
    groups: dict[str, str]
    devices: dict[str, str]
    types: dict[str, str]
    # Interference tables refer to kinds. Without such a table a kind is only a hint to the reader, and is dropped.
    keeps_kinds: bool
    rescale: float
    generator: np.random.Generator
    _scale: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, generator: np.random.Generator, rescale: float) -> "_Mask":
        devices = problem.cluster.devices
        mask = cls(
            units=_labels("u", (unit.name for unit in problem.units), generator),
            tensors=_labels("t", (tensor.name for tensor in problem.tensors), generator),
            weights=_labels("w", problem.weights, generator),
            classes=_labels("c", (unit.colocation for unit in problem.units if unit.colocation), generator),
            groups=_labels("g", (unit.shape_group for unit in problem.units if unit.shape_group), generator),
            devices=_labels("d", (device.name for device in devices), generator),
            types=_labels("x", (device.type for device in devices), generator),
            keeps_kinds=problem.interference != {},
            rescale=rescale,
            generator=generator,
        )
        mask.types.update({name: name for unit in problem.units for name in unit.exec_ns if name not in mask.types})
        return mask

    def unit(self, unit: Unit) -> Unit:
        """The disguised unit."""
        return replace(
            unit,
            name=self.units[unit.name],
            exec_ns={self.types[key]: _times(ns, self._factor(unit.kind, key)) for key, ns in unit.exec_ns.items()},
            split_ns={
                self.types[key]: tuple(_times(ns, self._factor(unit.kind, key)) for ns in row)
                for key, row in unit.split_ns.items()
            },
            splits=tuple(self._split(unit.kind, split) for split in unit.splits),
            interval={self.types[key]: value for key, value in unit.interval.items()},
            weights=tuple(self.weights[name] for name in unit.weights),
            colocation=self.classes.get(unit.colocation, ""),
            shape_group=self.groups.get(unit.shape_group, ""),
            kind=unit.kind if self.keeps_kinds else "",
        )

    def _split(self, kind: str, split: UnitSplit) -> UnitSplit:
        def scaled(table: Mapping[str, int | float]) -> dict[str, int | float]:
            return {self.types[key]: _times(ns, self._factor(kind, key)) for key, ns in table.items()}

        return replace(split, exec_ns=scaled(split.exec_ns), join_ns=scaled(split.join_ns), cut_ns=scaled(split.cut_ns))

    def tensor(self, tensor: Tensor) -> Tensor:
        """The disguised tensor."""
        return replace(
            tensor,
            name=self.tensors[tensor.name],
            producer=self.units.get(tensor.producer, ""),
            consumers=tuple(sorted(self.units[name] for name in tensor.consumers)),
            home=self.devices.get(tensor.home, ""),
            boundary_ns={self.types.get(key, key): value for key, value in tensor.boundary_ns.items()},
        )

    def _factor(self, kind: str, device_type: str) -> float:
        drawn = self._scale.get((kind, device_type))
        if drawn is None:
            drawn = self._scale[kind, device_type] = 1 + self.rescale * (2 * self.generator.random() - 1)
        return drawn


def _cluster(problem: Problem, devices: Mapping[str, str], types: Mapping[str, str]) -> Cluster:
    cluster = problem.cluster
    ports = {link.port: f"p{number}" for number, link in enumerate(cluster.links) if link.port}
    return Cluster(
        name="hidden",
        devices=tuple(
            sorted(
                (replace(item, name=devices[item.name], type=types[item.type], target="") for item in cluster.devices),
                key=lambda item: item.name,
            )
        ),
        links=tuple(
            replace(
                link,
                source=devices[link.source],
                destination=devices[link.destination],
                port=ports.get(link.port, ""),
            )
            for link in cluster.links
        ),
        host=devices[problem.host],
        routes=tuple(tuple(devices[name] for name in route) for route in cluster.routes),
    )


def _labels(prefix: str, names: Iterable[str], generator: np.random.Generator) -> dict[str, str]:
    """A new name for each distinct old one; sorting the new names gives a random order."""
    known = list(dict.fromkeys(names))
    width = len(str(len(known)))
    numbers = generator.permutation(len(known)).tolist()
    return {name: f"{prefix}{number:0{width}d}" for name, number in zip(known, numbers, strict=True)}


def _times(ns: float, factor: float) -> float:
    return ns if factor == 1 else ns * factor
