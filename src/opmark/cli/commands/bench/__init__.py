"""`opmark bench`: measure kernels and networks on this machine."""

import click

from opmark.cli.commands.bench.corun import corun
from opmark.cli.commands.bench.fusion import fusion
from opmark.cli.commands.bench.links import links
from opmark.cli.commands.bench.machine import backends, noise
from opmark.cli.commands.bench.networks import models
from opmark.cli.commands.bench.suites import list_suites, plan_suite, retest, run_suite


@click.group()
def bench() -> None:
    """Measure kernels and networks on this machine."""


for _command in (backends, corun, fusion, links, list_suites, models, noise, plan_suite, retest, run_suite):
    bench.add_command(_command)

COMMAND = bench
