"""Make a problem from a model, a cluster file and predictor bundles."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster
from opmark.core.schema import load
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.units import make_problem
from opmark.leaderboards.problem.problem import Problem

if TYPE_CHECKING:
    from opmark.core.kernels.graph import Graph

CLUSTER_SCHEMA = 1


def load_cluster(path: Path) -> Cluster:
    """Load and check the cluster in a YAML file. Raises `ContentError` naming the file and every wrong key."""
    return load(path, Cluster, schema=CLUSTER_SCHEMA).checked(str(path))


def problem_of_model(
    model: str,
    cluster: Cluster,
    workspace: Workspace,
    *,
    name: str = "",
    bundles: Sequence[Path] = (),
    missing: str = "error",
    dimensions: Mapping[str, int] | None = None,
    where: str = "",
) -> Problem:
    """The problem of running `model` (an `.onnx` or `.pt2` file, or a zoo name) on `cluster`.

    A device's `target` is a target name or `<device>/<version>/<target>`. Its bundle is the one for that target name in
    `bundles`, else the newest of the workspace. `missing` decides the cost of a kernel without a predictor. Devices of
    several slots get the slowdown between their slots where it was measured.
    Raises `ContentError` where a bundle is missing or belongs to another target, where a kind has no predictor, or
    where a device has no target; then it names `where`, the cluster's file.
    """
    from opmark.models.resolve import graph_of
    from opmark.predictors.model.bundle import load as load_bundle
    from opmark.predictors.model.bundle_paths import path_of
    from opmark.predictors.model.cost_model import CostModel

    given = {bundle.target.name: bundle for bundle in map(load_bundle, bundles)}
    graphs, costs, sources = {}, {}, {}
    for device in cluster.devices:
        if not device.target:
            raise ContentError("missing", where=f"{where or cluster.name}: devices.{device.name}.target")
        if device.target in graphs:
            continue
        target = device.target.rpartition("/")[2]
        bundle = given.get(target) or load_bundle(path_of(workspace, device.target), target_name=target)
        costs[device.target] = CostModel(bundle, missing=missing, exact=True)
        sources[device.target] = f"{bundle.target} {bundle.manifest.content_id}"
        graphs[device.target] = graph_of(
            model,
            target,
            cache=workspace.cache,
            dimensions=dimensions,
            block_width=bundle.manifest.hardware.block_width,
        )
    title = name or f"{Path(model).stem}-{cluster.name}"
    problem = make_problem(title, graphs, cluster, costs, model=model, bundles=sources)
    origins = {target: cost.bundle.manifest.origin.device for target, cost in costs.items()}
    return with_interference(problem, graphs, origins, workspace)


def with_interference(
    problem: Problem, graphs: Mapping[str, "Graph"], origins: Mapping[str, str], workspace: Workspace
) -> Problem:
    """`problem` with the slowdown between the slots of its devices, where `opmark predictors corun` has learned one.

    `origins` names the measured device behind each target. A device of one slot runs one unit at a time.
    """
    from opmark.predictors.corun.files import find_corun

    found = {}
    for device in problem.cluster.devices:
        if device.slots > 1 and device.type not in found:
            model = find_corun(workspace, origins[device.target], device.target.rpartition("/")[2])
            if model is not None:
                kernels = [node.kernel for node in graphs[device.target].costly]
                found[device.type] = model.interference(kernels)
    return replace(problem, interference=found) if found else problem
