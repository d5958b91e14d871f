"""Options that several commands about predictors share."""

import click

from opmark.cli import completers
from opmark.cli.options import DEFAULT_TARGET, FILE, FOLDER, SIZES, FiniteRange, missing_option, together

donor_option = click.option(
    "--donor",
    "donors",
    multiple=True,
    help="RELEASE:TARGET, a predictor's folder, or DEVICE/VERSION/TARGET; repeatable.",
)
pace_option = click.option(
    "--kernels-per-second",
    type=FiniteRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="The number of kernels the device measures per second, which gives device minutes.",
)
curve_page_option = click.option("--page", type=FILE, help="Draw the curves into this HTML file.")
release_argument = click.argument("release", required=False, shell_complete=completers.releases)
targets_option = click.option(
    "--target", "targets", multiple=True, help="A target; repeatable. Default: every target of the release."
)
prediction_options = together(
    (
        click.option(
            "--target",
            default=DEFAULT_TARGET,
            show_default=True,
            shell_complete=completers.predicted_targets,
            help="The target that runs the network: [DEVICE/]TARGET.",
        ),
        click.option(
            "--bundle",
            type=FOLDER,
            help="A predictor's folder. Default: the newest one of the target in this workspace, else the shipped one.",
        ),
        missing_option,
        *SIZES,
    )
)
