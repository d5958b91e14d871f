"""The sealed evaluation of `opmark predictors evaluate --sealed`: a row per network, then the scores over families."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.lookup import release_graphs, release_named, targets_named
from opmark.cli.options import cache_folder, predictors_workspace
from opmark.cli.text.terminal import MISSING, show_json, show_table
from opmark.core.errors import NothingSelectedError, UsageError
from opmark.core.units import counted, format_ns

if TYPE_CHECKING:
    from opmark.predictors.judging.sealed import SealedNetwork, SealedResult


def show_sealed(ctx: click.Context, release: str | None, targets: Sequence[str], *, as_json: bool, mixed: bool) -> None:
    """Judge the newest predictor of each target on the sealed networks of `release`, and print what comes out.

    Raises `NothingSelectedError` for a release without them, `UsageError` where other options are `mixed` in.
    """
    if mixed:
        raise UsageError("--sealed judges the stored predictor as it is", hint="give RELEASE, --target and --json only")
    found = _results(ctx, release, targets)
    if as_json:
        show_json([_document(one) for one in found])
        return
    for one in found:
        _show(one)


def _results(ctx: click.Context, release: str | None, targets: Sequence[str]) -> "list[SealedResult]":
    from opmark.core.measurements.measurement import SEALED
    from opmark.predictors.judging.sealed import judge_sealed
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import find_bundle

    here = release_named(ctx, release)
    results = []
    for name in targets_named(here, targets):
        networks = here.network_measurements(name)
        rows = [one for one in networks if one.role == SEALED]
        if rows:
            bundle = load(find_bundle(predictors_workspace(ctx), name, device=here.device), target_name=name)
            graphs = release_graphs(here, rows, name, cache=cache_folder(ctx))
            results.append(judge_sealed(rows, networks, bundle, graphs))
    if not results:
        raise NothingSelectedError(
            "the release has no sealed networks",
            where=here.name,
            hint="`opmark bench run sealed` measures them; build the release from that journal, too",
        )
    return results


def _document(result: "SealedResult") -> dict[str, Any]:
    fields = (
        *("network", "family", "batch", "size", "status", "reason", "measured_ns", "standard_error"),
        *("predicted_ns", "low_ns", "high_ns", "error", "exact_share"),
    )
    return {
        "target": result.target,
        "predictor": result.predictor,
        "networks": [{name: getattr(one, name) for name in fields} for one in result.networks],
        "scores": result.scores,
    }


def _show(result: "SealedResult") -> None:
    columns = ("network", "family", "measured", "predicted", "error", "90 % interval", "holds", "exact", "")
    show_table(columns, [_row(one) for one in result.networks], left=2, title=result.target)
    value = {score.metric: score.value for score in result.scores}
    within = next((score for score in result.scores if score.metric == "acc10"), None)
    if within is None:
        click.echo(f"{result.target}: none of the sealed networks could be judged")
        return
    again = "" if within.low is None else f" ({within.low:.0%} to {within.high:.0%} if the families were drawn again)"
    click.echo(
        f"{result.target}, predictor {result.predictor}: {counted(within.n, 'sealed network')}, families: "
        f"{within.families or 1:,}; {within.value:.0%} within ±10 %{again}, "
        f"{value['acc5']:.0%} within ±5 %, median error {value['median']:.1%}, "
        f"intervals hold {value['coverage90']:.0%}"
    )


def _row(one: "SealedNetwork") -> tuple[str, ...]:
    size = "" if one.batch == 1 else f" batch {one.batch}"
    start = (f"{one.network}{size}", one.family)
    if one.predicted_ns is None or one.low_ns is None or one.high_ns is None or one.measured_ns is None:
        return (*start, *(MISSING,) * 6, f"{one.status}: {one.reason}")
    return (
        *start,
        format_ns(one.measured_ns),
        format_ns(one.predicted_ns),
        f"{one.error:+.1%}",
        f"{format_ns(one.low_ns)} to {format_ns(one.high_ns)}",
        "yes" if one.low_ns <= one.measured_ns <= one.high_ns else "no",
        f"{one.exact_share:.0%}",
        one.status,
    )
