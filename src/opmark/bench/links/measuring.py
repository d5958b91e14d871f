"""Measure the links of this machine with single transfers of every size from 64 B up."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from opmark.bench.clock.clock import Timer, machine_timer
from opmark.bench.clock.machine import processors
from opmark.bench.clock.scheduling import FIFO, NORMAL, UNFILTERED, fifo, may_use_fifo
from opmark.bench.links import cuda_channel
from opmark.bench.links.channel import Channel
from opmark.bench.links.core_channel import CoreChannel
from opmark.bench.run.environment import probe
from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.progress import RunProgress
from opmark.bench.worker.backend import BACKENDS, Backend
from opmark.core.canonical import content_id
from opmark.core.errors import DeviceError, MeasurementError, OpMarkError, UnavailableError
from opmark.core.hardware.link import LinkMeasurement, fold_link
from opmark.core.measurements.estimate import label
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.measurement import FAILED, OK, SKIPPED
from opmark.core.measurements.records import Done, Header, LinkTrial, Record, Transfer

SUITE = "links"
CORES = "cores"
LEAST_BYTES = 64
MOST_BYTES = 256 << 20
_HAND_OFFS = 300
# (longest transfer, number of transfers)
_TIERS_NS = ((100_000, 60), (1_000_000, 40), (10_000_000, 20), (float("inf"), 9))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReport:
    """The requested links and their journal."""

    journal: Path
    links: tuple[LinkMeasurement, ...]
    seconds: float


def sizes(most_bytes: int = MOST_BYTES) -> tuple[int, ...]:
    """The powers of two from 64 B, which define the model, and one size between each two, which checks it."""
    powers = []
    size = LEAST_BYTES
    while size <= most_bytes:
        powers.append(size)
        size *= 2
    return tuple(sorted([*powers, *(3 * size // 2 for size in powers[:-1])]))


def affordable_bytes(most_bytes: int = MOST_BYTES) -> int:
    """The largest power of two up to `most_bytes` with four buffers in half of the free memory."""
    import psutil

    free = psutil.virtual_memory().available
    size = LEAST_BYTES
    while 2 * size <= min(most_bytes, free // 8):
        size *= 2
    return size


def channels_of(device: str, most_bytes: int) -> Iterator[Channel]:
    """The channels of `cores`, `cuda` (every GPU) or `cuda:0`.

    Raises `UnavailableError` if there is no second core, `DeviceError` if there is no such GPU.
    """
    if device == CORES:
        yield CoreChannel(most_bytes)
        return
    for gpu in _gpus_named(device):
        yield from cuda_channel.channels(gpu, most_bytes)


def _gpus_named(device: str) -> tuple[str, ...]:
    """The GPUs that `cuda` or `cuda:0` means. Raises `DeviceError` if there are none."""
    gpus = cuda_channel.devices()
    wanted = gpus if device == "cuda" else tuple(gpu for gpu in gpus if gpu == device)
    if not wanted:
        here = ", ".join((CORES, *gpus))
        raise DeviceError(f"no device {device!r} to transfer to here", hint=f"available: {here}")
    return wanted


def present() -> tuple[str, ...]:
    """The link devices of this machine: `cores` if there are two, and all GPUs."""
    return (*((CORES,) if processors() > 1 else ()), *cuda_channel.devices())


def _runtimes(devices: Sequence[str]) -> tuple[Backend, ...]:
    """The runtime whose device owns the links: the GPU if all links are of GPUs, else the processor."""
    backend = BACKENDS.load("torch-cuda")
    on_gpu = all(device.startswith("cuda") for device in devices)
    return (backend,) if on_gpu and backend.unavailable() is None else ()


def measure_links(
    devices: Sequence[str],
    *,
    journal: Path,
    most_bytes: int = MOST_BYTES,
    progress: Callable[[RunProgress], None] = lambda _: None,
    channels: Callable[[str, int], Iterator[Channel]] = channels_of,
    timer: Timer | None = None,
) -> LinkReport:
    """Measure the links of `devices` into `journal`, without the sizes it already has.

    Raises `UnavailableError` without devices, `ContentError` if the journal belongs to another machine,
    `MeasurementError` while another run writes to it.
    """
    if not devices:
        raise UnavailableError("this machine has one core and no GPU: there is no link to measure")
    if channels is channels_of:
        # A missing GPU must leave no journal.
        for device in devices:
            if device != CORES:
                _gpus_named(device)
    start = time.monotonic()
    most_bytes = affordable_bytes(most_bytes)
    wanted = sizes(most_bytes)
    measured: list[str] = []
    header = Header(suite=SUITE, suite_id=content_id(SUITE), quality="full")
    with JournalWriter(journal, header) as writer:
        writer.start_session(probe(_runtimes(devices)), ())
        known = {key: {item.size_bytes for item in items} for key, items in writer.found.transfers.items()}
        run = _Run(writer.append, timer or machine_timer())
        for device in devices:
            for channel in channels(device, most_bytes):
                trial = LinkTrial(
                    trial=content_id([SUITE, channel.source, channel.destination, channel.memory]),
                    source=channel.source,
                    destination=channel.destination,
                    memory=channel.memory,
                )
                measured.append(trial.trial)
                if trial.trial not in writer.found.link_trials:
                    writer.append([trial])
                name = f"{trial.source} to {trial.destination}, {trial.memory}"

                def show(done: int, total: int, name: str = name) -> None:
                    seconds = time.monotonic() - start
                    progress(RunProgress(done=done, total=total, seconds=seconds, left_s=None, doing=name))

                try:
                    done = run.measure(channel, trial.trial, wanted, known.get(trial.trial, set()), show)
                finally:
                    channel.close()
                writer.append([done])
    found = read_journal(journal)
    keys = [key for key in found.link_trials if key in found.done]
    rows = tuple(row for key, row in zip(keys, found.links, strict=True) if key in measured)
    return LinkReport(journal=journal, links=rows, seconds=time.monotonic() - start)


def core_link(most_bytes: int = 64 << 20, *, timer: Timer | None = None) -> LinkMeasurement:
    """Measure the link between two cores (or within a single one) in about two seconds, without a journal.

    Raises `MeasurementError` if the memory cannot be shared.
    """
    taken: list[Record] = []
    channel = CoreChannel(most_bytes, alone=True)
    trial = LinkTrial(trial=SUITE, source=channel.source, destination=channel.destination, memory=channel.memory)
    try:
        run = _Run(taken.extend, timer or machine_timer())
        done = run.measure(channel, trial.trial, sizes(most_bytes), set(), lambda *_: None)
    finally:
        channel.close()
    if done.status != OK:
        raise MeasurementError(f"the link between cores cannot be measured: {done.reason}")
    found = [record for record in taken if isinstance(record, Transfer)]
    return fold_link(trial, done, found, suite=SUITE, environment_id="")


class _Run:
    """Takes transfers with one timer and one scheduling."""

    def __init__(self, write: Callable[[Iterable[Record]], None], timer: Timer) -> None:
        self._write = write
        self._timer = timer
        self._burst: Callable[[], AbstractContextManager[object]] = fifo if may_use_fifo() else nullcontext
        self._scheduling = UNFILTERED if timer.preemptions is None else FIFO if may_use_fifo() else NORMAL

    def measure(
        self,
        channel: Channel,
        trial: str,
        wanted: Sequence[int],
        known: set[int],
        show: Callable[[int, int], None],
    ) -> Done:
        """Measure every size that is not `known`, and return the verdict on the link."""
        try:
            trip = channel.hand_off()
            if trip is not None and 0 not in known:
                samples = self._samples(lambda: None, trip, _HAND_OFFS)
                # Half a round trip is one way; the first quarter of the samples warms up both ends.
                self._append(trial, 0, [(ns / 2, clean) for ns, clean in samples[_HAND_OFFS // 4 :]])
            empty = channel.overhead()
            fixed_ns = label([ns for ns, _ in self._samples(lambda: None, empty, 200)]) if empty else 0.0
            for index, size_bytes in enumerate(wanted):
                show(index, len(wanted))
                if size_bytes in known:
                    continue
                carried = channel.carry(size_bytes)
                (first, _), (second, _) = self._samples(carried.before, carried.call, 2)
                count = next(count for below_ns, count in _TIERS_NS if min(first, second) <= below_ns)
                taken = self._samples(carried.before, carried.call, count)
                self._append(trial, size_bytes, [(max(1.0, ns - fixed_ns), clean) for ns, clean in taken])
            show(len(wanted), len(wanted))
        except OpMarkError as error:
            status = SKIPPED if isinstance(error, UnavailableError) else FAILED
            return Done(trial=trial, status=status, reason=error.message)
        return Done(trial=trial, status=OK)

    def _samples(self, before: Callable[[], None], call: Callable[[], None], count: int) -> list[tuple[float, bool]]:
        timer = self._timer
        taken = []
        for _ in range(count):
            before()
            with self._burst():
                switches = timer.preemptions() if timer.preemptions else 0
                start_ns = timer.now_ns()
                call()
                elapsed_ns = timer.now_ns() - start_ns
                clean = timer.preemptions is None or timer.preemptions() == switches
            taken.append((float(max(1, elapsed_ns)), clean))
        return taken

    def _append(self, trial: str, size_bytes: int, samples: Sequence[tuple[float, bool]]) -> None:
        record: Record = Transfer(
            trial=trial,
            size_bytes=size_bytes,
            ns=tuple(round(ns, 1) for ns, _ in samples),
            clean="".join("1" if clean else "0" for _, clean in samples),
            scheduling=self._scheduling,
        )
        self._write([record])
