"""Turn tracks and their standings into boards, and write the static site."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from opmark.core.errors import NothingSelectedError
from opmark.core.files import write_bytes
from opmark.core.workspace import Workspace
from opmark.leaderboards.fidelity.figures import FidelityFigures, fidelity_figures
from opmark.leaderboards.fidelity.records import stored_records
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.metric import METRICS, Result
from opmark.leaderboards.scoring.standings import Row, Standings
from opmark.leaderboards.scoring.track import Track, load_track, track_names
from opmark.leaderboards.site.board import Board, BoardEntry, Figure, Instance, Outcome
from opmark.leaderboards.site.graph_summary import cost_facts, graph_facts, kind_shares, machines_of
from opmark.leaderboards.site.known_answers import BARS_AT_MOST, shown_answers
from opmark.leaderboards.site.made_pages import finished, is_current, source_of
from opmark.leaderboards.site.origins import Origin, origin_of, submission_origins
from opmark.leaderboards.site.page import PAGES, Site
from opmark.leaderboards.site.predictor_card import PredictorCard, predictor_cards
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.gantt import GanttTimeline

# The metric that is the score: its column would repeat another one.
SCORE = "quality"
Timelines = Mapping[tuple[str, str], GanttTimeline]
Progress = Callable[[int, int], None]

# The scores by the source of costs, as columns of a ranking.
_SOURCES = {
    "measured": "the score on problems whose devices OpMark has measured, all of them",
    "imported": "the score on problems with devices that others have measured and published",
    "analytic": "the score on problems with a device whose costs come from its data sheet",
}
# The scores by split, as columns of a ranking.
_SPLITS = {
    "public": "the score on public instances, whose answers everybody can read; it does not count for submissions",
    "validation": "the score on stored instances of other model families; it does not count for submissions",
    "twins": "the score on twins of the stored instances, drawn for this submission",
    "hidden": "the score on networks that no stored instance has, from a secret seed or drawn for this submission",
    "drop": "the share of the score on stored instances that is lost on the worst of the other splits",
}


def board_of(
    problems: Sequence[Problem],
    standings: Standings,
    *,
    name: str = "",
    title: str,
    description: str = "",
    version: str = "",
    timelines: Timelines | None = None,
    submissions: Mapping[str, Origin] | None = None,
) -> Board:
    """The board of one track. `name` is its folder (default: the track of the standings).

    `timelines` are the schedules to draw (default: those of the standings' evaluations), `submissions` the origins of
    entries that are no placers.
    """
    by_name = {problem.name: problem for problem in problems}
    first = problems[0]
    drawn = timelines if timelines is not None else _timelines(standings, by_name)
    return Board(
        name=name or standings.track or "board",
        title=title,
        description=description,
        version=version,
        semantics=first.semantics,
        objective=", ".join(sorted({problem.objective for problem in problems})),
        instances=tuple(_instance(by_name[result.problem], result) for result in standings.rows[0].results),
        entries=tuple(_entry(row, standings, drawn, origin_of(row.name, submissions)) for row in standings.rows),
        note=standings.note,
    )


def _instance(problem: Problem, result: Result) -> Instance:
    devices = problem.cluster.devices
    return Instance(
        name=problem.name,
        network=problem.provenance.model or problem.name,
        cluster=problem.cluster.name,
        devices=len(devices),
        units=len(problem.units),
        unit=problem.unit,
        bound=result.bound,
        best_known=result.best_known,
        best_single=result.single,
        scored=result.scored,
        costs_from=problem.costs_from,
        provenance=tuple(dict.fromkeys(device.provenance for device in devices)),
        facts=(*graph_facts(problem), *cost_facts(problem)),
        machines=machines_of(problem),
        kinds=kind_shares(problem),
    )


def _timelines(standings: Standings, problems: Mapping[str, Problem]) -> Timelines:
    drawn = {(entry, name): timeline_of(problems[name], one) for (entry, name), one in standings.evaluations.items()}
    return {key: timeline for key, timeline in drawn.items() if len(timeline.bars) <= BARS_AT_MOST}


def _entry(row: Row, standings: Standings, timelines: Timelines, origin: Origin) -> BoardEntry:
    return BoardEntry(
        rank=row.rank,
        name=row.name,
        score=row.score,
        low=row.low,
        high=row.high,
        outcomes=tuple(_outcome(row.name, result, standings, timelines) for result in row.results),
        description=origin.description,
        figures=(*_source_figures(row, standings), *_split_figures(row.name, standings), *_metric_figures(row)),
        origin=origin.name,
        paper=origin.paper,
        submitted=origin.submitted,
        recalls=row.name in standings.splits and standings.splits[row.name].recalls,
    )


def _metric_figures(row: Row) -> tuple[Figure, ...]:
    return tuple(
        Figure(name=metric.title or name, value=row.metrics[name], summary=metric.summary)
        for name in row.metrics
        if name != SCORE
        for metric in (METRICS.load(name),)
    )


def _source_figures(row: Row, standings: Standings) -> tuple[Figure, ...]:
    """The scores by source of costs, where the problems of the board have more than one."""
    found = standings.by_source(row)
    if len(found) < 2:
        return ()
    return tuple(Figure(name=name, value=score.score, summary=_SOURCES[name]) for name, score in found.items())


def _split_figures(entry: str, standings: Standings) -> tuple[Figure, ...]:
    """The scores by split that any entry of the board has."""
    own = standings.splits.get(entry)
    shown = [name for name in _SPLITS if any(getattr(row, name) is not None for row in standings.splits.values())]
    return tuple(Figure(name=name, value=getattr(own, name, None), summary=_SPLITS[name]) for name in shown)


def _outcome(entry: str, result: Result, standings: Standings, timelines: Timelines) -> Outcome:
    return Outcome(
        instance=result.problem,
        cost=result.cost,
        reason=standings.reason(entry, result),
        quality=result.quality,
        gain=result.gain,
        median=result.drawn.median if result.drawn else None,
        p95=result.drawn.p95 if result.drawn else None,
        planning_s=standings.planning_s.get((entry, result.problem)),
        timeline=timelines.get((entry, result.problem)),
    )


def board_of_track(track: Track, cache: Path | None = None, progress: Progress = lambda _done, _total: None) -> Board:
    """The board of a track's stored solutions; what `cache` knows already is not simulated again.

    Raises `NothingSelectedError` without solutions or problems.
    """
    standings, timelines = shown_answers(track, cache, progress)
    rules = track.rules
    return board_of(
        track.problems(),
        standings,
        name=track.name,
        title=rules.title,
        description=rules.description,
        version=rules.version,
        timelines=timelines,
        submissions=submission_origins(track),
    )


def publish_boards(
    leaderboards: Path, folder: Path, progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None
) -> tuple[Path, ...]:
    """Write the site of every track with stored solutions; returns its files, `index.html` first.

    `progress` hears the name of a track and how many of its problems are done, then how many pages are. Raises
    `NothingSelectedError` where no track has any solution.
    """
    workspace = Workspace(leaderboards.parent)
    tracks = [load_track(leaderboards, name) for name in track_names(leaderboards)]
    boards = [
        board_of_track(track, workspace.cache / "site", partial(progress, track.name))
        for track in tracks
        if track.has_entries()
    ]
    fidelity = fidelity_figures(stored_records(leaderboards))
    return publish(folder, boards, predictor_cards(workspace), fidelity, progress=partial(progress, "pages"))


def publish(
    folder: Path,
    boards: Sequence[Board],
    predictors: Sequence[PredictorCard] = (),
    fidelity: Sequence[FidelityFigures] = (),
    *,
    progress: Progress = lambda _done, _total: None,
) -> tuple[Path, ...]:
    """Write the site of `boards` into `folder`; returns its files, `index.html` first.

    All pages are made before the first is written; one whose content follows from the same as before is not made again.
    `progress` hears how many pages are made, and how many there are.
    Raises `NothingSelectedError` without a board.
    """
    if not boards:
        raise NothingSelectedError("there is no board to publish", hint="run `opmark leaderboards score` first")
    site = Site(boards=tuple(boards), predictors=tuple(predictors), fidelity=tuple(fidelity))
    documents = sorted(
        (document for page in PAGES for document in page(site)),
        key=lambda document: (document.path.count("/"), document.path),
    )
    made = {}
    for number, document in enumerate(documents):
        progress(number, len(documents))
        source = source_of(document)
        if not is_current(folder / document.path, document, source):
            made[document.path] = finished(document, source)
    progress(len(documents), len(documents))
    for path, content in made.items():
        write_bytes(folder / path, content)
    return tuple(folder / document.path for document in documents)
