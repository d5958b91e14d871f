"""`opmark predict`, short for `opmark predictors predict`."""

from opmark.cli.commands.predictors.predict import COMMAND

__all__ = ["COMMAND"]
