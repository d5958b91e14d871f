"""`opmark predictors`: train and judge predictors, and predict with them."""

import click

from opmark.cli.commands.predictors.bundles import list_bundles, show, train
from opmark.cli.commands.predictors.corun import corun
from opmark.cli.commands.predictors.explain import explain
from opmark.cli.commands.predictors.judging import curve, evaluate, time_by_kind
from opmark.cli.commands.predictors.predict import predict
from opmark.cli.commands.predictors.transfer import transfer


@click.group(name="predictors")
def predictors() -> None:
    """Predictors: latencies of unmeasured kernels and networks.

    RELEASE is a path, DEVICE/VERSION, or DEVICE for its newest version. Without RELEASE, the newest release of the only
    device is used.
    """


for _command in (corun, curve, evaluate, explain, list_bundles, predict, show, time_by_kind, train, transfer):
    predictors.add_command(_command)

COMMAND = predictors
