"""Where the measured time of networks goes, kind by kind."""

from pathlib import Path

import click

from opmark.cli.completers import releases
from opmark.cli.options import workspace
from opmark.cli.releases import evidence_by_target
from opmark.cli.text.terminal import counted, json_option, show_json, show_table
from opmark.core.units import format_ns


@click.command(name="time-by-kind", epilog="Example: opmark predictors time-by-kind --target onnxruntime-cpu-t1")
@click.argument("release", required=False, shell_complete=releases)
@click.option("--target", "targets", multiple=True, help="Which target; repeatable; default: every target measured.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, file_okay=False),
    help="The predictor that divides a network's time; default: the newest of the target in this workspace.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context, *, release: str | None, targets: tuple[str, ...], bundle: Path | None, as_json: bool
) -> None:
    """Show where the time of RELEASE's networks goes.

    A predictor divides each network's time among its kernels, and each network weighs as much as was measured. What no
    kind covers is `bytes-moved`: at most 1 % of the time should be in it.
    """
    from opmark.predictors.judging.time_by_kind import time_by_kind
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import find_bundle

    found = [
        time_by_kind(
            evidence,
            load(bundle or find_bundle(workspace(ctx), name, device=evidence.target.device), target_name=name),
        )
        for name, evidence in evidence_by_target(ctx, release, targets).items()
    ]
    if as_json:
        show_json(
            [
                {
                    "target": one.target,
                    "networks": one.networks,
                    "measured_ns": one.measured_ns,
                    "bytes_moved": one.bytes_moved,
                    "met": one.met,
                    "worst": dict(zip(("network", "bytes_moved"), one.worst, strict=True)),
                    "by_kind": dict(one.by_kind),
                    "between": one.between,
                }
                for one in found
            ]
        )
        return
    for one in found:
        rows = [(kind, f"{share:.2%}") for kind, share in one.by_kind]
        rows.append(("between kernels", f"{one.between:.2%}"))
        show_table(("kind", "of the time"), rows, title=one.target)
        most = f"; most in {one.worst[0]}, {one.worst[1]:.2%}" if one.bytes_moved else ""
        click.echo(
            f"{one.target}: bytes-moved holds {one.bytes_moved:.2%} of the {format_ns(one.measured_ns)} of "
            f"{counted(one.networks, 'measured network')} (target: at most 1 %, {'met' if one.met else 'missed'}){most}"
        )


COMMAND = command
