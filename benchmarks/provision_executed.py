"""The gain of two cores with unequal runtimes over equal ones: as `opmark provision` predicts it, and as executed here.

    python benchmarks/provision_executed.py [--models inception-small,rand-wire,…] [--plan-only] [--repeat 30] [--json]

Offers are cores of this machine that run ONNX Runtime or eager torch, each with its own predictors and the link between
cores as measured now. For each network, `provision` looks for the least latency on one or two cores. Its best fleet of
equal runtimes and its best one of unequal runtimes are placed kernel by kernel, with the cost of a cut as measured now,
and executed (`opmark leaderboards execute`); the recommendation is one of the two. Planning comes first for all
networks, then the executions. Every result is stored at once in `--folder`; the same command goes on where it stopped,
and tries again what has failed. A network that fails is named in the table. With `--plan-only` no placement is
executed: planning needs a quiet machine for some minutes at its beginning, for the link and the cost of a cut.
"""

import argparse
import datetime
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from opmark.bench.clock.machine import device_slug
from opmark.bench.links.measuring import core_link
from opmark.cli.text.terminal import MISSING, show_json, show_note, show_table
from opmark.core.errors import OpMarkError
from opmark.core.files import write_json
from opmark.core.hardware.cluster import Cluster, Link
from opmark.core.hardware.link import cluster_link
from opmark.core.reading import read_json
from opmark.core.units import format_ns
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.cluster_plan import LinkType
from opmark.leaderboards.making.device_table import DeviceTable
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.making.model_problem import problem_of_model
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import load_solution, save_solution
from opmark.leaderboards.provisioning.catalogue import SAME_ZONE, Catalogue, Offer, Price
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.job import job_of
from opmark.leaderboards.provisioning.recommendation import recommend
from opmark.leaderboards.scoring.attempt import attempt
from opmark.predictors.model.bundle_paths import find_bundle
from opmark.studies.execution.cut_costs import CutCost, as_executed, cut_cost_on
from opmark.studies.execution.report import execute_solution
from opmark.studies.execution.stage import ExecutionStage

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"onnx": "onnxruntime-cpu-t1", "torch": "torch-eager-t1"}
CORES = 2
MODELS = (
    "inception",
    "inception-small",
    "nasnet-like",
    "rand-wire",
    "two-tower",
    "wide-and-deep",
    "squeeze-small",
    "resnet-small",
    "bart-mini",
    "mobilenet-v1",
    "bert-tiny",
    "vit-tiny",
    "mixture-of-experts",
    "resnet-tiny",
)
# The two fleets of every network, and the placer of their kernels.
EQUAL, UNEQUAL = "equal", "unequal"
PLACER = "opmark"
_PLENTY = 1 << 34


@dataclass(frozen=True, kw_only=True)
class CoresHere(Catalogue):
    """Cores of this machine; `between` is the link as it was measured."""

    between: Link = field(
        default_factory=lambda: Link(source="", destination="", latency_ns=0, bandwidth_bytes_per_s=1)
    )

    def cluster(self, fleet: Fleet) -> Cluster:
        """The cores of a fleet, with the measured link in both directions."""
        found = super().cluster(fleet)
        links = tuple(replace(self.between, source=one.source, destination=one.destination) for one in found.links)
        return replace(found, links=links).checked(found.name)


def cores_here(workspace: Workspace, predictors: str, between: Link) -> CoresHere:
    """The offers; `predictors` is the device whose predictors give the costs."""
    price = Price(per_hour=1.0, currency="core-hour", date=datetime.date(2026, 11, 22), source="one core for one hour")
    tables = {}
    for name, target in TARGETS.items():
        version = find_bundle(workspace, target, device=predictors).parent.name
        tables[name] = DeviceTable(
            title=f"One core, {target}",
            provenance="measured",
            source="the predictors of this workspace",
            runtime=target,
            memory_bytes=_PLENTY,
            bundle=f"{predictors}/{version}/{target}",
        )
    link = LinkType(
        latency_ns=between.latency_ns,
        bandwidth_bytes_per_s=between.bandwidth_bytes_per_s,
        source="measured now",
    )
    return CoresHere(
        name="cores-here",
        title="Cores of this machine",
        offers={name: Offer(device=name, price=price, available=CORES, per_host=CORES) for name in TARGETS},
        tables=tables,
        links={SAME_ZONE: link},
        same_host=dict.fromkeys(TARGETS, link),
        between=between,
    )


class Study:
    """The networks of a folder, planned and executed."""

    def __init__(self, folder: Path, models: list[str], predictors: str) -> None:
        self.folder, self.models = folder, models
        self._predictors = predictors
        self._workspace = Workspace(ROOT)
        self._offers: CoresHere | None = None

    def plan(self, planning_s: float) -> None:
        """Plan the networks that have no plan yet."""
        for model in self.models:
            path = self._row(model)
            if path.is_file() and "fleets" in read_json(path):
                continue
            begun = time.process_time()
            try:
                row = self._planned(model, planning_s)
            # Whatever one network does in any library, the others are still wanted.
            except Exception as error:  # noqa: BLE001
                row = {"model": model, "reason": _reason(error)}
                show_note(f"{model} is left out: {row['reason']}")
            write_json(path, row)
            show_note(f"planned {model} in {time.process_time() - begun:.0f} s of processor time")

    def execute(self, repeats: int, visits: int) -> None:
        """Visit every planned fleet until it has so many visits; the two fleets of a network follow one another."""
        for visit in range(visits):
            for model in self.models:
                row = read_json(self._row(model)) if self._row(model).is_file() else {}
                for kind, found in row.get("fleets", {}).items():
                    if len(found["visits_ns"]) <= visit and not (visit and found.get("reason")):
                        self._visit(model, kind, found, repeats)
                        write_json(self._row(model), row)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per network: the fleets, and both gains of unequal cores over equal ones (None where unknown)."""
        for model in self.models:
            row = read_json(self._row(model)) if self._row(model).is_file() else {"model": model, "reason": "no plan"}
            fleets = row.get("fleets", {})
            times: dict[str, dict[str, float | None]] = {
                kind: {
                    "predicted": one["predicted_ns"],
                    "measured": median(map(median, one["visits_ns"])) if one["visits_ns"] else None,
                }
                for kind, one in fleets.items()
            }
            recommended = row.get("recommended")
            yield {
                **row,
                "unequal_gain": {key: _gain(times, UNEQUAL, key) for key in ("predicted", "measured")},
                "gain": {key: _gain(times, recommended, key) for key in ("predicted", "measured")},
            }

    def _planned(self, model: str, planning_s: float) -> dict[str, Any]:
        offers = self._catalogue()
        job = job_of(model, offers, Sources(workspace=self._workspace))
        goal = Goal(price_per_hour_at_most=float(CORES))
        exploration = Exploration(job, goal, devices_at_most=CORES)
        exploration.run(planning_s)
        found = recommend(exploration, planning_s)
        best = {
            EQUAL: found.roles["best_equal"],
            UNEQUAL: exploration.best(lambda one: not one.fleet.equal),
        }
        return {
            "model": model,
            "recommended": EQUAL if found.recommended.fleet.equal else UNEQUAL,
            "probability_better": found.probability_better,
            "stability": found.stability,
            "fleets": {kind: self._placed(model, kind, one.fleet) for kind, one in best.items() if one is not None},
        }

    def _placed(self, model: str, kind: str, fleet: Fleet) -> dict[str, Any]:
        """The placement of every kernel on a fleet; a placement cannot be executed where kernels were joined."""
        cluster = replace(self._catalogue().cluster(fleet), name=fleet.title.replace(" + ", "-").replace(" ", "-"))
        made = problem_of_model(model, cluster, self._workspace)
        types = {device.type for device in cluster.devices}
        problem = as_executed(made, {name: self._cut_cost(name) for name in types})
        answer = attempt(problem, PLACER, budget_s=2.0)
        save_problem(problem, self._file(model, kind, "problem.json.gz"))
        save_solution(answer.solution, self._file(model, kind, "solution.json"))
        return {
            "devices": dict(fleet.items()),
            "predicted_ns": answer.evaluation.schedule.latency_ns,
            "visits_ns": [],
            "outputs_equal": None,
        }

    def _visit(self, model: str, kind: str, found: dict[str, Any], repeats: int) -> None:
        found["reason"] = ""
        try:
            problem = load_problem(self._file(model, kind, "problem.json.gz"))
            with ExecutionStage(problem) as stage:
                report = execute_solution(
                    stage, load_solution(self._file(model, kind, "solution.json"), problem), repeats=repeats
                )
        except Exception as error:  # noqa: BLE001 (the other executions are still wanted)
            found["reason"] = _reason(error)
            show_note(f"{model}, {kind}: {error}")
            return
        found["visits_ns"].append(list(report.makespans_ns))
        found["outputs_equal"] = report.outputs_equal and found["outputs_equal"] is not False
        show_note(
            f"{model}, {kind}: predicted {format_ns(report.predicted_ns)}, measured {format_ns(report.measured_ns)}"
        )

    def _catalogue(self) -> CoresHere:
        if self._offers is None:
            between = cluster_link(core_link(), source="a", destination="b")
            self._offers = cores_here(self._workspace, self._predictors or device_slug(), between)
        return self._offers

    def _cut_cost(self, kind: str) -> CutCost:
        """The cost of a cut between two cores of an offer, measured once for the whole folder."""
        path = self.folder / "cut_costs.json"
        known = read_json(path) if path.is_file() else {}
        if kind not in known:
            cluster = self._catalogue().cluster(Fleet.of({kind: CORES}))
            known[kind] = asdict(cut_cost_on(replace(cluster, name=f"two-{kind}"), self._workspace))
            write_json(path, known)
        return CutCost(**known[kind])

    def _row(self, model: str) -> Path:
        return self.folder / f"{model}.json"

    def _file(self, model: str, kind: str, name: str) -> Path:
        return self.folder / "placements" / f"{model}-{kind}-{name}"


def _reason(error: Exception) -> str:
    """One sentence about a failure; other libraries' errors come with their type."""
    told = str(error) if isinstance(error, OpMarkError) else f"{type(error).__name__}: {error}"
    return " ".join(told.split())[:300]


def _gain(times: dict[str, dict[str, float | None]], kind: str | None, key: str) -> float | None:
    """The time saved against the best fleet of equal cores, as a share of it."""
    if kind is None or EQUAL not in times or kind not in times:
        return None
    one, equal = times[kind][key], times[EQUAL][key]
    return None if one is None or equal is None else 1 - one / equal


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of both gains, and the share of networks whose recommendation was the faster fleet when executed."""
    known = [row for row in rows if row["gain"]["measured"] is not None]
    compared = [row for row in known if row["unequal_gain"]["measured"] is not None]
    right = [(row["unequal_gain"]["measured"] > 0) == (row["recommended"] == UNEQUAL) for row in compared]
    return {
        "networks": len(known),
        "left_out": len(rows) - len(known),
        "predicted_gain": median(row["gain"]["predicted"] for row in known) if known else None,
        "measured_gain": median(row["gain"]["measured"] for row in known) if known else None,
        "least_measured_gain": min((row["gain"]["measured"] for row in known), default=None),
        "unequal_recommended": sum(row["recommended"] == UNEQUAL for row in known),
        "compared": len(compared),
        "faster_when_executed": sum(right),
        "other_outputs": sum(one["outputs_equal"] is False for row in known for one in row["fleets"].values()),
    }


def _reasons(row: dict[str, Any]) -> list[str]:
    """Every failure of a network, in planning and in executing."""
    found = [row.get("reason"), *(one.get("reason") for one in row.get("fleets", {}).values())]
    return [reason for reason in found if reason]


def show(rows: list[dict[str, Any]]) -> None:
    """Print one line per network, and the medians."""

    def share(value: float | None) -> str:
        return MISSING if value is None else f"{value:+.1%}"

    def title(row: dict[str, Any], kind: str | None) -> str:
        fleet = row.get("fleets", {}).get(kind)
        return MISSING if fleet is None else Fleet.of(fleet["devices"]).title

    cells = [
        (
            row["model"],
            title(row, EQUAL),
            title(row, UNEQUAL),
            title(row, row.get("recommended")),
            "; ".join(dict.fromkeys(_reasons(row))) or MISSING,
            share(row["gain"]["predicted"]),
            share(row["gain"]["measured"]),
            share(row["unequal_gain"]["predicted"]),
            share(row["unequal_gain"]["measured"]),
        )
        for row in rows
    ]
    names = ("network", "best of equal", "best of unequal", "recommended", "failure")
    show_table((*names, "gain", "executed", "unequal", "executed"), cells, left=len(names))
    found = summary(rows)
    if found["networks"]:
        print(
            f"{found['networks']} networks; the recommendation saves {found['predicted_gain']:.1%} of the best equal"
            f" answer's time by prediction and {found['measured_gain']:.1%} executed (medians). Unequal cores were"
            f" recommended for {found['unequal_recommended']}. Of {found['compared']} networks with an unequal answer,"
            f" the recommendation was the faster one when executed in {found['faster_when_executed']}."
        )


def main() -> None:
    """Plan, execute, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "provision-executed")
    parser.add_argument("--planning-time", type=float, default=4.0, help="Seconds of the search per network.")
    parser.add_argument("--repeat", type=int, default=20, help="Executions per visit.")
    parser.add_argument("--visits", type=int, default=1, help="Visits to every network, with all others in between.")
    parser.add_argument("--plan-only", action="store_true", help="Plan, and execute nothing.")
    parser.add_argument("--predictors", default="", help="The device whose predictors count. Default: this machine.")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    study = Study(given.folder, given.models, given.predictors)
    study.plan(given.planning_time)
    if not given.plan_only:
        study.execute(given.repeat, given.visits)
    rows = list(study.rows())
    if given.json:
        show_json({"networks": rows, **summary(rows)})
    else:
        show(rows)


if __name__ == "__main__":
    main()
