"""The recipe of a track (`recipe.yaml`): its candidate instances, and the conditions for keeping one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from opmark.core.schema import load_checked
from opmark.core.slug import NAME, Slug, SlugOrEmpty
from opmark.leaderboards.problem.fields import COPIES_AT_MOST, MEMORY_MODES
from opmark.leaderboards.problem.rules.objective import OBJECTIVES

SCHEMA = 1
FILE = "recipe.yaml"
# A week of planning for one problem.
SHARE_AT_MOST = 1000
SECONDS_AT_MOST = 7 * 24 * 3600
_HIDDEN_AT_MOST = 10_000
SPLITS = ("public", "validation")
# Quick placers with different strengths: their best answer shows whether a placement can win anything.
JUDGES = ("heft", "peft", "m-topo", "etf", "local-search", "opmark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One instance: one or more networks that run side by side on a cluster.

    `models` are zoo networks or drawn ones: `random-cells#7` is the seventh network of that family. `dimensions` are
    the batch and size of zoo networks. `memory_share` limits the memory of every device but the host to that share of
    the peak that the device would need for everything; `host_memory_share` limits the host. `objective` and
    `memory_mode` replace those of the track. `arrivals` names the process that draws requests, at `load` times the
    throughput of the best single device for each network.

    Instead of `models` and `cluster`, `plan` may name a file below `layers/` in Sailor's format: its model and its
    devices make the problem.
    """

    models: tuple[str, ...] = ()
    cluster: SlugOrEmpty = ""
    plan: str = ""
    split: str = "public"
    name: SlugOrEmpty = ""
    dimensions: Mapping[str, int] = field(default_factory=dict)
    memory_share: float = 0.0
    host_memory_share: float = 0.0
    units_at_most: int = 0
    contiguous: bool = False
    replication: bool = False
    objective: str = ""
    memory_mode: str = ""
    micro_batches: int = 0
    arrivals: str = ""
    load: float = 0.7

    @property
    def title(self) -> str:
        """The name of the problem."""
        if self.name:
            return self.name
        if self.plan:
            return self._plan_title
        models = "+".join(model.replace("@", "-").replace("#", "-") for model in self.models)
        sizes = "".join(f"-{key[0]}{value}" for key, value in sorted(self.dimensions.items()))
        share = f"-m{round(100 * min(self.memory_share, SHARE_AT_MOST))}" if self.memory_share else ""
        joint = "-joint" if self.contiguous else ""
        joint += f"-mb{self.micro_batches}" if self.micro_batches else ""
        joint += f"-{self.arrivals}" if self.arrivals else ""
        joint += "-replicas" if self.replication else ""
        return f"{models}{sizes}-{self.cluster}{share}{joint}"

    @property
    def _plan_title(self) -> str:
        parts = [PurePosixPath(self.plan).name.partition(".")[0], self.objective, "joint" if self.contiguous else ""]
        return "-".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenPart:
    """The rules for drawing `count` hidden instances.

    `models` maps zoo networks to their possible batches (none: the network's own), and families of drawn networks, such
    as `random-cells`, to nothing. `pairs`, `contiguous` and `tight` are the shares of instances with two networks, with
    contiguous placements, and with a memory share between the two `memory_shares`.
    """

    count: int
    models: Mapping[str, tuple[int, ...]]
    clusters: tuple[Slug, ...]
    pairs: float = 0.0
    tight: float = 0.0
    memory_shares: tuple[float, float] = (0.4, 0.7)
    contiguous: float = 0.0

    def problems(self) -> list[str]:
        """List the faults of this part, one sentence each."""
        found = []
        if not 1 <= self.count <= _HIDDEN_AT_MOST or not self.models or not self.clusters:
            found.append(f"hidden: count must be from 1 to {_HIDDEN_AT_MOST:,}, and models and clusters not empty")
        found += [
            f"hidden.{name}: must be from 0 to 1, not {share:g}"
            for name, share in (("pairs", self.pairs), ("tight", self.tight), ("contiguous", self.contiguous))
            if not 0 <= share <= 1
        ]
        if not 0 < self.memory_shares[0] <= self.memory_shares[1]:
            found.append("hidden.memory_shares: must be two positive shares, the smaller first")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The content of `recipe.yaml`.

    `seed` decides the drawn networks. An instance is kept where the best single device costs at least
    `headroom_at_least` more than the best answer of the `judges`, which plan for `judge_s` each.
    """

    candidates: tuple[Candidate, ...]
    units_at_most: int = 120
    headroom_at_least: float = 0.03
    seed: int = 0
    judges: tuple[str, ...] = JUDGES
    judge_s: float = 2.0
    memory_mode: str = "liveness"
    unit: str = "us"
    hidden: HiddenPart | None = None

    def problems(self) -> list[str]:
        """List the faults of this recipe, one sentence each."""
        found = []
        names = [candidate.title for candidate in self.candidates]
        if self.memory_mode not in MEMORY_MODES:
            found.append(f"memory_mode: one of {', '.join(MEMORY_MODES)}, not {self.memory_mode!r}")
        found += [f"candidates: {name!r} appears twice" for name in sorted({n for n in names if names.count(n) > 1})]
        if not 0 < self.judge_s <= SECONDS_AT_MOST:
            found.append(f"judge_s: must be positive and at most {SECONDS_AT_MOST:,}, not {self.judge_s}")
        found += [
            f"{name}: must not be negative, not {number}"
            for name, number in (("units_at_most", self.units_at_most), ("seed", self.seed))
            if number < 0
        ]
        if not 0 <= self.headroom_at_least <= 1000:
            found.append(f"headroom_at_least: must be from 0 to 1000, not {self.headroom_at_least}")
        if self.hidden:
            found += self.hidden.problems()
        for name, candidate in zip(names, self.candidates, strict=True):
            key = f"candidates.{name}"
            if not NAME.accepts(name):
                found.append(f"{key}: cannot name a problem's file: {NAME.sentence}")
            if candidate.plan and (candidate.models or candidate.cluster or candidate.memory_share):
                found.append(f"{key}.plan: it has a model, devices and memory of its own")
            if not candidate.plan and not (candidate.models and candidate.cluster):
                found.append(f"{key}: models and a cluster are needed, or a plan")
            if candidate.split not in SPLITS:
                found.append(f"{key}.split: one of {', '.join(SPLITS)}, not {candidate.split!r}")
            if candidate.objective and candidate.objective not in OBJECTIVES.names():
                known = ", ".join(OBJECTIVES.names())
                found.append(f"{key}.objective: one of {known}, not {candidate.objective!r}")
            if candidate.memory_mode and candidate.memory_mode not in MEMORY_MODES:
                found.append(f"{key}.memory_mode: one of {', '.join(MEMORY_MODES)}, not {candidate.memory_mode!r}")
            if not 0 <= candidate.micro_batches <= COPIES_AT_MOST:
                found.append(f"{key}.micro_batches: must not be negative, and at most {COPIES_AT_MOST:,}")
            if not 0 < candidate.load <= 1000:
                found.append(f"{key}.load: must be positive and at most 1000, not {candidate.load}")
            found += [
                f"{key}.dimensions.{name}: must be at least 1, not {size}"
                for name, size in candidate.dimensions.items()
                if size < 1
            ]
            shares = (candidate.memory_share, candidate.host_memory_share)
            if min(shares) < 0 or max(shares) > SHARE_AT_MOST:
                found.append(f"{key}: shares of memory must be from 0 to {SHARE_AT_MOST}")
        return found


def load_recipe(folder: Path) -> Recipe:
    """Load and check the recipe in a track's folder. Raises `ContentError` naming the file and every wrong key."""
    return load_checked(folder / FILE, Recipe, schema=SCHEMA)


def recipe_names(folder: Path) -> frozenset[str]:
    """The names of all candidates of a track's recipe. Raises `ContentError` as `load_recipe` does."""
    return frozenset(candidate.title for candidate in load_recipe(folder).candidates)
