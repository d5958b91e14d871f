"""Plan the trials of a suite: its kernels and networks on each target, each with a key."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from opmark.bench.suite.capturing import Capture, CaptureCount, PlanListener, capture_ahead, nobody
from opmark.bench.suite.kernel_set import KernelSet, judging_kernels
from opmark.bench.suite.order import in_shard, spread
from opmark.bench.suite.suite import NetworkSpec, Suite, specs
from opmark.bench.worker.backend import Backend, available_target, backend_of
from opmark.bench.worker.calls import call_in
from opmark.core.canonical import content_id
from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError, UsageError
from opmark.core.hardware.processor import block_width
from opmark.core.hardware.target import Target, parse_target_name
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.measurement import HELD_OUT, ROLES, SEALED, TRAINING
from opmark.core.measurements.records import KernelTrial, NetworkTrial, Trial, trial_key
from opmark.kinds import work_of
from opmark.models.resolve import graph_of, onnx_file
from opmark.models.source import language_obstacle, source_of
from opmark.models.zoo import family_of

# The device of targets that a plan only lists.
_NO_DEVICE = "elsewhere"
# The shortest forms of a suite that measures something.
_FORM = "write networks: {training: [mobilenet-small]}, or kernels: 200 and prior: {networks: [mobilenet-small]}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The trials of a suite in the order of their value; `models` gives the model of every network trial.

    `shares` is the share of each kind in the prior's time, by target. `judging` are the trials of hidden networks'
    kernels. `absent` gives the reason why a target cannot be measured here; its trials have other keys elsewhere.
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
    def trials(self) -> tuple[Trial, ...]:
        """All trials. Networks come first: they are few, and the kernels serve to predict them."""
        return (*self.networks, *self.kernels)


def plan(
    suite: Suite,
    *,
    shard: tuple[int, int] = (0, 1),
    cache: Path | None = None,
    elsewhere: bool = False,
    progress: PlanListener = nobody,
) -> Plan:
    """Plan the trials of `suite` in `shard` (index, count); the shards are disjoint and together complete.

    `cache` keeps captured graphs between runs. With `elsewhere`, targets may be absent here, because nothing will be
    measured. Raises `UnavailableError` if a target cannot be measured here, `NothingSelectedError` if the plan is
    empty, `UsageError` if the targets have several devices.
    """
    if not suite.only:
        return _planned(suite, shard, cache, elsewhere=elsewhere, progress=progress)
    whole = plan_once(replace(suite, only=()), shard, cache)
    chosen = frozenset(suite.only)
    networks = tuple(trial for trial in whole.networks if trial.trial in chosen)
    kernels = tuple(trial for trial in whole.kernels if trial.trial in chosen)
    if not kernels and not networks:
        raise NothingSelectedError("plans none of the selected trials", where=suite.where)
    return replace(whole, suite=suite, kernels=kernels, networks=networks)


@lru_cache(maxsize=1)
def plan_once(suite: Suite, shard: tuple[int, int], cache: Path | None) -> Plan:
    """`plan` with a cache of one plan, which a run in rounds narrows many times."""
    return _planned(suite, shard, cache)


def _planned(
    suite: Suite,
    shard: tuple[int, int],
    cache: Path | None,
    *,
    elsewhere: bool = False,
    progress: PlanListener = nobody,
) -> Plan:
    absent = _absent(suite) if elsewhere else {}
    pairs = [
        _imagined(name) if name in absent else _available(suite, index) for index, name in enumerate(suite.targets)
    ]
    devices = sorted({target.device for _, target in pairs} - {_NO_DEVICE})
    if len(devices) > 1:
        raise UsageError(
            f"has targets on {' and on '.join(devices)}",
            where=suite.where,
            hint="a run has one device: write one suite per device",
        )
    _need_known_networks(suite)
    captures = CaptureCount(progress)
    planners = [_Planner(suite, one, target, cache, captures, is_absent=target.name in absent) for one, target in pairs]
    capture_ahead([need for planner in planners for need in planner.needs()], cache, progress)
    _need_every_network(suite, planners)
    kernels: list[KernelTrial] = []
    networks: list[NetworkTrial] = []
    models: dict[str, NetworkSpec] = {}
    shares: dict[str, Mapping[str, float]] = {}
    judging: set[str] = set()
    for planner, (_, target) in zip(planners, pairs, strict=True):
        for trial, spec in planner.networks():
            networks.append(trial)
            models[trial.trial] = spec
        kernels += planner.kernels()
        shares[target.name] = planner.shares()
        judging |= planner.judging_trials()
    if not kernels and not networks:
        raise NothingSelectedError("selects nothing to measure", where=suite.where, hint=_FORM)
    kernels = in_shard(spread(kernels, suite), shard)
    networks = in_shard(networks, shard)
    if not kernels and not networks:
        part, parts = shard[0] + 1, shard[1]
        raise NothingSelectedError(f"part {part:,} of {parts:,} has nothing to measure", where=suite.where)
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


def _need_known_networks(suite: Suite) -> None:
    for name in dict.fromkeys(spec.model for spec in suite.all_networks):
        try:
            source_of(name)
        except OpMarkError as error:
            raise type(error)(str(error), where=suite.where, hint=error.hint) from error


def _need_every_network(suite: Suite, planners: "Sequence[_Planner]") -> None:
    """Raise `ContentError` for a network that contributes to no target; the hint shows the form that does."""
    places = {
        "prior.networks": specs(suite.prior.networks),
        "networks.training": suite.networks.of(TRAINING),
        "networks.held_out": suite.networks.of(HELD_OUT),
        "networks.sealed": suite.networks.of(SEALED),
    }
    for key, entries in places.items():
        for index, spec in enumerate(entries):
            if any(planner.runs(spec) for planner in planners):
                continue
            where = f"{suite.where}: {key}.{index}"
            if spec.targets:
                raise ContentError(
                    f"{spec.model!r} is for {', '.join(spec.targets)}, which the suite does not measure",
                    where=where,
                    hint=f"write - {spec.model}, or {{model: {spec.model}, targets: [{suite.targets[0]}]}}",
                )
            raise ContentError(
                f"{spec.model!r} runs on no target of the suite: {planners[0].obstacle(spec)}",
                where=where,
                hint="add a target that runs it to the suite's targets, or remove it; `opmark models list` has others",
            )


def _absent(suite: Suite) -> dict[str, str]:
    """The targets without their runtime or device on this machine, with the reasons."""
    reasons = {name: backend_of(name).unavailable() for name in suite.targets}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _imagined(target_name: str) -> tuple[Backend, Target]:
    """A target of that name on an unknown machine."""
    backend = backend_of(target_name)
    runtime, threads = parse_target_name(target_name)
    provider = runtime.removeprefix(backend.name).removeprefix("-")
    return backend, Target(device=_NO_DEVICE, backend=backend.name, provider=provider, threads=threads)


def _available(suite: Suite, index: int) -> tuple[Backend, Target]:
    try:
        return available_target(suite.targets[index])
    except UsageError as error:
        where = f"{suite.where}: targets.{index}"
        raise type(error)(error.message, where=where, hint=error.hint) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Captured:
    """The parts of a network's graph that a plan needs: identity, batch, and nodes without their edges."""

    graph_id: str
    batch: int
    nodes: Graph


class _Planner:
    """The trials of one suite on one target."""

    def __init__(
        self,
        suite: Suite,
        backend: Backend,
        target: Target,
        cache: Path | None,
        captures: CaptureCount,
        *,
        is_absent: bool = False,
    ) -> None:
        self._is_absent = is_absent
        self._suite = suite
        self._backend = backend
        self._target = target
        self._cache = cache
        self._captures = captures
        captures.total += len(self.needs())
        self._graphs: dict[str, _Captured] = {}
        self._obstacles: dict[str, str] = {}
        # Networks share many kernels: the whole graphs of a zoo would take half a gigabyte.
        self._shared: dict[tuple[Kernel, Work, bool], Node] = {}

    def needs(self) -> list[Capture]:
        """The graphs that this target needs, each once."""
        specs_by_key = {_key(spec): spec for spec in self._suite.all_networks if self._may_run(spec)}
        return [
            Capture(spec=spec, target=self._target.name, exports=self._is_exported(spec))
            for spec in specs_by_key.values()
        ]

    def networks(self) -> list[tuple[NetworkTrial, NetworkSpec]]:
        """One trial per network that this target can run."""
        found = []
        for role in ROLES:
            for spec in self._suite.networks.of(role):
                if not self.runs(spec):
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
        """The drawn kernels, the judging kernels and the exact kernels of the suite."""
        drawn = self._kernel_set  # its graphs are captured first
        self._captures.drawing(self._target.name)
        return [
            KernelTrial(
                trial=self._trial(kernel),
                target=self._target.name,
                kernel=kernel,
                work=work_of(kernel),
            )
            for kernel in dict.fromkeys(map(self._backend.as_run, (*drawn.kernels(), *self._judging, *self._exact())))
        ]

    def judging_trials(self) -> set[str]:
        """The keys of the trials of hidden networks' kernels."""
        return {self._trial(kernel) for kernel in self._judging}

    def _trial(self, kernel: Kernel) -> str:
        return trial_key(self._target, kernel)

    @cached_property
    def _judging(self) -> tuple[Kernel, ...]:
        """The kernels of hidden networks that the suite measures for judging only."""
        most = self._suite.judging.get(self._target.name, 0)
        hidden = [spec for spec in self._suite.networks.of(HELD_OUT) if self.runs(spec)] if most else []
        networks = [(spec.family or source_of(spec.model).family, self._graph(spec).nodes) for spec in hidden]
        return judging_kernels(networks, most)

    def _exact(self) -> Iterator[Kernel]:
        """The kernels that the suite names and this target's language has."""
        for one in self._suite.exact:
            if call_in(self._backend.language, one.kernel) is not None:
                yield one.kernel

    def shares(self) -> dict[str, float]:
        """The share of each kind in the prior's time."""
        return self._kernel_set.kind_shares

    @cached_property
    def _kernel_set(self) -> KernelSet:
        suite = self._suite
        hidden = [*suite.networks.of(HELD_OUT), *suite.networks.of(SEALED), *specs(suite.exclude)]
        return KernelSet(
            suite=suite,
            target=self._target.name,
            language=self._backend.language,
            block=block_width(),
            prior=[self._graph(spec).nodes for spec in specs(suite.prior.networks) if self.runs(spec)],
            excluded=frozenset(key for spec in hidden if self.runs(spec) for key in self._keys(spec)),
        )

    def runs(self, spec: NetworkSpec) -> bool:
        """Return True if the target runs `spec`: it is named, or nothing is named and the network can run there."""
        if spec.targets:
            return self._target.name in spec.targets
        return not self.obstacle(spec)

    def _may_run(self, spec: NetworkSpec) -> bool:
        """Return False for networks that need no graph here, because another language or target is theirs."""
        if spec.targets or self._backend.name == "null":
            return self._target.name in (spec.targets or (self._target.name,))
        return not language_obstacle(source_of(spec.model), self._backend.language)

    def obstacle(self, spec: NetworkSpec) -> str:
        """The reason why this target cannot run a network; empty where it can."""
        key = _key(spec)
        if key not in self._obstacles:
            self._obstacles[key] = self._found_obstacle(spec)
        return self._obstacles[key]

    def _found_obstacle(self, spec: NetworkSpec) -> str:
        source = source_of(spec.model)
        if self._backend.name == "null":
            return ""
        obstacle = language_obstacle(source, self._backend.language)
        if obstacle or source.language == self._backend.language:
            return obstacle
        try:
            self._graph(spec)  # a module that the other language must express
        except OpMarkError as error:
            return error.message
        return ""

    def _runnable(self, spec: NetworkSpec) -> NetworkSpec:
        """The spec that a worker loads. For an ONNX runtime, modules are exported and files quantised here, once."""
        if not self._is_exported(spec):
            return spec
        path = onnx_file(spec.model, cache=self._cache, dimensions=spec.dimensions)
        return NetworkSpec(model=str(path), family=spec.family)

    def _is_exported(self, spec: NetworkSpec) -> bool:
        """True where an ONNX file is made of the network, because a worker here will load it."""
        source = source_of(spec.model)
        if self._backend.language != "onnx" or self._backend.name == "null" or self._is_absent:
            return False
        return not source.is_onnx or bool(source.variant)

    def _keys(self, spec: NetworkSpec) -> set[str]:
        return {node.kernel.key for node in self._graph(spec).nodes.nodes}

    def _graph(self, spec: NetworkSpec) -> _Captured:
        key = _key(spec)
        if key not in self._graphs:
            self._captures.capturing(spec.model, self._target.name)
            graph = graph_of(spec.model, self._target.name, cache=self._cache, dimensions=spec.dimensions)
            nodes = replace(
                graph, nodes=tuple(map(self._bare, graph.nodes)), tensors={}, weights={}, inputs=(), outputs=()
            )
            self._graphs[key] = _Captured(graph_id=graph.id, batch=_batch(graph), nodes=nodes)
        return self._graphs[key]

    def _bare(self, node: Node) -> Node:
        """One shared node for all nodes with the same kernel."""
        bare = Node(name="", kernel=node.kernel, work=node.work, inputs=(), outputs=(), free=node.free)
        return self._shared.setdefault((node.kernel, node.work, node.free), bare)


def _key(spec: NetworkSpec) -> str:
    return content_id([spec.model, spec.dimensions])


def _size(spec: NetworkSpec) -> int | None:
    """The size of a network; None for a file without that dimension."""
    source = source_of(spec.model)
    if source.path is not None:
        return spec.dimensions.get("size")
    return spec.dimensions.get("size", family_of(source.base).sizes[source.base])


def _batch(graph: Graph) -> int:
    shapes = [graph.tensors[name].shape for name in graph.inputs if name in graph.tensors]
    return next((shape[0] for shape in shapes if shape), 1)
