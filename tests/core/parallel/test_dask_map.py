"""Tasks on a real Dask cluster of processes: killed workers, unlike workers, and addresses that are wrong."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.parallel.cluster_tasks import always_die, crash, die_once, process, product, refuse

from opmark.core.errors import ContentError, MissingExtraError, OpMarkError, UnavailableError, UsageError
from opmark.core.parallel import dask_map
from opmark.core.parallel.dask_map import OnDask, identity
from opmark.core.parallel.task_map import MapProgress

WORKERS = 2


@pytest.fixture(scope="module")
def cluster(forked_cluster: None) -> Iterator[OnDask]:
    with OnDask(f"local:{WORKERS}") as found:
        yield found


def test_several_processes_give_results_in_the_order_of_the_tasks(cluster: OnDask) -> None:
    steps: list[MapProgress] = []
    assert cluster.in_order(product, range(9), shared=10, progress=steps.append) == [10 * task for task in range(9)]
    assert [step.done for step in steps] == list(range(10))
    assert steps[-1].left_s == 0
    assert cluster.slots == WORKERS
    processes = set(cluster.in_order(process, range(12), shared=None))
    assert len(processes) > 1
    assert os.getpid() not in processes
    assert cluster.in_order(product, (), shared=1) == []


def test_a_killed_worker_costs_its_task_only(cluster: OnDask, tmp_path: Path) -> None:
    found = cluster.in_order(die_once, range(9), shared=tmp_path)
    assert [task for task, _ in found] == list(range(9)), "no task is lost"
    assert found[3][1] == 2, "the task of the killed worker was begun twice"
    assert (tmp_path / "died").exists()


def test_a_task_that_kills_every_worker_leaves_the_others(cluster: OnDask) -> None:
    seen: list[int] = []

    def keep_all() -> None:
        for _, result in cluster.run(always_die, range(4), shared=None):
            seen.append(result)

    # Dask also blames a task that happened to be on the same worker each time: that one is tried again, alone.
    with pytest.raises(OpMarkError, match=r"^1 of 4 tasks were lost: every worker that tried it ended") as caught:
        keep_all()
    assert caught.value.hint == "the other results are stored; run the same command again"
    assert sorted(seen) == [0, 2, 3]


def test_errors_arrive_whole(cluster: OnDask) -> None:
    with pytest.raises(ContentError) as caught:
        cluster.in_order(refuse, range(5), shared=None)
    assert (str(caught.value), caught.value.hint) == ("tasks: 2: this one is wrong", "leave it out")
    with pytest.raises(UnavailableError, match="failed: ZeroDivisionError: task 0"):
        cluster.in_order(crash, range(1), shared=None)


def test_a_worker_with_other_code_is_refused(cluster: OnDask, monkeypatch: pytest.MonkeyPatch) -> None:
    assert identity()["numba"] != "absent"
    monkeypatch.setattr(dask_map, "identity", lambda: {"OpMark's code": "0" * 16})
    with pytest.raises(UnavailableError, match=r"OpMark's code on worker tcp://\S+ is \w{16}, the client has 0{16}"):
        cluster.in_order(product, range(2), shared=1)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "local",
        "local:",
        "local:0",
        "local:-1",
        "local:x",
        "local:9999",
        f"local:{'9' * 5000}",
        "scheduler",
        "tcp:",
        "4",
    ],
)
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(UsageError, match="is not a cluster") as caught:
        OnDask(address)
    assert "local:4" in (caught.value.hint or "")


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_map, "CONNECTED_WITHIN_S", 1)
    with pytest.raises(UnavailableError, match=r"no scheduler answers at tcp://127.0.0.1:9"):
        OnDask("tcp://127.0.0.1:9")


def test_without_dask_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError) as caught:
        OnDask("local:2")
    assert caught.value.hint == "pip install 'opmark[cluster]'"
