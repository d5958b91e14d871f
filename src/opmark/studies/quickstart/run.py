"""The steps of a quickstart: measure this machine, train predictors, check them, rank placers, and report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.bench.run.progress import RunProgress
from opmark.bench.run.runner import run
from opmark.bench.suite.suite import Suite, load_suite
from opmark.core.errors import MeasurementError
from opmark.core.files import sha256, write_json, write_text
from opmark.core.kernels.graph import Graph
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.measurement import USABLE
from opmark.core.workspace import ROOMS, Workspace, versions
from opmark.datasets.release import building
from opmark.datasets.release import release as releases
from opmark.datasets.release.release import Release
from opmark.leaderboards.scoring.first_answer import compile_meanwhile
from opmark.predictors.model import bundle as bundles
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.bundle_paths import bundle_path
from opmark.studies.quickstart.contest import NETWORK, Contest, hold_contest
from opmark.studies.quickstart.judgement import QuickstartVerdict, judge_quickstart
from opmark.studies.quickstart.learning import donor_of, learned, lesson
from opmark.studies.quickstart.report import report_page
from opmark.studies.quickstart.unseen_networks import NetworkError, compare

# The time kept for training, predicting, placing and reporting: a share of the whole, and at least some seconds.
AFTERWARDS_SHARE = 0.25
AFTERWARDS_S = 30.0
LEAST_MEASURING_S = 30.0
REPORT_S = 8.0
STATE = "quickstart.json"
REPORT = "report.html"


@dataclass(frozen=True, kw_only=True)
class Quickstart:
    """The result of a quickstart; `donors` are the predictors that were corrected, by target, None without one."""

    networks: tuple[NetworkError, ...]
    donors: Mapping[str, str | None]
    contest: Contest
    report: Path
    verdict: QuickstartVerdict
    seconds: float

    @property
    def absolute_errors(self) -> list[float]:
        """The absolute relative errors of the unseen networks."""
        return [abs(network.error) for network in self.networks]

    def document(self) -> dict[str, Any]:
        """The result as the JSON of `opmark quickstart --json`."""
        return {
            "networks": [network.document() for network in self.networks],
            "median_error": median(self.absolute_errors),
            "max_error": max(self.absolute_errors),
            "donors": dict(self.donors),
            "standings": [
                {"rank": row.rank, "name": row.name, "score": row.score} for row in self.contest.standings.rows
            ],
            "verdict": {
                "word": self.verdict.word,
                "why": self.verdict.why,
                "advice": self.verdict.advice,
                "noise_floor": self.verdict.floor,
            },
            "report": str(self.report),
            "seconds": round(self.seconds, 1),
        }


def quickstart(
    folder: Path,
    suite_file: Path,
    *,
    minutes: float,
    placed: str = NETWORK,
    announce: Callable[[str], None] = lambda _: None,
    progress: Callable[[RunProgress], None] = lambda _: None,
) -> Quickstart:
    """Measure, predict, place and report in the workspace `folder`, within about `minutes`.

    `placed` is the network that placers compete on. A second call continues where the first stopped and measures
    nothing twice. Raises `MeasurementError` if a target's kernels or all held-out networks could not be measured.
    """
    start = time.monotonic()
    workspace = _workspace(folder)
    suite = load_suite(suite_file)
    announce(f"Measuring kernels and networks with suite {suite.name} …")
    end = start + 60 * minutes
    journal = _measured(workspace, suite, end, progress)
    if journal is None:
        raise KeyboardInterrupt
    _need_kernels(journal, suite, minutes)
    compile_meanwhile(announce)
    release = _released(workspace, journal)
    announce(f"Release {release.name}: {len(release.kernels):,} kernel rows. Training predictors …")
    graphs = {target: _graphs(release, target, workspace) for target in suite.targets}
    trained = {target: _trained(workspace, release, target, graphs[target]) for target in suite.targets}
    for bundle in trained.values():
        announce(f"{bundle.target.name}: {lesson(bundle)}")
    announce("Predicting networks that no sample came from …")
    networks = compare(release, trained, graphs)
    if not networks:
        raise MeasurementError(
            "no held-out network was measured", hint="give it more time: opmark quickstart --minutes 10"
        )
    announce("Ranking placement algorithms …")
    contest = hold_contest(workspace, trained, network=placed, left_s=max(0.0, end - time.monotonic() - REPORT_S))
    report = folder / REPORT
    verdict = judge_quickstart(
        {target: release.measurements(target) for target in suite.targets},
        [abs(network.error) for network in networks],
        [figures.get("network_noise_floor") for figures in release.manifest.statistics.values()],
    )
    write_text(report, report_page(release, trained, graphs, networks, contest, verdict=verdict))
    result = Quickstart(
        networks=networks,
        donors={target: donor_of(bundle) for target, bundle in trained.items()},
        contest=contest,
        report=report,
        verdict=verdict,
        seconds=time.monotonic() - start,
    )
    write_json(folder / STATE, {"schema": 1, **result.document()})
    return result


def _workspace(folder: Path) -> Workspace:
    for room in ROOMS:
        (folder / room).mkdir(parents=True, exist_ok=True)
    return Workspace(folder)


def _measured(
    workspace: Workspace, suite: Suite, deadline: float, progress: Callable[[RunProgress], None]
) -> Path | None:
    """Measure while there is time, and return the journal; None if interrupted."""
    journal = workspace.journals / f"{suite.name}.jsonl"
    if _marker(journal).exists() and journal.exists():
        return journal
    until = deadline - max(AFTERWARDS_S, AFTERWARDS_SHARE * (deadline - time.monotonic()))
    summary = run(
        suite, journal=journal, budget_s=LEAST_MEASURING_S, until=until, progress=progress, cache=workspace.cache
    )
    if summary.interrupted:
        return None
    write_text(_marker(journal), "")
    return journal


def _need_kernels(journal: Path, suite: Suite, minutes: float) -> None:
    """Raise `MeasurementError` for a target without kernels; more minutes go on with the same journal."""
    measured = {row.target for row in read_journal(journal).measurements if row.status in USABLE}
    missing = [target for target in suite.targets if target not in measured]
    if missing:
        _marker(journal).unlink()
        raise MeasurementError(
            f"{minutes:g} minutes were too short to measure kernels of {' and '.join(missing)}",
            hint=f"give it more time: opmark quickstart --minutes {max(6, round(2 * minutes))}",
        )


def _marker(journal: Path) -> Path:
    """The file that tells that measuring is over."""
    return journal.with_suffix(".finished")


def _released(workspace: Workspace, journal: Path) -> Release:
    """The newest release that was built from `journal`; without one, a new version."""
    checksum = sha256(journal)
    for folder in sorted(item for item in workspace.datasets.iterdir() if item.is_dir()):
        for version in reversed(versions(folder)):
            found = releases.load(folder / version)
            if checksum in {source.sha256 for source in found.manifest.sources}:
                return found
    return building.build([journal], workspace.datasets)


def _graphs(release: Release, target: str, workspace: Workspace) -> dict[str, Graph]:
    """The kernel graph of every network measured on `target`, by network name."""
    from opmark.models.resolve import graph_of

    rows = release.network_measurements(target)
    return {row.network: graph_of(row.network, target, cache=workspace.cache) for row in rows}


def _trained(workspace: Workspace, release: Release, target: str, graphs: Mapping[str, Graph]) -> Bundle:
    """The predictor of `target`: the stored one if it was made from this release, else a new one."""
    folder = bundle_path(workspace, release.device, release.version, target)
    if folder.is_dir():
        found = bundles.load(folder)
        if found.manifest.origin.id == release.id:
            return found
    bundles.save(learned(release, target, graphs), folder)
    return bundles.load(folder)
