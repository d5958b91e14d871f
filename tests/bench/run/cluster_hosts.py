"""Hosts for tests: each worker process of this machine plays one, and writes down that it measured."""

import os
import signal
from dataclasses import replace
from pathlib import Path

from tests.bench.forked_workers import fork_workers

from opmark.bench.run.measuring_host import HostIdentity, environment_here, host_name
from opmark.bench.suite.suite import Suite
from opmark.core.errors import UnavailableError
from opmark.core.measurements.environment import Environment

FOLDER, SERVER = "OPMARK_TEST_HOSTS", "OPMARK_TEST_FORKING"
# This file is imported by the processes of a cluster, which all fork from the server of the test.
fork_workers(os.environ.get(SERVER, ""))


def number() -> int:
    """The number of this process among all that asked."""
    folder = Path(os.environ[FOLDER])
    mine = folder / f"process-{os.getpid()}"
    for taken in range(100):
        if mine.exists():
            return int(mine.read_text())
        try:
            (folder / f"number-{taken}").touch(exist_ok=False)
        except FileExistsError:
            continue
        mine.write_text(str(taken))
        return taken
    raise AssertionError


def own() -> str:
    """Every process is a host."""
    return f"host-{number()}"


def pair() -> str:
    """Two processes are a host."""
    return f"host-{number() % 2}"


def measured(suite: Suite) -> Environment:
    """The environment of this machine."""
    with (Path(os.environ[FOLDER]) / "measured").open("a") as stream:
        stream.write(f"{os.getpid()}\n")
    return environment_here(suite)


def unlike(suite: Suite) -> Environment:
    """Another last-level cache on each host."""
    found = measured(suite)
    return replace(found, checked={**found.checked, "last_level_bytes": number() % 2})


def refusing(suite: Suite) -> Environment:
    """The first host lacks what the suite needs."""
    if number() == 0:
        raise UnavailableError("this host has no GPU")
    return environment_here(suite)


ALIKE = HostIdentity(host=own, environment=measured)
UNLIKE = HostIdentity(host=pair, environment=unlike)
ONE = HostIdentity(host=host_name, environment=measured)
REFUSING = HostIdentity(host=own, environment=refusing)


def ends_twice(_identity: HostIdentity, folder: str) -> int:
    """A task whose first two workers end; returns the number of the third."""
    number = len(list(Path(folder).glob("tried-*")))
    (Path(folder) / f"tried-{number}").touch()
    if number < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def ends_always(_identity: HostIdentity, _task: object) -> None:
    """A task whose every worker ends."""
    os.kill(os.getpid(), signal.SIGKILL)
