"""`opmark leaderboards`: tracks, problems, placers and standings."""

from opmark.cli.commands.leaderboards.problems import COMMAND

__all__ = ["COMMAND"]
