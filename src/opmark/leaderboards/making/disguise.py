"""The same problem under other names, in another order, and a little dearer or cheaper here and there.

An algorithm that knows instances by heart, by their names or by the order of their units, does not know these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from opmark.core.cluster import Cluster
from opmark.leaderboards.problem.problem import Problem, Provenance, Tensor, Unit

# Costs of one kind of unit on one type of device change together, by up to this share.
RESCALED_BY = 0.1
_Scale = dict[tuple[str, str], float]


def disguise(problem: Problem, name: str, generator: np.random.Generator, *, rescale: float = RESCALED_BY) -> Problem:
    """`problem` relabelled and permuted, called `name`; with `rescale` 0 it costs the same as before."""
    units = _labels("u", (unit.name for unit in problem.units), generator)
    tensors = _labels("t", (tensor.name for tensor in problem.tensors), generator)
    weights = _labels("w", problem.weights, generator)
    classes = _labels("c", (unit.colocation for unit in problem.units if unit.colocation), generator)
    groups = _labels("g", (unit.shape_group for unit in problem.units if unit.shape_group), generator)
    devices = _labels("d", (device.name for device in problem.cluster.devices), generator)
    types = _labels("x", (device.type for device in problem.cluster.devices), generator)
    types |= {name: name for unit in problem.units for name in unit.exec_ns if name not in types}
    # Interference tables speak of kinds; without one a kind is only a hint to the reader.
    kinds = problem.interference != {}
    scale: _Scale = {}

    def factor(kind: str, device_type: str) -> float:
        drawn = scale.get((kind, device_type))
        if drawn is None:
            drawn = scale[kind, device_type] = 1 + rescale * (2 * generator.random() - 1)
        return drawn

    def unit_of(unit: Unit) -> Unit:
        return replace(
            unit,
            name=units[unit.name],
            exec_ns={types[key]: _times(ns, factor(unit.kind, key)) for key, ns in unit.exec_ns.items()},
            split_ns={
                types[key]: tuple(_times(ns, factor(unit.kind, key)) for ns in row)
                for key, row in unit.split_ns.items()
            },
            interval={types[key]: value for key, value in unit.interval.items()},
            weights=tuple(weights[name] for name in unit.weights),
            colocation=classes.get(unit.colocation, ""),
            shape_group=groups.get(unit.shape_group, ""),
            kind=unit.kind if kinds else "",
        )

    def tensor_of(tensor: Tensor) -> Tensor:
        return replace(
            tensor,
            name=tensors[tensor.name],
            producer=units.get(tensor.producer, ""),
            consumers=tuple(sorted(units[name] for name in tensor.consumers)),
            home=devices.get(tensor.home, ""),
            boundary_ns={types.get(key, key): value for key, value in tensor.boundary_ns.items()},
        )

    return replace(
        problem,
        name=name,
        cluster=_cluster(problem, devices, types),
        units=tuple(sorted(map(unit_of, problem.units), key=lambda unit: unit.name)),
        tensors=tuple(sorted(map(tensor_of, problem.tensors), key=lambda tensor: tensor.name)),
        weights={
            weights[key]: size for key, size in sorted(problem.weights.items(), key=lambda item: weights[item[0]])
        },
        interference={types.get(key, key): table for key, table in problem.interference.items()},
        arrivals=tuple(
            replace(stream, units=tuple(sorted(units[name] for name in stream.units)), source="")
            for stream in problem.arrivals
        ),
        provenance=Provenance(),
        reference=None,
    ).checked(name)


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
    """A new name for every old one; sorted new names are in no order the old ones knew."""
    known = list(dict.fromkeys(names))
    width = len(str(len(known)))
    numbers = generator.permutation(len(known)).tolist()
    return {name: f"{prefix}{number:0{width}d}" for name, number in zip(known, numbers, strict=True)}


def _times(ns: float, factor: float) -> float:
    return ns if factor == 1 else ns * factor
