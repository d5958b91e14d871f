"""A suite on a real Dask cluster: like hosts share a journal, unlike ones do not, and a killed worker costs a piece."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dask
import pytest
from tests.bench.forked_workers import address
from tests.bench.run.cluster_hosts import ALIKE, FOLDER, ONE, REFUSING, SERVER, UNLIKE, ends_always, ends_twice

from opmark.bench.run.cluster_run import _Hosts, renumbered, run_on_cluster
from opmark.bench.run.progress import RunProgress
from opmark.bench.run.runner import run
from opmark.bench.suite.suite import KindSpec, Suite
from opmark.core.errors import MeasurementError, OpMarkError
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.journal import read_journal, read_records
from opmark.core.measurements.records import Block, Overhead, Session
from opmark.core.parallel.dask_map import OnDask
from opmark.datasets.release.building import build

pytestmark = pytest.mark.timeout(600)
SUITE = Suite(
    name="tiny",
    targets=("null-a-t1", "null-b-t1"),
    quality="quick",
    kinds={"gemm": KindSpec(count=10), "elementwise": KindSpec(count=6)},
)
TRIALS = 32


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each target has two pieces."""
    monkeypatch.setattr("opmark.bench.run.cluster_run.KERNELS_PER_PIECE", 10)


@pytest.fixture
def folder(tmp_path: Path, forked_cluster: None) -> Iterator[Path]:
    """The folder in which the workers take their numbers; they are told its name."""
    with dask.config.set({"distributed.nanny.environ": {FOLDER: str(tmp_path), SERVER: address()}}):
        yield tmp_path


@pytest.fixture
def cluster(folder: Path) -> Iterator[OnDask]:
    with OnDask("local:2") as found:
        yield found


def journal_in(folder: Path) -> object:
    def journal_of(environment: Environment) -> Path:
        return folder / f"{environment.id[:6]}.jsonl"

    return journal_of


def check_whole(path: Path) -> None:
    """Every trial was measured, and no process or round stands for two."""
    journal = read_journal(path)
    assert set(journal.trials) == set(journal.blocks)
    assert len(journal.trials) == TRIALS
    blocks = [block for found in journal.blocks.values() for block in found]
    assert len({(block.trial, block.label, block.round) for block in blocks}) == len(blocks)
    trials = defaultdict(set)
    for block in blocks:
        trials[block.round].add(block.trial)
    assert all(len(found) == 1 for found in trials.values()), "a round is one look at one trial"
    numbers = [overhead.process for overhead in journal.overheads]
    assert len(numbers) == len(set(numbers)), "every worker has a number of its own"
    assert {block.process for block in blocks} <= set(numbers)


def holders(cluster: OnDask) -> list[str]:
    return [name for names in cluster.resources().values() for name in names if name.startswith("opmark-measuring")]


def test_like_hosts_share_a_plan_and_a_journal(cluster: OnDask, folder: Path) -> None:
    steps: list[RunProgress] = []
    (summary,) = run_on_cluster(
        SUITE,
        cluster,
        journal_of=journal_in(folder),
        identity=ALIKE,
        progress=steps.append,  # type: ignore[arg-type]
    )
    assert (summary.complete, summary.planned, summary.interrupted) == (True, TRIALS, False)
    check_whole(summary.journal)
    journal = read_journal(summary.journal)
    assert len(journal.sessions) == 2, "one per host"
    assert len(set((folder / "measured").read_text().split())) == 2
    assert len(holders(cluster)) == 2
    assert (steps[0].done, steps[-1].done, steps[-1].total, steps[-1].left_s) == (0, TRIALS, TRIALS, 0)
    assert build([summary.journal], folder / "datasets").measurements("null-a-t1")
    # the same trials as on one machine, and nothing is left
    run(SUITE, journal=folder / "here.jsonl")
    assert set(read_journal(folder / "here.jsonl").trials) == set(journal.trials)
    before = summary.journal.read_bytes()
    (again,) = run_on_cluster(SUITE, cluster, journal_of=journal_in(folder), identity=ALIKE)  # type: ignore[arg-type]
    assert again.complete
    assert summary.journal.read_bytes() == before


def test_a_killed_worker_costs_its_piece_and_another_one_of_the_host_goes_on(cluster: OnDask, folder: Path) -> None:
    killed: list[int] = []

    def kill_the_measuring_one(step: RunProgress) -> None:
        if step.done and not killed:
            processes = cluster.client.run(os.getpid)
            names = cluster.resources()
            (worker,) = [address for address, found in names.items() if any("opmark" in name for name in found)]
            killed.append(processes[worker])
            os.kill(processes[worker], signal.SIGKILL)

    (summary,) = run_on_cluster(
        SUITE,
        cluster,
        journal_of=journal_in(folder),
        identity=ONE,
        progress=kill_the_measuring_one,  # type: ignore[arg-type]
    )
    assert killed
    assert summary.complete
    check_whole(summary.journal)
    assert len(read_journal(summary.journal).sessions) == 1, "all workers are on one host"
    assert len(holders(cluster)) == 1, "never two"
    assert len(set((folder / "measured").read_text().split())) >= 2


def test_unlike_hosts_keep_journals_apart(folder: Path) -> None:
    with OnDask("local:3") as cluster:
        summaries = run_on_cluster(SUITE, cluster, journal_of=journal_in(folder), identity=UNLIKE)  # type: ignore[arg-type]
        assert len(holders(cluster)) == 2, "one measuring worker per host"
    assert len({summary.journal for summary in summaries}) == 2
    for summary in summaries:
        assert summary.complete
        check_whole(summary.journal)
    environments = [read_journal(summary.journal).environment for summary in summaries]
    assert sorted(one.checked["last_level_bytes"] for one in environments) == [0, 1]  # type: ignore[type-var]


def test_a_host_that_cannot_measure_is_left_out_and_said(cluster: OnDask, folder: Path) -> None:
    said: list[str] = []
    small = replace(SUITE, kinds={"gemm": KindSpec(count=4)})
    (summary,) = run_on_cluster(
        small,
        cluster,
        journal_of=journal_in(folder),
        identity=REFUSING,
        notice=said.append,  # type: ignore[arg-type]
    )
    assert summary.complete
    assert said == ["host host-0 does not measure: this host has no GPU"]
    with pytest.raises(OpMarkError, match="is not a target"):
        run_on_cluster(
            replace(SUITE, targets=("torch-cuda",)),
            cluster,
            journal_of=journal_in(folder),
            identity=ONE,  # type: ignore[arg-type]
        )


def test_pieces_follow_one_another(tmp_path: Path) -> None:
    run(replace(SUITE, kinds={"gemm": KindSpec(count=4)}), journal=tmp_path / "j.jsonl")
    records, _ = read_records(tmp_path / "j.jsonl")
    found = renumbered(records[1:], 100, 10)
    assert not [record for record in found if isinstance(record, Session)]
    assert len(found) == len(records) - 2
    assert min(record.round for record in found if isinstance(record, Block)) == 100
    assert min(record.process for record in found if isinstance(record, Block | Overhead)) == 10
    assert renumbered([], 5, 5) == []


def test_planning_outlives_all_workers_that_it_began_with(cluster: OnDask, folder: Path) -> None:
    hosts = _Hosts(cluster, ONE)
    assert hosts.ask(list(hosts.workers()), ends_twice, str(folder)) == 2


def test_planning_that_ends_every_worker_is_given_up(cluster: OnDask) -> None:
    hosts = _Hosts(cluster, ONE)
    with pytest.raises(MeasurementError, match="every worker that tried it ended"):
        hosts.ask(list(hosts.workers()), ends_always, None)
