"""Make the problem of one candidate of a recipe: its graphs, costs, memory limits and coarsened units."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from opmark.core.hardware.cluster import Cluster
from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.cluster_plan import PlannedCluster, load_plan
from opmark.leaderboards.making.coarsening import coarsened, colocated_by_weight
from opmark.leaderboards.making.device_table import DeviceTable, costs_of
from opmark.leaderboards.making.drawn_network import MARK, drawn_network, is_drawn
from opmark.leaderboards.making.plan_problem import problem_of_plan
from opmark.leaderboards.making.recipe import Candidate, Recipe
from opmark.leaderboards.making.units import TargetCosts, make_problem
from opmark.leaderboards.making.workload import serving_requests
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.single import single_device_rows
from opmark.leaderboards.simulator.simulate import simulate

# More memory than any network needs, used to measure the memory that a problem needs.
_PLENTY = 2**50
# Runtimes with kernels for a backward pass.
TRAINS = "torch"


@dataclass(slots=True, kw_only=True)
class Sources:
    """The sources of a recipe's graphs and costs; the costs of each target and the graphs of a network are loaded once.

    `missing` decides the cost of a kernel whose kind the bundle of a measured device does not know.
    """

    workspace: Workspace
    missing: str = "bytes-moved"
    _costs: dict[str, tuple[TargetCosts, str]] | None = None
    # By runtime, those of the network asked for last: GPUs of several types run one graph.
    _graphs: tuple[object, dict[str, Graph]] | None = None

    def costs(self, target: str, table: DeviceTable) -> tuple[TargetCosts, str]:
        """The cost model of a device, and a sentence that names its source. Raises as loading a bundle does."""
        known = self._costs = self._costs or {}
        if target not in known:
            known[target] = self._measured(table) if table.bundle else self._unmeasured(table)
        return known[target]

    def graph(self, model: str, table: DeviceTable, dimensions: Mapping[str, int], seed: int) -> Graph:
        """The graph of kernels that `model` runs on a device. Raises as `graph_of` does."""
        network = (model, tuple(sorted(dimensions.items())), seed)
        if self._graphs is None or self._graphs[0] != network:
            self._graphs = network, {}
        runtime = table.bundle.rpartition("/")[2] or table.runtime
        known = self._graphs[1]
        if runtime not in known:
            known[runtime] = self._graph(model, runtime, dimensions, seed)
        return known[runtime]

    def must_capture(self, model: str, table: DeviceTable, dimensions: Mapping[str, int]) -> bool:
        """True for a network of the zoo whose graph is neither cached nor shipped. Raises as `graph_of` does."""
        from opmark.models.graphs.shipped import USUAL_WIDTH, graph_path, graphs_folder
        from opmark.models.resolve import graph_origin, is_captured
        from opmark.models.source import source_of

        if is_drawn(model) or source_of(model).path is not None:
            return False
        runtime = table.bundle.rpartition("/")[2] or table.runtime
        shipped = graphs_folder()
        origin = graph_origin(model, runtime, dimensions=dimensions, block_width=USUAL_WIDTH)
        if shipped is not None and graph_path(origin, shipped).is_file():
            return False
        return not is_captured(model, runtime, cache=self.workspace.cache, dimensions=dimensions)

    def _graph(self, model: str, runtime: str, dimensions: Mapping[str, int], seed: int) -> Graph:
        from opmark.models.cuda_graph import CUDA_RUNTIME, as_on_gpu
        from opmark.models.graphs.shipped import USUAL_WIDTH
        from opmark.models.resolve import graph_of

        if is_drawn(model):
            drawn = drawn_network(model, seed)
            return as_on_gpu(drawn) if runtime.startswith(CUDA_RUNTIME) else drawn
        # the same problem on any processor
        return graph_of(model, runtime, cache=self.workspace.cache, dimensions=dimensions, block_width=USUAL_WIDTH)

    def _unmeasured(self, table: DeviceTable) -> tuple[TargetCosts, str]:
        words = f"{table.provenance}: {' '.join(table.source.split())}"
        return costs_of(table, self.workspace.leaderboards), words

    def _measured(self, table: DeviceTable) -> tuple[TargetCosts, str]:
        from opmark.predictors.model.bundle import load as load_bundle
        from opmark.predictors.model.bundle_paths import path_of
        from opmark.predictors.model.cost_model import CostModel

        bundle = load_bundle(path_of(self.workspace, table.bundle), target_name=table.bundle.rpartition("/")[2])
        said: Target = bundle.target
        words = f"{table.provenance}: {said} {bundle.manifest.content_id}"
        return CostModel(bundle, missing=self.missing, exact=True), words


def problem_of(candidate: Candidate, recipe: Recipe, sources: Sources, objective: str) -> Problem:
    """The problem of a candidate, without a reference. Raises `OpMarkError` without its graphs or predictors."""
    objective = candidate.objective or objective
    if candidate.plan:
        return checked(problem_of_plan(candidate, sources.workspace.leaderboards, objective), candidate.title)
    plan = load_plan(sources.workspace.leaderboards, candidate.cluster)
    plenty = plan.with_memory({device.name: _PLENTY for device in plan.cluster.devices})
    parts = [_network(model, candidate, recipe, sources, plenty) for model in candidate.models]
    whole = parts[0] if len(parts) == 1 else side_by_side(parts)
    whole = replace(whole, cluster=plenty.cluster)  # a network that trains knows only the devices that can
    small = coarsened(colocated_by_weight(whole), candidate.units_at_most or recipe.units_at_most)
    problem = replace(
        small,
        name=candidate.title,
        objective="latency" if candidate.arrivals else objective,
        unit="$" if objective == "cost" else recipe.unit,
        memory_mode=candidate.memory_mode or recipe.memory_mode,
        contiguous=candidate.contiguous,
        replication=candidate.replication,
        micro_batches=candidate.micro_batches,
    )
    problem = replace(problem, cluster=_tightened(problem, candidate, plan))
    if candidate.arrivals:
        networks = [f"{number}/" for number in range(len(parts))] if len(parts) > 1 else []
        problem = serving_requests(
            problem, process=candidate.arrivals, load=candidate.load, seed=recipe.seed, networks=networks
        )
    return checked(problem, candidate.title)


def side_by_side(parts: list[Problem]) -> Problem:
    """Several networks on one cluster as one problem; all names get the number of their network as a prefix."""
    units: list[Unit] = []
    tensors: list[Tensor] = []
    weights: dict[str, int] = {}
    for number, part in enumerate(parts):
        units += [
            replace(
                unit,
                name=f"{number}/{unit.name}",
                weights=tuple(f"{number}/{name}" for name in unit.weights),
                colocation=f"{number}/{unit.colocation}" if unit.colocation else "",
            )
            for unit in part.units
        ]
        tensors += [
            replace(
                tensor,
                name=f"{number}/{tensor.name}",
                producer=f"{number}/{tensor.producer}" if tensor.producer else "",
                consumers=tuple(f"{number}/{name}" for name in tensor.consumers),
            )
            for tensor in part.tensors
        ]
        weights |= {f"{number}/{name}": size for name, size in part.weights.items()}
    provenance = replace(
        parts[0].provenance,
        model="+".join(part.provenance.model for part in parts),
        family="+".join(dict.fromkeys(part.provenance.family for part in parts)),
        bundles={key: words for part in parts for key, words in part.provenance.bundles.items()},
        graphs={
            f"{number}/{key}": one for number, part in enumerate(parts) for key, one in part.provenance.graphs.items()
        },
    )
    return replace(parts[0], units=tuple(units), tensors=tuple(tensors), weights=weights, provenance=provenance)


def needed_bytes(problem: Problem) -> dict[str, int]:
    """The peak memory of each device if it runs every unit that it supports and the fastest other one the rest."""
    table = groups_of(problem)
    rows = table.spread(single_device_rows(table))
    names = [device.name for device in problem.cluster.devices]
    peaks = [simulate(problem, Placement(device=np.ascontiguousarray(row))).peak_bytes for row in rows]
    return {name: int(peak[number]) for number, (name, peak) in enumerate(zip(names, peaks, strict=True))}


def _network(model: str, candidate: Candidate, recipe: Recipe, sources: Sources, plan: PlannedCluster) -> Problem:
    graphs, costs, words = {}, {}, {}
    cluster = _able(model, plan)
    for device in cluster.devices:
        table = plan.tables[device.type]
        if device.target not in graphs:
            costs[device.target], words[device.target] = sources.costs(device.target, table)
            graphs[device.target] = sources.graph(model, table, candidate.dimensions, recipe.seed)
    return make_problem(candidate.title, graphs, cluster, costs, model=model, family=_family(model), bundles=words)


def _able(model: str, plan: PlannedCluster) -> Cluster:
    """The devices that can run a network: a training step needs torch. All of them where none can."""
    from opmark.models.source import is_training, source_of

    whole = plan.cluster
    if is_drawn(model) or not is_training(source_of(model).variant):
        return whole
    able = tuple(device for device in whole.devices if plan.tables[device.type].runtime.startswith(TRAINS))
    names = [device.name for device in able]
    if not names:
        return whole
    links = tuple(link for link in whole.links if {link.source, link.destination} <= set(names))
    return replace(whole, devices=able, links=links, host=whole.host if whole.host in names else names[0])


def _tightened(problem: Problem, candidate: Candidate, plan: PlannedCluster) -> Cluster:
    """The cluster with its own memory sizes, or with the candidate's shares of the needed bytes."""
    if not candidate.memory_share and not candidate.host_memory_share:
        return plan.cluster
    need = needed_bytes(problem)
    host = plan.cluster.host
    share = {name: candidate.host_memory_share if name == host else candidate.memory_share for name in need}
    return plan.with_memory({name: int(share[name] * size) for name, size in need.items() if share[name]}).cluster


def _family(model: str) -> str:
    if is_drawn(model):
        return model.partition(MARK)[0]
    from opmark.models.source import source_of

    return source_of(model).family
