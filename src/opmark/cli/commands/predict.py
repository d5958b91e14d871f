"""`opmark predict`, short for `opmark predictors predict`."""

from opmark.cli.commands.predictors.predict import predict

COMMAND = predict
