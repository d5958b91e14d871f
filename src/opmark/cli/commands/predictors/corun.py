"""`opmark predictors corun`: learn the slowdown of kernels by what runs on the other core."""

from pathlib import Path

import click

from opmark.cli.options import FILE, json_option, workspace
from opmark.cli.text.terminal import MISSING, show_json, show_note, show_table


@click.command(epilog="Example: opmark predictors corun bench/journals/corun.jsonl")
@click.argument("journal", type=FILE)
@json_option
@click.pass_context
def corun(ctx: click.Context, *, journal: Path, as_json: bool) -> None:
    """Learn the slowdown of co-running kernels.

    JOURNAL is one of `opmark bench corun`.

    The factor of a kernel is exp(sensitivity x pressure): its own sensitivity, and the pressure of its neighbour. One
    pair of kernels in four is set aside and judges the model. Problems with devices of several slots use its factors.
    """
    from opmark.core.errors import NothingSelectedError
    from opmark.core.measurements.corun import corun_measurements
    from opmark.core.measurements.journal import read_journal, read_records
    from opmark.predictors.corun.files import corun_path, save_corun
    from opmark.predictors.corun.fitting import fitted_slowdown

    environment = read_journal(journal).environment
    rows = corun_measurements(read_records(journal)[0])
    here = workspace(ctx)
    models, reasons = [], []
    for target in sorted({row.target for row in rows}):
        try:
            model = fitted_slowdown(
                rows,
                device=environment.device,
                target=target,
                level2_bytes=int(environment.checked["level2_bytes"] or 0),
            )
        except NothingSelectedError as error:
            reasons.append(error)
            continue
        save_corun(model, corun_path(here, environment.device, target))
        models.append(model)
    if not models:
        raise reasons[0] if reasons else NothingSelectedError("the journal has no co-run", where=str(journal))
    if as_json:
        show_json(models)
        return
    table = []
    for model in models:
        judged = model.judgement
        figures = [MISSING] * 7
        if judged is not None:
            figures = [
                str(judged.pairs),
                f"{judged.median_error:.1%}",
                f"{judged.p90_error:.1%}",
                f"{judged.no_slowdown_error:.1%}",
                f"{judged.constant_error:.1%}",
                f"{judged.noise:.1%}",
                f"{judged.median_factor:.3f}",
            ]
        table.append((model.target, f"{model.trials:,}", *figures))
    names = ("median error", "9 of 10 below", "error of 1", "of a constant", "noise", "median factor")
    show_table(("target", "trials", "held-out pairs", *names), table, left=1)
    for reason in reasons:
        show_note(str(reason))
    show_note(f"stored in {here.predictors / environment.device / 'corun'}")
