"""A host of a cluster that measures: its identity, its environment, and one piece of a plan at a time.

These functions run on workers. Two measurements on one host would disturb each other, so a host has one measuring
worker, and a lock besides.
"""

import contextlib
import fcntl
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opmark.bench.run.environment import probe
from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.runner import run_plan
from opmark.bench.suite.plan import Plan, plan
from opmark.bench.suite.suite import Suite
from opmark.bench.worker.backend import BACKENDS, available_target, backend_of
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.journal import read_records
from opmark.core.measurements.records import Header, Record

# One value per start of a kernel: containers of one host share it.
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOCK = "opmark-measuring.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPiece:
    """The records of a piece without its header, and the host that measured it."""

    host: str
    environment: Environment
    records: tuple[Record, ...]


def host_name() -> str:
    """The machine under all its containers."""
    with contextlib.suppress(OSError):
        return _BOOT.read_text(encoding="ascii").strip()
    return platform.node()


def environment_here(suite: Suite) -> Environment:
    """The environment in which this host measures `suite`. Raises `UnavailableError` where a target cannot be used."""
    for target in suite.targets:
        available_target(target)
    names = sorted({backend_of(target).name for target in suite.targets})
    return probe(BACKENDS.load(name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIdentity:
    """The functions by which a worker tells its host and its environment."""

    host: Callable[[], str] = host_name
    environment: Callable[[Suite], Environment] = environment_here


def environment_of_host(identity: HostIdentity, suite: Suite) -> Environment:
    """The environment of this host."""
    return identity.environment(suite)


def plan_on_host(_identity: HostIdentity, asked: tuple[Suite, tuple[int, int]]) -> Plan:
    """The plan of a suite and shard for hosts like this one."""
    suite, shard = asked
    return plan(suite, shard=shard)


def measure_piece(identity: HostIdentity, asked: tuple[Header, Plan, float | None]) -> MeasuredPiece:
    """Measure the trials of a plan, until a time in seconds since 1970 where one is given."""
    header, piece, until_s = asked
    with _alone(), tempfile.TemporaryDirectory(prefix="opmark-piece-") as folder:
        path = Path(folder) / "piece.jsonl"
        left_s = None if until_s is None else max(0.001, until_s - time.time())
        with JournalWriter(path, header) as writer:
            run_plan(piece, writer, path, budget_s=left_s)
        records, _ = read_records(path)
    environment = identity.environment(piece.suite)
    return MeasuredPiece(host=identity.host(), environment=environment, records=tuple(records[1:]))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process of this host measures for a cluster."""
    with (Path(tempfile.gettempdir()) / _LOCK).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
