"""Run a suite on the hosts of a Dask cluster: one measuring worker per host, one journal per kind of host.

Hosts with the same environment share a plan, piece by piece, and a journal that the client writes; hosts that differ in
a checked fact measure the whole suite into journals of their own. A host that loses its worker costs one piece.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.measuring_host import (
    HostIdentity,
    MeasuredPiece,
    environment_of_host,
    measure_piece,
    plan_on_host,
)
from opmark.bench.run.progress import RunProgress, RunSummary, on_interrupt
from opmark.bench.suite.plan import Plan
from opmark.bench.suite.suite import Suite
from opmark.core.errors import MeasurementError, OpMarkError, UnavailableError
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.records import (
    Block,
    Done,
    Header,
    KernelTrial,
    NetworkTrial,
    Overhead,
    Record,
    Trial,
)
from opmark.core.parallel.dask_map import OnDask

# A network takes as long as many kernels; a piece takes minutes, so that little is lost with its worker.
KERNELS_PER_PIECE, NETWORKS_PER_PIECE = 48, 2
LOOKED_AT_EVERY_S = 2.0
# Without any worker of a kind of host for this long, the run ends; it continues with the next one.
PATIENCE_S = 300.0
# A worker that ended while it planned is started again by then, where its cluster does so; so often is it tried.
NEW_WORKER_WITHIN_S, PLANNED_AT_MOST = 60.0, 3


@dataclass(kw_only=True)
class _Group:
    """Hosts with one environment, their journal, and the pieces of the plan that are left."""

    environment: Environment
    hosts: list[str]
    path: Path
    plan: Plan
    writer: JournalWriter
    pieces: list[Plan]
    done: set[str]
    rounds: int
    processes: int
    done_before: int = 0
    sessions: set[str] = field(default_factory=set)
    alone_since_s: float = 0.0

    @property
    def resource(self) -> str:
        """The resource that only a measuring worker of these hosts has."""
        return f"opmark-measuring-{self.environment.id}"

    @property
    def planned(self) -> int:
        """The number of trials that were measured, or cannot be."""
        return sum(trial.trial in self.done for trial in self.plan.trials)


def run_on_cluster(
    suite: Suite,
    cluster: OnDask,
    *,
    journal_of: Callable[[Environment], Path],
    budget_s: float | None = None,
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[RunProgress], None] = lambda _: None,
    notice: Callable[[str], None] = lambda _: None,
    identity: HostIdentity | None = None,
) -> list[RunSummary]:
    """Measure `suite` on every host of the cluster; returns one summary per kind of host.

    `journal_of` gives the journal of an environment, which is continued. `notice` hears which hosts cannot measure. An
    interruption leaves out the pieces that are under way. Raises `UnavailableError` where no host can measure, or where
    all hosts of a kind are gone.
    """
    header = Header(suite=suite.name, suite_id=suite.id, quality=suite.quality)
    hosts_of = _Hosts(cluster, identity or HostIdentity())
    with ExitStack() as stack:
        groups = []
        for environment, hosts in hosts_of.kinds(suite, notice):
            path = journal_of(environment)
            plan = hosts_of.ask(hosts, plan_on_host, (suite, shard))
            writer = stack.enter_context(JournalWriter(path, header))
            groups.append(_group(environment, hosts, path, plan, writer))
        return _ClusterRun(hosts_of, groups, header, budget_s=budget_s or suite.budget_s, progress=progress).go()


class _Hosts:
    """The hosts of a cluster, as its workers tell them."""

    def __init__(self, cluster: OnDask, identity: HostIdentity) -> None:
        self.cluster, self.identity = cluster, identity

    def workers(self) -> dict[str, list[str]]:
        """The addresses of all workers by host, in a fixed order."""
        found: dict[str, list[str]] = defaultdict(list)
        for address, host in self.cluster.client.run(self.identity.host, on_error="ignore").items():
            found[host].append(address)
        return {host: sorted(addresses) for host, addresses in found.items()}

    def ask(self, hosts: Sequence[str], function: Callable[[HostIdentity, Any], Any], task: object) -> Any:
        """The result of one task on a worker of `hosts`, on later ones where all of these end.

        Dask would wait for ever for the addresses of workers that are gone. Raises `UnavailableError` where no new one
        comes, `MeasurementError` where every worker that tries it ends.
        """
        for _ in range(PLANNED_AT_MOST):
            workers = self._awaited(hosts)
            future = self.cluster.submit(function, self.identity, task, workers=workers)
            while not self.cluster.first_ended([future], LOOKED_AT_EVERY_S):
                if not self.cluster.resources().keys() & set(workers):
                    break
            else:
                if reason := self.cluster.lost(future):
                    raise MeasurementError(f"the cluster cannot plan: {reason}")
                return future.result()
            self.cluster.client.cancel([future])
        raise MeasurementError("the cluster cannot plan: every worker that tried it ended")

    def _awaited(self, hosts: Sequence[str]) -> list[str]:
        """The addresses of the workers of `hosts`, as soon as there are any. Raises `UnavailableError`."""
        until_s = time.monotonic() + NEW_WORKER_WITHIN_S
        while time.monotonic() < until_s:
            if workers := [address for host, found in self.workers().items() if host in hosts for address in found]:
                return workers
            time.sleep(LOOKED_AT_EVERY_S)
        raise UnavailableError("a host of the cluster is gone", hint="run the same command again")

    def kinds(self, suite: Suite, notice: Callable[[str], None]) -> list[tuple[Environment, list[str]]]:
        """The hosts by environment. Raises `UnavailableError` where no host can measure the suite."""
        kinds: dict[str, tuple[Environment, list[str]]] = {}
        refused: OpMarkError | None = None
        for host in sorted(self.workers()):
            try:
                environment: Environment = self.ask([host], environment_of_host, suite)
            except OpMarkError as error:
                notice(f"host {host} does not measure: {error}")
                refused = error
                continue
            kinds.setdefault(environment.id, (environment, []))[1].append(host)
        if not kinds:
            raise refused or UnavailableError("the cluster has no worker")
        return list(kinds.values())


def _group(environment: Environment, hosts: list[str], path: Path, plan: Plan, writer: JournalWriter) -> _Group:
    found = writer.found
    done = {key for key, blocks in found.blocks.items() if blocks} | found.done.keys()
    numbers = [block.process for blocks in found.blocks.values() for block in blocks]
    writer.found = replace(found, blocks={})
    left = [trial for trial in plan.trials if trial.trial not in done]
    group = _Group(
        environment=environment,
        hosts=hosts,
        path=path,
        plan=plan,
        writer=writer,
        pieces=list(_pieces(plan, left)),
        done=done,
        rounds=found.rounds,
        processes=1 + max([*numbers, *(overhead.process for overhead in found.overheads)], default=-1),
    )
    group.done_before = group.planned
    return group


def _pieces(plan: Plan, trials: Sequence[Trial]) -> Iterator[Plan]:
    """The trials of a plan in pieces of one target: networks first, and targets in turn."""
    queues: dict[tuple[bool, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        queues[isinstance(trial, KernelTrial), trial.target].append(trial)
    sizes = {key: len(queue) for key, queue in queues.items()}
    while queues:
        key = min(queues, key=lambda key: (key[0], -len(queues[key]) / sizes[key]))
        count = KERNELS_PER_PIECE if key[0] else NETWORKS_PER_PIECE
        taken, queues[key] = queues[key][:count], queues[key][count:]
        if not queues[key]:
            del queues[key]
        yield replace(
            plan,
            targets=tuple(target for target in plan.targets if target.name == key[1]),
            kernels=tuple(trial for trial in taken if isinstance(trial, KernelTrial)),
            networks=tuple(trial for trial in taken if isinstance(trial, NetworkTrial)),
            models={trial.trial: plan.models[trial.trial] for trial in taken if trial.trial in plan.models},
        )


class _ClusterRun:
    """The state of one run on a cluster."""

    def __init__(
        self,
        hosts: _Hosts,
        groups: Sequence[_Group],
        header: Header,
        *,
        budget_s: float | None,
        progress: Callable[[RunProgress], None],
    ) -> None:
        self._hosts, self._cluster = hosts, hosts.cluster
        self._groups, self._progress, self._header = groups, progress, header
        self._start = time.monotonic()
        self._until_s = time.time() + budget_s if budget_s else None
        self._running: dict[Any, tuple[_Group, Plan]] = {}
        self._stopped = False
        self._lost = 0

    def go(self) -> list[RunSummary]:
        """Measure until nothing is left, the budget is spent, or the run is interrupted."""
        try:
            with on_interrupt(self._stop):
                self._report()
                while not self._stopped:
                    self._appoint()
                    self._submit()
                    if not self._running:
                        break
                    for future in self._cluster.first_ended(list(self._running), LOOKED_AT_EVERY_S):
                        self._take(future)
        finally:
            self._cluster.client.cancel(list(self._running))
        if self._lost:
            raise MeasurementError(
                f"{self._lost} pieces of the plan were lost: every worker that tried them ended",
                hint="the other trials are stored; run the same command again",
            )
        return [self._summary(group) for group in self._groups]

    def _stop(self) -> None:
        self._stopped = True

    def _is_over(self) -> bool:
        return self._stopped or (self._until_s is not None and time.time() > self._until_s)

    def _appoint(self) -> None:
        """Give every host exactly one measuring worker, again where the worker of before has ended.

        Raises `UnavailableError` where all hosts of a kind are gone for long.
        """
        resources = self._cluster.resources()
        workers: Mapping[str, list[str]] | None = None
        for group in self._groups:
            if not any(of is group for of, _ in self._running.values()) and (self._is_over() or not group.pieces):
                continue
            having = {address for address, names in resources.items() if group.resource in names}
            if len(having) < len(group.hosts):
                workers = workers or self._hosts.workers()
                for host in group.hosts:
                    here = workers.get(host, [])
                    if here and not having.intersection(here):
                        self._cluster.grant(here[0], group.resource)
                        having.add(here[0])
                        self._recall(group)
            self._check_patience(group, alive=bool(having))

    def _recall(self, group: _Group) -> None:
        """Take back the pieces that no worker has: Dask does not look at them again when a worker gets a resource."""
        begun = self._cluster.begun()
        for future, (of, piece) in list(self._running.items()):
            if of is group and future.key not in begun and not future.done():
                del self._running[future]
                self._cluster.client.cancel([future])
                group.pieces.insert(0, piece)

    def _check_patience(self, group: _Group, *, alive: bool) -> None:
        now = time.monotonic()
        group.alone_since_s = 0.0 if alive else group.alone_since_s or now
        if group.alone_since_s and now - group.alone_since_s > PATIENCE_S:
            raise UnavailableError(
                f"no worker is left on the hosts of {group.environment.device}",
                hint="what was measured is stored; start workers and run the same command again",
            )

    def _submit(self) -> None:
        """Keep one piece more at the scheduler than there are hosts."""
        for group in self._groups:
            mine = sum(of is group for of, _ in self._running.values())
            while group.pieces and mine <= len(group.hosts) and not self._is_over():
                piece = group.pieces.pop(0)
                future = self._cluster.submit(
                    measure_piece,
                    self._hosts.identity,
                    (self._header, piece, self._until_s),
                    resource=group.resource,
                )
                self._running[future] = (group, piece)
                mine += 1

    def _take(self, future: Any) -> None:
        group, _ = self._running.pop(future)
        if self._cluster.lost(future):
            self._lost += 1
            return
        found: MeasuredPiece = future.result()
        if found.host not in group.sessions:
            group.writer.start_session(found.environment, group.plan.targets)
            group.sessions.add(found.host)
        records = renumbered(found.records, group.rounds, group.processes)
        group.writer.append(records)
        group.done |= {record.trial for record in records if isinstance(record, Block | Done)}
        for record in records:
            if isinstance(record, Block):
                group.rounds = max(group.rounds, record.round + 1)
            if isinstance(record, Block | Overhead):
                group.processes = max(group.processes, record.process + 1)
        self._report()

    def _report(self) -> None:
        done, total = sum(group.planned for group in self._groups), sum(len(one.plan.trials) for one in self._groups)
        seconds = time.monotonic() - self._start
        fresh = done - sum(group.done_before for group in self._groups)
        left_s = seconds / fresh * (total - done) if fresh else None
        if self._until_s is not None:
            remaining = max(0.0, self._until_s - time.time())
            left_s = min(left_s, remaining) if left_s is not None else remaining
        hosts = sum(len(group.hosts) for group in self._groups)
        doing = f"{hosts} host{'' if hosts == 1 else 's'}"
        self._progress(RunProgress(done=done, total=total, seconds=seconds, left_s=left_s, doing=doing))

    def _summary(self, group: _Group) -> RunSummary:
        journal = read_journal(group.path)
        keys = {trial.trial for trial in group.plan.trials}
        statuses = Counter(found.status for key, found in journal.labels.items() if key in keys)
        statuses.update(done.status for key, done in journal.done.items() if key in keys and key not in journal.labels)
        return RunSummary(
            journal=group.path,
            suite=group.plan.suite.name,
            planned=len(group.plan.trials),
            done=group.planned,
            statuses=dict(sorted(statuses.items())),
            seconds=time.monotonic() - self._start,
            interrupted=self._stopped,
        )


def renumbered(records: Sequence[Record], rounds: int, processes: int) -> list[Record]:
    """The records of a piece as they follow a journal with so many rounds and processes, without its session."""
    found: list[Record] = []
    for record in records:
        if isinstance(record, Block):
            found.append(replace(record, round=rounds + record.round, process=processes + record.process))
        elif isinstance(record, Overhead):
            found.append(replace(record, process=processes + record.process))
        elif isinstance(record, KernelTrial | NetworkTrial | Done):
            found.append(record)
    return found
