"""Journals as bench writes them, for the tests of this room."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.datasets import sample

from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Environment, Fact
from opmark.core.measurements.lines import line_of
from opmark.core.measurements.records import (
    VALUES,
    Block,
    Done,
    Header,
    KernelTrial,
    NetworkTrial,
    Overhead,
    Record,
    Sentinels,
    Session,
    trial_key,
)
from opmark.kinds import work_of


def write_journal(
    path: Path,
    kernels: Sequence[Kernel],
    *,
    environment: Environment = sample.ENVIRONMENT,
    noted: Mapping[str, Fact] | None = None,
    sentinel_ns: float = 1000.0,
    memory_ns: float | None = None,
    slower: float | Callable[[Kernel], float] = 1.0,
    networks: Sequence[str] = (),
    network_slower: float = 1.0,
    beside: Mapping[str, tuple[float, ...]] | None = None,
) -> Path:
    """A finished run over `kernels` and `networks`; two processes, thirty samples each.

    Kernels take `slower` times as long as they would, networks `network_slower` times. The 31 readings `beside` each
    block's samples are none, or those given by sentinel.
    """
    target = sample.TARGET.name
    sentinels = {"compute": sentinel_ns} | ({} if memory_ns is None else {"memory": memory_ns})
    machine = replace(environment, noted=noted or environment.noted)
    records: list[Record] = [
        Header(suite="sample", suite_id="0", quality="full"),
        Session(environment=machine, targets=(sample.TARGET,), values=VALUES),
        Overhead(target=target, process=0, ns=2000.0),
        Sentinels(round=0, target=target, ns=sentinels, accepted=True),
    ]
    for kernel in kernels:
        work = work_of(kernel)
        times = slower(kernel) if callable(slower) else slower
        own_ns = times * (200 + max(work.flops / 40, work.moved_bytes / 8))
        trial = trial_key(sample.TARGET, kernel)
        records.append(KernelTrial(trial=trial, target=target, kernel=kernel, work=work))
        records += _blocks(trial, "hot", own_ns + 2000, beside)
        records += _blocks(trial, "rotated", 1.3 * own_ns + 2000, beside)
        records.append(Done(trial=trial, status="ok"))
    for name in networks:
        records.append(
            NetworkTrial(trial=name, target=target, network=name, family=name, graph_id=name, role="training")
        )
        records += _blocks(name, "network", network_slower * 3e6, beside)
        records.append(Done(trial=name, status="ok"))
    path.write_text("".join(map(line_of, records)))
    return path


def _blocks(
    trial: str, label: str, call_ns: float, beside: Mapping[str, tuple[float, ...]] | None = None
) -> list[Record]:
    return [
        Block(
            trial=trial,
            label=label,
            process=process,
            round=0,
            construction="single",
            copies=1,
            base_copies=0,
            calls=1,
            ns=tuple(call_ns * (1 + sample_number / 1000) for sample_number in range(30)),
            clean="1" * 30,
            sentinels=dict(beside or {}),
        )
        for process in range(2)
    ]
