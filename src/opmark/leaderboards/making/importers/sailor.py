"""Make a problem from a training plan in Sailor's format: the model's layers, the plan's GPUs, the links between them.

Strati et al., "Sailor: Automating Distributed Training over Dynamic, Heterogeneous, and Geo-distributed Clusters", SOSP
2025 (MIT licence). The plan's own placement is left out: to find one is the problem. Costs are the imported layers and
bandwidths of `leaderboards/layers/sailor`.
"""

from collections.abc import Sequence
from pathlib import Path

from opmark.core.errors import UsageError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.reading import read_json
from opmark.core.shipped import shipped_content
from opmark.leaderboards.making.importer import ImportOptions, ProblemImporter
from opmark.leaderboards.plans.bandwidths import Bandwidths
from opmark.leaderboards.plans.layer_problem import (
    OPTIMIZER_STATE,
    layer_tensors,
    layer_units,
    layer_weights,
    link_points,
)
from opmark.leaderboards.plans.layer_times import LayerProfiles, LayerTime, TrainedModel
from opmark.leaderboards.plans.replay import load_replayer
from opmark.leaderboards.plans.training_plan import StageReplica, TrainingPlan, load_plan
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import CostOrigin
from opmark.leaderboards.problem.problem import Problem

# Replicas share a micro-batch in this many equal parts.
_PART = 2


class SailorPlan(ProblemImporter):
    """A layer is a forward, a backward and an update unit; a device is a tensor-parallel group."""

    summary = "a training plan in Sailor's JSON: its model's layers on its GPUs, as a training step in micro-batches"

    def read(self, path: Path, options: ImportOptions) -> Problem:
        """Objectives: max-load (samples in steady state) or latency (one step of all micro-batches)."""
        objectives = {"max-load": "throughput", "latency": "latency"}
        if options.objective not in objectives:
            raise UsageError(f"this format's objectives are max-load and latency, not {options.objective!r}")
        if options.devices is not None or options.bandwidth_bytes_per_s is not None:
            raise UsageError("the plan itself states devices and links", hint="leave out --devices and --bandwidth")
        plan = load_plan(path)
        published = shipped_content().leaderboards / "layers" / "sailor"
        replayer = load_replayer(published / "profiles", published / "networks", published)
        groups = [replica for row in plan.replicas for replica in row]
        where = f"{path}: pipeline_list.0.layers_per_stage"
        model = replayer.profiles.model_of(plan.model, plan.layers, sorted({one.gpu for one in groups}), where)
        kinds = {_kind(one): one for one in groups}
        times = {kind: _times(replayer.profiles, model, plan, one) for kind, one in kinds.items()}
        return checked(
            Problem(
                name=f"{model.name.lower()}-{path.parent.name}-{path.stem.lower()}",
                cluster=_cluster(path.stem, groups, replayer.bandwidths, published),
                units=layer_units(model, times),
                tensors=layer_tensors(model, plan.sequences),
                weights=layer_weights(model),
                objective=objectives[options.objective],
                unit="s",
                memory_mode="stash",
                provenance=CostOrigin(model=model.name, family="sailor"),
                contiguous=options.contiguous,
                replication=True,
                optimizer_state=OPTIMIZER_STATE,
                micro_batches=plan.micro_batches * plan.chains,
            ),
            str(path),
        )


def _kind(replica: StageReplica) -> str:
    return f"{replica.gpu}x{replica.tensor_parallel}"


def _times(
    profiles: LayerProfiles, model: TrainedModel, plan: TrainingPlan, replica: StageReplica
) -> list[tuple[LayerTime, ...]]:
    """The layers at the plan's micro-batch, and at half of it."""
    halves = [plan.sequences // _PART] if plan.sequences % _PART == 0 else []
    sizes = [plan.sequences, *halves]
    return [profiles.layer_times(model, replica.gpu, size, replica.tensor_parallel) for size in sizes]


def _cluster(name: str, groups: Sequence[StageReplica], bandwidths: Bandwidths, published: Path) -> Cluster:
    facts = read_json(published / "devices.json")
    names = [f"{_kind(one).lower()}-{number}" for number, one in enumerate(groups)]
    devices = tuple(
        Device(
            name=names[number],
            type=_kind(one),
            memory_bytes=facts[one.gpu]["memory_bytes"] * one.tensor_parallel,
            price_per_hour=facts[one.gpu]["price_per_hour"] * one.tensor_parallel,
            provenance="imported",
        )
        for number, one in enumerate(groups)
    )
    links = []
    for source, sender in enumerate(groups):
        for target, receiver in enumerate(groups):
            if source != target:
                ends = [(one.zone, one.gpu, one.tensor_parallel) for one in (sender, receiver)]
                rate = bandwidths.between(*ends)
                points, beyond = link_points(rate)
                links.append(
                    Link(
                        source=names[source],
                        destination=names[target],
                        latency_ns=points[0][1],
                        bandwidth_bytes_per_s=beyond,
                        port=f"{names[source]}.out",
                        points=points,
                    )
                )
    return Cluster(name=name.lower(), devices=devices, links=tuple(links))


IMPORTER = SailorPlan()
