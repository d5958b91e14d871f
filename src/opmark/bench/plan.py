"""From a suite to its trials: which kernels and networks on which targets, each with a key of its own."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opmark.bench.backend import Backend, backend_of, target_named
from opmark.bench.environment import block_width, device_slug
from opmark.bench.sampling import Sampler, shares
from opmark.bench.suite import NetworkSpec, Suite, specs
from opmark.core.canonical import content_id
from opmark.core.errors import NothingSelectedError, UnavailableError, UsageError
from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.core.kind import Setting
from opmark.core.records import KernelTrial, NetworkTrial
from opmark.core.target import Target
from opmark.kinds import KINDS, work_of
from opmark.models.resolve import graph_of, onnx_file
from opmark.models.source import source_of


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Trials in the order they are worth measuring; `models` says what to load for a network trial."""

    suite: Suite
    targets: tuple[Target, ...]
    kernels: tuple[KernelTrial, ...]
    networks: tuple[NetworkTrial, ...]
    models: Mapping[str, NetworkSpec]

    @property
    def trials(self) -> tuple[KernelTrial | NetworkTrial, ...]:
        """Networks first: they are few, and what the kernels are for."""
        return (*self.networks, *self.kernels)


def parse_shard(text: str) -> tuple[int, int]:
    """(0, 4) for `1/4`. Raises `UsageError`."""
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise UsageError(f"{text!r} is not a shard", hint="write it like 1/4: the first of four")
    return int(index) - 1, int(count)


def plan(suite: Suite, *, shard: tuple[int, int] = (0, 1), cache: Path | None = None) -> Plan:
    """The trials of `suite` that belong to `shard` (index, count); shards are disjoint and together complete.

    `cache` keeps captured graphs between runs. Raises `UnavailableError` where a target cannot be measured here
    and `NothingSelectedError` where there is nothing to do.
    """
    pairs = [_available(name) for name in suite.targets]
    kernels: list[KernelTrial] = []
    networks: list[NetworkTrial] = []
    models: dict[str, NetworkSpec] = {}
    for backend, target in pairs:
        planner = _Planner(suite, backend, target, cache)
        for trial, spec in planner.networks():
            networks.append(trial)
            models[trial.trial] = spec
        kernels += planner.kernels()
    index, count = shard
    kernels = [trial for trial in _spread(kernels, suite.seed) if int(trial.trial, 16) % count == index]
    networks = [trial for trial in networks if int(trial.trial, 16) % count == index]
    if not kernels and not networks:
        raise NothingSelectedError(f"suite {suite.name!r} selects nothing to measure")
    return Plan(
        suite=suite,
        targets=tuple(target for _, target in pairs),
        kernels=tuple(kernels),
        networks=tuple(networks),
        models={trial.trial: models[trial.trial] for trial in networks},
    )


def _available(target_name: str) -> tuple[Backend, Target]:
    backend = backend_of(target_name)
    reason = backend.unavailable()
    if reason is not None:
        raise UnavailableError(f"cannot measure on {target_name}: {reason}")
    return target_named(target_name, device_slug())


class _Planner:
    """The trials of one suite on one target."""

    def __init__(self, suite: Suite, backend: Backend, target: Target, cache: Path | None) -> None:
        self._suite = suite
        self._backend = backend
        self._target = target
        self._cache = cache
        self._graphs: dict[str, Graph] = {}

    def networks(self) -> list[tuple[NetworkTrial, NetworkSpec]]:
        """One trial for every network that this target can run."""
        found = []
        for role in ("training", "held-out"):
            for spec in self._suite.networks.of(role):
                if not self._runs(spec):
                    continue
                graph = self._graph(spec)
                source = source_of(spec.model)
                trial = NetworkTrial(
                    trial=content_id([self._target.id, "network", spec.model, spec.dimensions]),
                    target=self._target.name,
                    network=source.name,
                    family=spec.family or source.family,
                    graph_id=graph.id,
                    role=role,
                    batch=_batch(graph),
                )
                found.append((trial, self._runnable(spec)))
        return found

    def kernels(self) -> list[KernelTrial]:
        """Kernels of every kind of the suite in every element type, none of them from a hidden network."""
        suite = self._suite
        hidden = [*suite.networks.of("held-out"), *specs(suite.exclude)]
        excluded = frozenset(key for spec in hidden if self._runs(spec) for key in self._keys(spec))
        real = [
            node.kernel
            for spec in specs(suite.prior.networks)
            if self._runs(spec)
            for node in self._graph(spec).costly
            if node.kernel.key not in excluded
        ]
        found: dict[str, Kernel] = {}
        counts = self._counts(real)
        for dtype in suite.dtypes:
            setting = Setting(language=self._backend.language, dtype=dtype, block=block_width())
            for name, count in counts.items():
                spec = suite.kinds.get(name)
                sampler = Sampler(
                    kind=KINDS.load(name),
                    setting=setting,
                    seed=f"{suite.seed}/{self._backend.language}/{dtype}/{name}",
                    real=[kernel for kernel in real if kernel.params.get("dtype", dtype) == dtype],
                    excluded=excluded,
                    axes={axis: content.axis for axis, content in spec.space.items()} if spec else {},
                )
                found.update({kernel.key: kernel for kernel in sampler.draw(count, suite.prior.share)})
        return [
            KernelTrial(
                trial=content_id([self._target.id, kernel.key]),
                target=self._target.name,
                kernel=kernel,
                work=work_of(kernel),
            )
            for kernel in found.values()
        ]

    def _counts(self, real: Sequence[Kernel]) -> dict[str, int]:
        suite = self._suite
        named = suite.kinds or {}
        meant = [name for name in (named or KINDS.names()) if self._backend.language in KINDS.load(name).languages]
        fixed = {name: spec.count for name, spec in named.items() if name in meant and spec.count is not None}
        open_kinds = [name for name in meant if name not in fixed]
        counts = shares(real, open_kinds, suite.kernels, suite.at_least) if open_kinds else {}
        return {**fixed, **counts}

    def _runs(self, spec: NetworkSpec) -> bool:
        """ONNX files are for ONNX runtimes and modules for torch, unless the suite says otherwise."""
        if spec.targets:
            return self._target.name in spec.targets
        return self._backend.name == "null" or source_of(spec.model).is_onnx == (self._backend.language == "onnx")

    def _runnable(self, spec: NetworkSpec) -> NetworkSpec:
        """What a worker loads for `spec`: a module is exported here, once, for a runtime that wants a file."""
        if self._backend.language != "onnx" or self._backend.name == "null" or source_of(spec.model).is_onnx:
            return spec
        path = onnx_file(spec.model, cache=self._cache, dimensions=spec.dimensions)
        return NetworkSpec(model=str(path), family=spec.family)

    def _keys(self, spec: NetworkSpec) -> set[str]:
        return {node.kernel.key for node in self._graph(spec).nodes}

    def _graph(self, spec: NetworkSpec) -> Graph:
        key = content_id([spec.model, spec.dimensions])
        if key not in self._graphs:
            self._graphs[key] = graph_of(spec.model, self._target.name, cache=self._cache, dimensions=spec.dimensions)
        return self._graphs[key]


def _batch(graph: Graph) -> int:
    shapes = [graph.tensors[name].shape for name in graph.inputs if name in graph.tensors]
    return next((shape[0] for shape in shapes if shape), 1)


def _spread(kernels: Sequence[KernelTrial], seed: int) -> list[KernelTrial]:
    """In an order of which every beginning holds every kind and target in proportion."""
    chance = random.Random(seed)
    groups: dict[tuple[str, str], list[KernelTrial]] = {}
    for trial in kernels:
        groups.setdefault((trial.target, trial.kernel.kind), []).append(trial)
    placed = []
    for group in groups.values():
        chance.shuffle(group)
        placed += [((index + chance.random()) / len(group), trial) for index, trial in enumerate(group)]
    return [trial for _, trial in sorted(placed, key=lambda item: item[0])]
