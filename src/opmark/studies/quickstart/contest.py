"""The placement contest of a quickstart: every placer on a branchy network over two targets of this machine."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmark.bench.links.measuring import core_link
from opmark.core.canonical import plain
from opmark.core.files import write_json
from opmark.core.hardware.cluster import Cluster, Device
from opmark.core.hardware.link import LinkMeasurement, cluster_link
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.units import make_problem
from opmark.leaderboards.problem.fields import SEMANTICS
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import hard_end_s
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.standings import Standings
from opmark.leaderboards.scoring.track import Rules, load_track
from opmark.leaderboards.search.compilation import is_compiled
from opmark.leaderboards.search.placer import PLACERS, placing_names
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.gantt import GanttTimeline
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel

NETWORK = "inception-small"
TRACK = "quickstart"
# Compiling takes about so long. Of the time left, the placers get this share, and each at least so many seconds.
COMPILING_S, SHARE, LEAST_BUDGET_S = 90.0, 0.8, 0.2
# However short the time is, the first placers have so many seconds.
LEAST_CONTEST_S = 10.0
RULES = Rules(
    title="Quickstart",
    version="1.0.0",
    description="One branchy network over two cores of this machine, each with a runtime of its own.",
    objective="latency",
    semantics=SEMANTICS,
    budget_s=2.0,
)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """The problem, the standings of all placers on it, and True where they ran compiled."""

    problem: Problem
    standings: Standings
    compiled: bool = True

    def cost_ns(self, placer: str) -> int | None:
        """The simulated latency of a placer's answer; None if it gave no valid answer."""
        found = self.standings.evaluations.get((placer, self.problem.name))
        return None if found is None else found.cost

    def timeline(self, placer: str) -> GanttTimeline | None:
        """The schedule of a placer's answer; None if it gave no valid answer."""
        found = self.standings.evaluations.get((placer, self.problem.name))
        return None if found is None else timeline_of(self.problem, found)


def hold_contest(
    workspace: Workspace, bundles: Mapping[str, Bundle], *, network: str = NETWORK, left_s: float = math.inf
) -> Contest:
    """Run every placer on the problem of `network`, in the track `quickstart` of the workspace, in about `left_s`.

    The problem is made from predicted costs and a measured link; it is kept while the predictors stay the same. Where
    the search is not compiled yet and time is short, the placers run in plain Python, and those whose turn comes too
    late do not run.
    """
    end = time.monotonic() + left_s
    folder = workspace.leaderboards / TRACK
    write_json(folder / "track.yaml", {"schema": 1, **plain(RULES)})  # JSON is valid YAML
    track = load_track(workspace.leaderboards, TRACK)
    path = folder / "problems" / f"{network}-two-cores.json"
    made_by = {target: bundle.manifest.id for target, bundle in bundles.items()}
    problem = load_problem(path) if path.is_file() else None
    if problem is None or dict(problem.provenance.bundles) != made_by:
        problem = _problem(path.stem, network, bundles, workspace)
        save_problem(problem, path)
    compiled = is_compiled() or end - time.monotonic() > COMPILING_S
    names = in_turn(placing_names())
    share_s = SHARE * (end - time.monotonic() - (0.0 if is_compiled() or not compiled else COMPILING_S)) / len(names)
    assert RULES.budget_s is not None
    budget_s = round(min(RULES.budget_s, max(LEAST_BUDGET_S, share_s)), 1)
    until = max(end - hard_end_s(budget_s), time.monotonic() + LEAST_CONTEST_S)
    standings = score_track(track, names, budget_s=budget_s, compiled=compiled, until=until)
    return Contest(problem=problem, standings=standings, compiled=compiled)


def in_turn(names: Sequence[str]) -> list[str]:
    """The order of placers: baselines, OpMark's own, then published ones by their year."""

    def turn(name: str) -> tuple[bool, bool, int, str]:
        placer = PLACERS.load(name)
        return (placer.paper is not None, placer.own, placer.paper.year if placer.paper else 0, name)

    return sorted(names, key=turn)


def _problem(name: str, network: str, bundles: Mapping[str, Bundle], workspace: Workspace) -> Problem:
    from opmark.models.resolve import graph_of

    return make_problem(
        name,
        {target: graph_of(network, target, cache=workspace.cache) for target in bundles},
        two_cores(tuple(bundles), core_link()),
        {target: CostModel(bundle, missing=BYTES_MOVED) for target, bundle in bundles.items()},
        model=network,
        bundles={target: bundle.manifest.id for target, bundle in bundles.items()},
    )


def two_cores(targets: tuple[str, ...], link: LinkMeasurement) -> Cluster:
    """A cluster of one core per target with an equal share of the memory each; `link` joins them in both directions."""
    import psutil

    share = psutil.virtual_memory().total // len(targets)
    devices = tuple(
        Device(name=f"core{index}-{target}", type=target, target=target, memory_bytes=share)
        for index, target in enumerate(targets)
    )
    links = tuple(
        cluster_link(link, source=source.name, destination=destination.name)
        for source in devices
        for destination in devices
        if source is not destination
    )
    return Cluster(name="two-cores", devices=devices, links=links, host=devices[0].name)
