"""`opmark predictors`: train and judge predictors, and predict with them."""

from opmark.cli.commands.predictors.bundles import COMMAND

__all__ = ["COMMAND"]
