"""A branchy network over two targets of this machine: which placement algorithm wins?"""

from collections.abc import Mapping
from dataclasses import dataclass

from opmark.bench.links import CoreLink, measure_core_link
from opmark.core.cluster import Cluster, Device, Link
from opmark.core.workspace import Workspace
from opmark.leaderboards.pictures.timeline import Timeline
from opmark.leaderboards.placer import PLACERS
from opmark.leaderboards.problem import Problem, save_problem
from opmark.leaderboards.standings import Standings, score_placers
from opmark.leaderboards.timeline import timeline_of
from opmark.leaderboards.units import make_problem
from opmark.predictors.bundle import Bundle
from opmark.predictors.cost_model import BYTES_MOVED, CostModel

NETWORK = "inception-small"
BUDGET_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Contest:
    """The problem and how every placer did on it."""

    problem: Problem
    standings: Standings

    def cost_ns(self, placer: str) -> int | None:
        """The simulated latency of a placer's answer; None where it had no valid one."""
        found = self.standings.evaluations.get((placer, self.problem.name))
        return None if found is None else found.cost

    def timeline(self, placer: str) -> Timeline | None:
        """The schedule of a placer's answer; None where it had no valid one."""
        found = self.standings.evaluations.get((placer, self.problem.name))
        return None if found is None else timeline_of(self.problem, found)


def hold_contest(workspace: Workspace, bundles: Mapping[str, Bundle], *, network: str = NETWORK) -> Contest:
    """Make the problem from predicted costs and a measured link, let every placer try it, and store it."""
    from opmark.models.resolve import graph_of

    graphs = {target: graph_of(network, target, cache=workspace.cache) for target in bundles}
    costs = {target: CostModel(bundle, missing=BYTES_MOVED) for target, bundle in bundles.items()}
    cluster = two_cores(tuple(bundles), measure_core_link())
    problem = make_problem(
        f"{network}-two-cores",
        graphs,
        cluster,
        costs,
        model=network,
        bundles={target: bundle.manifest.id for target, bundle in bundles.items()},
    )
    folder = workspace.leaderboards / "quickstart"
    save_problem(problem, folder / "problems" / f"{problem.name}.json")
    standings = score_placers([problem], PLACERS.names(), budget_s=BUDGET_S, track="quickstart")
    return Contest(problem=problem, standings=standings)


def two_cores(targets: tuple[str, ...], link: CoreLink) -> Cluster:
    """One core per target, joined by what was measured between cores; each may use an equal share of the memory."""
    import psutil

    share = psutil.virtual_memory().total // len(targets)
    devices = tuple(
        Device(name=f"core{index}-{target}", type=target, target=target, memory_bytes=share)
        for index, target in enumerate(targets)
    )
    links = tuple(
        Link(
            source=source.name,
            destination=destination.name,
            latency_ns=link.wake_up_ns,
            bandwidth_bytes_per_s=link.bandwidth_bytes_per_s,
            points=link.points,
        )
        for source in devices
        for destination in devices
        if source is not destination
    )
    return Cluster(name="two-cores", devices=devices, links=links, host=devices[0].name)
