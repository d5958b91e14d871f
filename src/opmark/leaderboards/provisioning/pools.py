"""Pools: problems whose devices are a catalogue's offers, made from the recipe of a track (`pools.yaml`).

A goal is stated as a factor of the fastest single device: of its time on all units, or of its price. The problem itself
holds the goal in ns and in money, and can be scored without the catalogue.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.core.errors import OpMarkError, SubmissionError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.registry import unknown_name
from opmark.core.schema import load_checked
from opmark.core.slug import NAME, Slug, SlugOrEmpty
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources, needed_bytes
from opmark.leaderboards.making.recipe import SECONDS_AT_MOST, SPLITS
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.catalogue import SAME_ZONE, Catalogue, load_catalogue
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.provisioning.layers_job import any_job
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.selection import KEPT, LEFT, MADE, WAITS, Step
from opmark.leaderboards.scoring.track import Track, load_track

SCHEMA = 1
FILE = "pools.yaml"
STORAGE = "storage"
_PLENTY = 2**50
# The goals by name, and the objective of a problem with that goal.
GOALS = {
    "deadline": "cost",
    "demand": "rent",
    "budget": "latency",
    "budget-per-sample": "throughput",
    "front": "hypervolume",
    "front-per-sample": "hypervolume",
}
# Goals that ask for many samples, one after another.
PIPELINED = frozenset({"demand", "budget-per-sample", "front-per-sample"})
# The time of a front's reference point, as a multiple of the slowest single device's time.
REFERENCE_TIME = 1.25
# The placer that shows whether a goal can be met.
JUDGE = "opmark"
FACTOR_AT_MOST, HIDDEN_AT_MOST = 1000, 10_000
# All devices of a pool stand in its problem, with a link between any two.
DEVICES_AT_MOST = 64
BATCH_AT_MOST, POOL_UNITS_AT_MOST = 2**20, 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCandidate:
    """One pool: a network in batches, a catalogue, how many devices of each type can be had, and a goal.

    `factor` is that of the goal: a deadline as a multiple of the fastest single device's time, a demand as a multiple
    of its samples per second, a budget or the reference price of a front as a multiple of its price. `memory_share`
    limits every device to that share of the memory that the whole network needs.
    """

    model: str
    catalogue: Slug
    available: Mapping[str, int]
    goal: str
    factor: float
    batch: int = 0
    split: str = "public"
    memory_share: float = 0.0
    units_at_most: int = 0
    name: SlugOrEmpty = ""

    @property
    def title(self) -> str:
        """The name of the problem."""
        if self.name:
            return self.name
        model = self.model.replace("@", "-").replace("#", "-").replace(".", "-")
        batch = f"-b{self.batch}" if self.batch else ""
        share = f"-m{round(100 * self.memory_share)}" if self.memory_share else ""
        return f"{model}{batch}-{self.catalogue}-{self.goal}-{round(100 * self.factor)}{share}"

    @property
    def job_key(self) -> tuple[object, ...]:
        """Everything that decides the job: candidates with equal keys share it."""
        return self.model, self.batch, self.catalogue, self.goal in PIPELINED, self.units_at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenPools:
    """The rules for drawing `count` hidden pools.

    `models` maps zoo networks to their possible batches (none: the network's own), and families of drawn networks to
    nothing. `available` maps catalogues to the most devices of each type, `factors` goals to the range of their factor.
    `tight` is the share of pools with a memory share between the two `memory_shares`.
    """

    count: int
    models: Mapping[str, tuple[int, ...]]
    available: Mapping[Slug, Mapping[str, int]]
    factors: Mapping[str, tuple[float, float]]
    tight: float = 0.0
    memory_shares: tuple[float, float] = (0.4, 0.7)

    def problems(self) -> list[str]:
        """List the faults of this part, one sentence each."""
        found = []
        if not 1 <= self.count <= HIDDEN_AT_MOST or not (self.models and self.available and self.factors):
            found.append(
                f"hidden: count must be from 1 to {HIDDEN_AT_MOST:,}, and models, available and factors not empty"
            )
        for name, most in self.available.items():
            if len(most) < 2 or min(most.values()) < 1 or sum(most.values()) > DEVICES_AT_MOST:
                found.append(
                    f"hidden.available.{name}: two types are needed, and at least one device of each, "
                    f"at most {DEVICES_AT_MOST} together"
                )
        for goal, (low, high) in self.factors.items():
            if goal not in GOALS:
                found.append(f"hidden.factors: one of {', '.join(GOALS)}, not {goal!r}")
            if not 0 < low <= high <= FACTOR_AT_MOST:
                found.append(f"hidden.factors.{goal}: two positive factors, the smaller first, up to {FACTOR_AT_MOST}")
        if not 0 <= self.tight <= 1:
            found.append(f"hidden.tight: must be from 0 to 1, not {self.tight:g}")
        if not 0 < self.memory_shares[0] <= self.memory_shares[1] <= FACTOR_AT_MOST:
            found.append(
                f"hidden.memory_shares: must be two positive shares, the smaller first, at most {FACTOR_AT_MOST}"
            )
        for model, batches in self.models.items():
            if any(not 1 <= batch <= BATCH_AT_MOST for batch in batches):
                found.append(f"hidden.models.{model}: batches must be from 1 to {BATCH_AT_MOST:,}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRecipe:
    """The content of `pools.yaml`; a candidate is kept where the judge meets its goal within `judge_s` seconds."""

    candidates: tuple[PoolCandidate, ...]
    units_at_most: int = 60
    judge_s: float = 2.0
    seed: int = 0
    hidden: HiddenPools | None = None

    def problems(self) -> list[str]:
        """List the faults of this recipe, one sentence each."""
        names = [one.title for one in self.candidates]
        found = [f"candidates: {name!r} appears twice" for name in sorted({n for n in names if names.count(n) > 1})]
        if not 0 < self.judge_s <= SECONDS_AT_MOST:
            found.append(f"judge_s: must be positive and at most {SECONDS_AT_MOST:,}, not {self.judge_s:g}")
        if not 1 <= self.units_at_most <= POOL_UNITS_AT_MOST:
            found.append(f"units_at_most: must be from 1 to {POOL_UNITS_AT_MOST:,}, not {self.units_at_most}")
        found += self.hidden.problems() if self.hidden else []
        for name, one in zip(names, self.candidates, strict=True):
            key = f"candidates.{name}"
            if not NAME.accepts(name):
                found.append(f"{key}: cannot name a problem's file: {NAME.sentence}")
            if one.goal not in GOALS:
                found.append(f"{key}.goal: one of {', '.join(GOALS)}, not {one.goal!r}")
            if not 0 < one.factor <= FACTOR_AT_MOST:
                found.append(f"{key}.factor: must be positive and at most {FACTOR_AT_MOST}, not {one.factor:g}")
            if one.split not in SPLITS:
                found.append(f"{key}.split: one of {', '.join(SPLITS)}, not {one.split!r}")
            devices = one.available.values()
            if not devices or min(devices) < 1 or sum(devices) > DEVICES_AT_MOST:
                found.append(
                    f"{key}.available: at least one type is needed, and at least one device of each, "
                    f"at most {DEVICES_AT_MOST} together"
                )
            for field, value, most in (
                ("batch", one.batch, BATCH_AT_MOST),
                ("units_at_most", one.units_at_most, POOL_UNITS_AT_MOST),
                ("memory_share", one.memory_share, FACTOR_AT_MOST),
            ):
                if not 0 <= value <= most:
                    found.append(f"{key}.{field}: must be from 0 to {most:,}, not {value:g}")
        return found


def has_pools(track: Track) -> bool:
    """True where a track's problems are pools."""
    return (track.folder / FILE).is_file()


def load_pool_recipe(folder: Path) -> PoolRecipe:
    """Load and check the recipe of pools in a track's folder. Raises `ContentError` naming the file and every key."""
    return load_checked(folder / FILE, PoolRecipe, schema=SCHEMA)


def pool_names(folder: Path) -> frozenset[str]:
    """The names of all candidates of a track's recipe of pools. Raises as `load_pool_recipe` does."""
    return frozenset(one.title for one in load_pool_recipe(folder).candidates)


def make_pools(workspace: Workspace, name: str, *, again: bool = False) -> Iterator[Step]:
    """Make the pools of the track `name` one by one; yields the result of each.

    A pool that did not change keeps its file, unless `again`. One whose goal the judge cannot meet is left out, one
    whose predictors are missing waits. Raises as `load_pool_recipe` and `load_catalogue` do.
    """
    track = load_track(workspace.leaderboards, name)
    recipe = load_pool_recipe(track.folder)
    sources = Sources(workspace=workspace)
    jobs: dict[tuple[object, ...], Job] = {}
    for candidate in recipe.candidates:
        yield _one(candidate, recipe, sources, jobs, track, again=again)


def _one(
    candidate: PoolCandidate,
    recipe: PoolRecipe,
    sources: Sources,
    jobs: dict[tuple[object, ...], Job],
    track: Track,
    *,
    again: bool,
) -> Step:
    path = track.path_of(candidate.title, candidate.split)
    try:
        key = candidate.job_key
        if key not in jobs:
            jobs[key] = job_of_candidate(candidate, recipe, sources)
        problem = pool_of(candidate, jobs[key])
    except OpMarkError as error:
        return Step(name=candidate.title, status=KEPT if path.is_file() else WAITS, reason=error.message)
    units = len(problem.units)
    if path.is_file() and not again and load_problem(path).id == problem.id:
        return Step(name=candidate.title, status=KEPT, units=units)
    try:
        attempt(problem, JUDGE, budget_s=recipe.judge_s, seed=recipe.seed)
    except SubmissionError as error:
        path.unlink(missing_ok=True)
        return Step(name=candidate.title, status=LEFT, units=units, reason=error.message)
    save_problem(problem, path)
    return Step(name=candidate.title, status=MADE, units=units)


def job_of_candidate(candidate: PoolCandidate, recipe: PoolRecipe, sources: Sources) -> Job:
    """The network of a candidate on the types of its catalogue. Raises as `any_job` and `load_catalogue` do."""
    catalogue = load_catalogue(sources.workspace.leaderboards, candidate.catalogue)
    return any_job(
        candidate.model,
        catalogue,
        sources,
        dimensions={"batch": candidate.batch} if candidate.batch else {},
        in_a_pipeline=candidate.goal in PIPELINED,
        units_at_most=candidate.units_at_most or recipe.units_at_most,
    )


def pool_of(candidate: PoolCandidate, job: Job) -> Problem:
    """The pool of a candidate. Raises `UnknownNameError` for a type that its catalogue lacks."""
    for kind in candidate.available:
        if kind not in job.catalogue.offers:
            raise unknown_name("device type", kind, job.catalogue.types)
    catalogue = job.catalogue.only([kind for kind in job.catalogue.types if kind in candidate.available])
    objective = GOALS[candidate.goal]
    problem = replace(
        job.whole,
        name=candidate.title,
        cluster=_cluster(catalogue, candidate.available, job.whole),
        objective=objective,
        unit="$" if objective in {"cost", "rent"} else "us",
        replication=candidate.goal in PIPELINED,
        limits=_limits(candidate, catalogue, job),
    )
    if candidate.memory_share:
        problem = replace(problem, cluster=_tightened(problem, candidate.memory_share))
    return checked(problem, candidate.title)


def _cluster(catalogue: Catalogue, available: Mapping[str, int], whole: Problem) -> Cluster:
    """All devices that can be had, and a storage for inputs and outputs, one link of the zone away from each."""
    cluster = replace(
        catalogue.cluster(Fleet.of({kind: available[kind] for kind in catalogue.types})), name=catalogue.name
    )
    if all(tensor.producer and not tensor.output for tensor in whole.tensors):
        return replace(cluster, host=cluster.devices[0].name)
    link = catalogue.links[SAME_ZONE]
    ports = {one.source: one.port for one in cluster.links if one.port}
    storage = Device(name=STORAGE, type=STORAGE, memory_bytes=_PLENTY, provenance=cluster.devices[0].provenance)
    ways = [(STORAGE, device.name) for device in cluster.devices] + [
        (device.name, STORAGE) for device in cluster.devices
    ]
    links = tuple(
        Link(
            source=source,
            destination=destination,
            latency_ns=link.latency_ns,
            bandwidth_bytes_per_s=link.bandwidth_bytes_per_s,
            port=ports.get(source, ""),
        )
        for source, destination in ways
    )
    return replace(cluster, devices=(*cluster.devices, storage), links=(*cluster.links, *links), host=STORAGE)


def _limits(candidate: PoolCandidate, catalogue: Catalogue, job: Job) -> GoalLimits:
    """The goal in ns or money, from the type whose time on all units is least."""
    work = {
        kind: sum(unit.exec_ns.get(kind, float("inf")) * job.runs_of(unit) for unit in job.whole.units)
        for kind in catalogue.types
    }
    fastest = min(work, key=lambda kind: work[kind])
    if candidate.goal == "deadline":
        return GoalLimits(latency_ns=_rounded(candidate.factor * work[fastest]))
    if candidate.goal == "demand":
        return GoalLimits(period_ns=_rounded(work[fastest] / candidate.factor))
    price = round(candidate.factor * catalogue.offers[fastest].price.per_hour, 6)
    if GOALS[candidate.goal] != "hypervolume":
        return GoalLimits(price_per_hour=price)
    slowest = _rounded(REFERENCE_TIME * max(ns for ns in work.values() if ns < float("inf")))
    if candidate.goal in PIPELINED:
        return GoalLimits(period_ns=slowest, price_per_hour=price)
    return GoalLimits(latency_ns=slowest, price_per_hour=price)


def _rounded(ns: float) -> int:
    """Three digits: a goal that somebody could have stated."""
    return int(float(f"{ns:.3g}"))


def _tightened(problem: Problem, share: float) -> Cluster:
    """Devices with that share of the memory that the whole network needs on them, where they have more."""
    plenty = tuple(replace(device, memory_bytes=_PLENTY) for device in problem.cluster.devices)
    roomy = replace(problem, cluster=replace(problem.cluster, devices=plenty))
    need = needed_bytes(roomy)
    devices = tuple(
        device
        if device.name == STORAGE
        else replace(device, memory_bytes=min(device.memory_bytes, int(share * need[device.name])))
        for device in problem.cluster.devices
    )
    return replace(problem.cluster, devices=devices)
