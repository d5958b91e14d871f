"""From a suite to its trials: which kernels and networks on which targets, each with a key of its own."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from opmark.bench.clock.machine import block_width, device_slug
from opmark.bench.suite.drawing import Drawing
from opmark.bench.suite.judging import judging_kernels
from opmark.bench.suite.suite import NetworkSpec, Suite, specs
from opmark.bench.worker.backend import Backend, backend_of, target_named
from opmark.core.canonical import content_id
from opmark.core.errors import NothingSelectedError, UnavailableError, UsageError
from opmark.core.graph import Graph, Node
from opmark.core.kernel import Kernel
from opmark.core.records import KernelTrial, NetworkTrial
from opmark.core.target import Target, parse_target_name
from opmark.core.work import Work
from opmark.kinds import KINDS, work_of
from opmark.models.resolve import graph_of, onnx_file
from opmark.models.source import source_of
from opmark.models.zoo import family_of

# The device of targets that are only looked at.
_NO_DEVICE = "elsewhere"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Trials in the order they are worth measuring; `models` says what to load for a network trial.

    `shares` is each kind's share of the prior's time, by target; `judging` are the trials of hidden networks' kernels.
    `absent` says of targets that cannot be measured here why: their trials have other keys where they can be.
    """

    suite: Suite
    targets: tuple[Target, ...]
    kernels: tuple[KernelTrial, ...]
    networks: tuple[NetworkTrial, ...]
    models: Mapping[str, NetworkSpec]
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    judging: frozenset[str] = frozenset()
    absent: Mapping[str, str] = field(default_factory=dict)

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


def plan(suite: Suite, *, shard: tuple[int, int] = (0, 1), cache: Path | None = None, elsewhere: bool = False) -> Plan:
    """The trials of `suite` that belong to `shard` (index, count); shards are disjoint and together complete.

    `cache` keeps captured graphs between runs. With `elsewhere` the plan is to be looked at only, and targets may be
    `absent` here. Raises `UnavailableError` where a target cannot be measured here and `NothingSelectedError` where
    there is nothing to do.
    """
    if not suite.only:
        return _planned(suite, shard, cache, elsewhere=elsewhere)
    whole = plan_once(replace(suite, only=()), shard, cache)
    chosen = frozenset(suite.only)
    networks = tuple(trial for trial in whole.networks if trial.trial in chosen)
    kernels = tuple(trial for trial in whole.kernels if trial.trial in chosen)
    if not kernels and not networks:
        raise NothingSelectedError(f"suite {suite.name!r} plans none of the trials it is narrowed to")
    return replace(whole, suite=suite, kernels=kernels, networks=networks)


@lru_cache(maxsize=1)
def plan_once(suite: Suite, shard: tuple[int, int], cache: Path | None) -> Plan:
    """`plan`, kept: a run in rounds narrows one plan again and again."""
    return _planned(suite, shard, cache)


def _planned(suite: Suite, shard: tuple[int, int], cache: Path | None, *, elsewhere: bool = False) -> Plan:
    absent = _absent(suite) if elsewhere else {}
    pairs = [
        _imagined(name) if name in absent else _available(suite, index) for index, name in enumerate(suite.targets)
    ]
    devices = sorted({target.device for _, target in pairs} - {_NO_DEVICE})
    if len(devices) > 1:
        raise UsageError(
            f"suite {suite.name!r} has targets on {' and on '.join(devices)}",
            hint="a run is about one device: give each a suite of its own",
        )
    kernels: list[KernelTrial] = []
    networks: list[NetworkTrial] = []
    models: dict[str, NetworkSpec] = {}
    shares: dict[str, Mapping[str, float]] = {}
    judging: set[str] = set()
    for backend, target in pairs:
        planner = _Planner(suite, backend, target, cache, is_absent=target.name in absent)
        for trial, spec in planner.networks():
            networks.append(trial)
            models[trial.trial] = spec
        kernels += planner.kernels()
        shares[target.name] = planner.shares()
        judging |= planner.judging_trials()
    index, count = shard
    kernels = [trial for trial in _spread(kernels, suite) if int(trial.trial, 16) % count == index]
    networks = [trial for trial in networks if int(trial.trial, 16) % count == index]
    if not kernels and not networks:
        raise NothingSelectedError(f"suite {suite.name!r} selects nothing to measure")
    return Plan(
        suite=suite,
        targets=tuple(target for _, target in pairs),
        kernels=tuple(kernels),
        networks=tuple(networks),
        models={trial.trial: models[trial.trial] for trial in networks},
        shares=shares,
        judging=frozenset(judging & {trial.trial for trial in kernels}),
        absent=absent,
    )


def _absent(suite: Suite) -> dict[str, str]:
    """Targets whose runtime or device is not here, and why."""
    reasons = {name: backend_of(name).unavailable() for name in suite.targets}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _imagined(target_name: str) -> tuple[Backend, Target]:
    """A target of that name on a machine nobody knows."""
    backend = backend_of(target_name)
    runtime, threads = parse_target_name(target_name)
    provider = runtime.removeprefix(backend.name).removeprefix("-")
    return backend, Target(device=_NO_DEVICE, backend=backend.name, provider=provider, threads=threads)


def _available(suite: Suite, index: int) -> tuple[Backend, Target]:
    target_name = suite.targets[index]
    backend = backend_of(target_name)
    reason = backend.unavailable()
    if reason is not None:
        raise UnavailableError(f"cannot measure on {target_name}: {reason}")
    try:
        return target_named(target_name, device_slug())
    except UsageError as error:
        where = f"suite {suite.name!r}: targets.{index}"
        raise UsageError(error.message, where=where, hint=error.hint) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Captured:
    """What a plan needs of a network's graph: its identity, its batch, and its nodes without their wiring."""

    graph_id: str
    batch: int
    nodes: Graph


class _Planner:
    """The trials of one suite on one target."""

    def __init__(
        self, suite: Suite, backend: Backend, target: Target, cache: Path | None, *, is_absent: bool = False
    ) -> None:
        self._is_absent = is_absent
        self._suite = suite
        self._backend = backend
        self._target = target
        self._cache = cache
        self._graphs: dict[str, _Captured] = {}
        # Networks repeat their kernels, and each other's: whole graphs of a zoo would take half a gigabyte.
        self._shared: dict[tuple[Kernel, Work, bool], Node] = {}

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
                    graph_id=graph.graph_id,
                    role=role,
                    batch=graph.batch,
                    size=_size(spec),
                )
                found.append((trial, self._runnable(spec)))
        return found

    def kernels(self) -> list[KernelTrial]:
        """Kernels of every kind of the suite in every element type, none from a hidden network, and its exact ones."""
        return [
            KernelTrial(
                trial=self._trial(kernel),
                target=self._target.name,
                kernel=kernel,
                work=work_of(kernel),
            )
            for kernel in dict.fromkeys(
                map(self._backend.as_run, (*self._drawing.kernels(), *self._judging, *self._exact()))
            )
        ]

    def judging_trials(self) -> set[str]:
        """Keys of the trials of hidden networks' kernels."""
        return {self._trial(kernel) for kernel in self._judging}

    def _trial(self, kernel: Kernel) -> str:
        return content_id([self._target.id, kernel.key])

    @cached_property
    def _judging(self) -> tuple[Kernel, ...]:
        """Kernels of the hidden networks that the suite measures too, for judging only."""
        most = self._suite.judging.get(self._target.name, 0)
        hidden = [spec for spec in self._suite.networks.of("held-out") if self._runs(spec)] if most else []
        networks = [(spec.family or source_of(spec.model).family, self._graph(spec).nodes) for spec in hidden]
        return judging_kernels(networks, most)

    def _exact(self) -> Iterator[Kernel]:
        """The kernels that the suite names, where this target's language has them."""
        for one in self._suite.exact:
            kind, kernel = KINDS.load(one.kind), one.kernel
            parameters = kind.parse(kernel)
            made = kind.to_onnx(parameters) if self._backend.language == "onnx" else kind.to_aten(parameters)
            if made is not None:
                yield kernel

    def shares(self) -> dict[str, float]:
        """Each kind's share of the prior's time."""
        return self._drawing.kind_shares

    @cached_property
    def _drawing(self) -> Drawing:
        suite = self._suite
        hidden = [*suite.networks.of("held-out"), *specs(suite.exclude)]
        return Drawing(
            suite=suite,
            target=self._target.name,
            language=self._backend.language,
            block=block_width(),
            prior=[self._graph(spec).nodes for spec in specs(suite.prior.networks) if self._runs(spec)],
            excluded=frozenset(key for spec in hidden if self._runs(spec) for key in self._keys(spec)),
        )

    def _runs(self, spec: NetworkSpec) -> bool:
        """Files and variants are for the runtimes of their language, unless the suite says otherwise."""
        if spec.targets:
            return self._target.name in spec.targets
        return self._backend.name == "null" or source_of(spec.model).language == self._backend.language

    def _runnable(self, spec: NetworkSpec) -> NetworkSpec:
        """What a worker loads for `spec`: a module is exported, a file quantised here, once, for an ONNX runtime."""
        source = source_of(spec.model)
        if self._backend.language != "onnx" or self._backend.name == "null" or (source.is_onnx and not source.variant):
            return spec
        if self._is_absent:
            return spec
        path = onnx_file(spec.model, cache=self._cache, dimensions=spec.dimensions)
        return NetworkSpec(model=str(path), family=spec.family)

    def _keys(self, spec: NetworkSpec) -> set[str]:
        return {node.kernel.key for node in self._graph(spec).nodes.nodes}

    def _graph(self, spec: NetworkSpec) -> _Captured:
        key = content_id([spec.model, spec.dimensions])
        if key not in self._graphs:
            graph = graph_of(spec.model, self._target.name, cache=self._cache, dimensions=spec.dimensions)
            nodes = replace(
                graph, nodes=tuple(map(self._bare, graph.nodes)), tensors={}, weights={}, inputs=(), outputs=()
            )
            self._graphs[key] = _Captured(graph_id=graph.id, batch=_batch(graph), nodes=nodes)
        return self._graphs[key]

    def _bare(self, node: Node) -> Node:
        """One node for all that are the same kernel."""
        bare = Node(name="", kernel=node.kernel, work=node.work, inputs=(), outputs=(), free=node.free)
        return self._shared.setdefault((node.kernel, node.work, node.free), bare)


def _size(spec: NetworkSpec) -> int | None:
    """The size of a network whose size can be chosen: one of the zoo that is no file."""
    source = source_of(spec.model)
    if source.path is not None:
        return spec.dimensions.get("size")
    return spec.dimensions.get("size", family_of(source.base).sizes[source.base])


def _batch(graph: Graph) -> int:
    shapes = [graph.tensors[name].shape for name in graph.inputs if name in graph.tensors]
    return next((shape[0] for shape in shapes if shape), 1)


def _spread(kernels: Sequence[KernelTrial], suite: Suite) -> list[KernelTrial]:
    """In an order of which every beginning holds every kind and target in proportion, but `suite.first` comes first."""
    chance = random.Random(suite.seed)
    groups: dict[tuple[str, str], list[KernelTrial]] = {}
    for trial in kernels:
        groups.setdefault((trial.target, trial.kernel.kind), []).append(trial)
    placed = []
    for group in groups.values():
        chance.shuffle(group)
        later = group[0].kernel.kind not in suite.first
        placed += [(later, (index + chance.random()) / len(group), trial) for index, trial in enumerate(group)]
    return [trial for _, _, trial in sorted(placed, key=lambda item: item[:2])]
