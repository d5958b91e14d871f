"""The report of a quickstart: one HTML page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.core.units import format_ns
from opmark.datasets.release.release import Release
from opmark.pages.gantt import timeline_picture
from opmark.pages.scatter import Point, scatter
from opmark.pages.template import render
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import single_thread
from opmark.predictors.judging.evidence import Evidence, Judged
from opmark.predictors.judging.scores import judge_sides, split_sides
from opmark.predictors.judging.splits import SHAPE_GROUP
from opmark.predictors.judging.transferred import judge_transferred
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.studies.predictor_pages.evaluation import error_table
from opmark.studies.quickstart.contest import Contest
from opmark.studies.quickstart.judgement import QuickstartVerdict
from opmark.studies.quickstart.learning import donor_of, lesson
from opmark.studies.quickstart.unseen_networks import NetworkError

_COSTLIEST = 8


def report_page(
    release: Release,
    bundles: Mapping[str, Bundle],
    graphs: Mapping[str, Mapping[str, Graph]],
    networks: Sequence[NetworkError],
    contest: Contest,
    *,
    verdict: QuickstartVerdict,
) -> str:
    """A self-contained HTML page: accuracy, errors by kind, time by kind, the ranking of placers and their schedules.

    The accuracy of kernels is that of predictions for shape groups that were left out of training.
    """
    judged = {target: _judged(release, bundle) for target, bundle in bundles.items()}
    absolute = sorted(abs(network.error) for network in networks)
    return render(
        "studies/templates/quickstart.html.jinja",
        title="OpMark quickstart",
        release=release,
        verdict=verdict,
        facts=_facts(release),
        networks=networks,
        median_error=float(np.median(absolute)),
        max_error=absolute[-1],
        network_picture=scatter(
            [
                Point(
                    label=network.name,
                    measured=network.measured_ns,
                    predicted=network.predicted_ns,
                    group=network.target,
                    low=network.low_ns,
                    high=network.high_ns,
                )
                for network in networks
            ],
            radius=4.5,
            title="Networks: predicted against measured latency",
        ),
        targets=[_target(release, target, judged[target], bundle) for target, bundle in bundles.items()],
        breakdowns=[_breakdown(network, bundles[network.target], graphs) for network in networks],
        contest=contest,
        schedules=[
            (
                row.name,
                contest.cost_ns(row.name),
                timeline_picture(contest.timeline(row.name), f"Schedule of {row.name}"),
            )
            for row in contest.standings.rows
        ],
    )


def _judged(release: Release, bundle: Bundle) -> Judged | None:
    evidence = Evidence(
        target=bundle.target,
        measurements=release.measurements(bundle.target.name),
        hardware=bundle.manifest.hardware,
    )
    with single_thread():
        # one fold of five: the others would take minutes
        sides = split_sides(evidence, SHAPE_GROUP)
        if bundle.manifest.transfer is not None:
            return judge_transferred(sides, bundle)
        return judge_sides(sides, ESTIMATORS.load(bundle.manifest.estimator))


def _facts(release: Release) -> list[tuple[str, str]]:
    environment = release.manifest.environments[0]
    everything = {**environment.noted, **environment.checked}
    return [
        (name.replace("_", " "), str(value)) for name, value in sorted(everything.items()) if value not in ("", None)
    ]


def _target(release: Release, target: str, judged: Judged | None, bundle: Bundle) -> dict[str, Any]:
    statuses = Counter(row.status for row in release.measurements(target))
    return {
        "name": target,
        "rows": statuses.total(),
        "statuses": sorted(statuses.items()),
        "note": bundle.constants.note,
        "lesson": lesson(bundle),
        "corrected": donor_of(bundle) is not None,
        "gap_ns": bundle.constants.gap_ns,
        "accuracy": None if judged is None else _accuracy(target, judged),
    }


def _accuracy(target: str, judged: Judged) -> dict[str, Any]:
    error = np.abs(judged.predicted_ns / judged.measured_ns - 1)
    points = [
        Point(label=kind, measured=float(measured), predicted=float(predicted), group=kind)
        for kind, measured, predicted in zip(judged.kinds, judged.measured_ns, judged.predicted_ns, strict=True)
    ]
    return {
        "count": len(error),
        "median": float(np.median(error)),
        "within10": float(np.mean(error <= 0.1)),
        "picture": scatter(points, title=f"{target}: kernels, predicted against measured latency"),
        "bars": error_table(judged.kinds, error),
    }


def _breakdown(network: NetworkError, bundle: Bundle, graphs: Mapping[str, Mapping[str, Graph]]) -> dict[str, Any]:
    prediction = CostModel(bundle, missing=BYTES_MOVED).network(graphs[network.target][network.name])
    by_kind: Counter[str] = Counter()
    for row in prediction.rows:
        by_kind[row.kernel.kind] += round(row.total_ns)
    return {
        "network": network,
        "kinds": [(kind, ns, ns / prediction.total_ns) for kind, ns in by_kind.most_common()],
        "rows": [
            (f"{row.count} × {short(row.kernel.params)}", row.kernel.kind, format_ns(row.ns), row.total_ns)
            for row in prediction.rows[:_COSTLIEST]
        ],
    }


def short(parameters: Mapping[str, Any]) -> str:
    """The parameters that are not empty, zero or false, on one line; a shape is written 1×64."""
    shown = {name: value for name, value in parameters.items() if value not in (None, 0, "", (), False)}
    return ", ".join(f"{name}={_compact(value)}" for name, value in shown.items())


def _compact(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return (", " if any(isinstance(item, tuple) for item in value) else "×").join(_compact(item) for item in value)
