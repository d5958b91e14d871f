"""`opmark bench`: measure kernels and networks on this machine."""

from opmark.cli.commands.bench.suites import COMMAND

__all__ = ["COMMAND"]
