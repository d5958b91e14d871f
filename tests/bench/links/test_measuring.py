"""Links: which sizes, how transfers are taken, and what a channel must do; no GPU is needed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.bench.fake import FakeTime

from opmark.bench.links import core_channel
from opmark.bench.links import cuda_channel as _cuda_copies
from opmark.bench.links import measuring as transfers
from opmark.bench.links.channel import PAGEABLE, PINNED, Channel
from opmark.bench.links.core_channel import CoreChannel
from opmark.bench.links.measuring import CORES, affordable_bytes, channels_of, core_link, measure_links, present, sizes
from opmark.bench.run.progress import RunProgress
from opmark.core.errors import DeviceError, MeasurementError, UnavailableError
from opmark.core.hardware.link import cluster_link
from opmark.core.measurements.journal import read_journal

MOST = 1 << 16


class FakeChannel:
    """Takes 5 µs and a nanosecond per 4 bytes of a fake clock; carrying fails from `broken_from` bytes on."""

    source, destination, memory = "host", "cuda:0", PINNED

    def __init__(self, clock: FakeTime, broken_from: int = 1 << 40) -> None:
        self.clock = clock
        self.broken_from = broken_from
        self.carried: list[int] = []
        self.closed = False

    def carry(self, size_bytes: int) -> "FakeChannel":
        if size_bytes >= self.broken_from:
            raise MeasurementError(f"no room for {size_bytes}")
        self.carried.append(size_bytes)
        self.size_bytes = size_bytes
        return self

    def before(self) -> None:
        self.clock.now_ns += 1e6

    def call(self) -> None:
        self.clock.now_ns += 5000 + self.size_bytes / 4

    def overhead(self) -> Callable[[], None] | None:
        return None

    def hand_off(self) -> Callable[[], None] | None:
        return None

    def close(self) -> None:
        self.closed = True


def measured(channel: FakeChannel, journal: Path, **options: object) -> transfers.LinkReport:
    def channels(device: str, most_bytes: int) -> Iterator[Channel]:
        assert device == "cuda:0"
        yield channel

    return measure_links(
        ["cuda:0"],
        journal=journal,
        most_bytes=MOST,
        channels=channels,
        timer=channel.clock.timer(),
        **options,  # type: ignore[arg-type]
    )


def test_sizes_are_powers_of_two_and_what_lies_between() -> None:
    assert sizes(512) == (64, 96, 128, 192, 256, 384, 512)
    assert sizes()[-1] == 256 << 20
    assert affordable_bytes(1 << 12) == 1 << 12
    assert affordable_bytes(1 << 60) < 1 << 60


def test_a_link_is_measured_written_down_and_gone_on_with(tmp_path: Path) -> None:
    journal = tmp_path / "links.jsonl"
    seen: list[RunProgress] = []
    broken = FakeChannel(FakeTime(), broken_from=1024)
    first = measured(broken, journal, progress=seen.append)
    assert broken.closed
    assert [(link.status, link.reason) for link in first.links] == [("failed", "no room for 1024")]
    assert seen[0].doing == "host to cuda:0, pinned"

    channel = FakeChannel(FakeTime())
    (link,) = measured(channel, journal).links
    assert min(channel.carried) == 1024
    assert (link.source, link.destination, link.memory, link.status) == ("host", "cuda:0", "pinned", "ok")
    assert link.sizes_bytes[0] == 64
    assert link.sizes_bytes[-1] == MOST
    assert link.transfers_ns[0] == pytest.approx(5016, rel=1e-3)
    assert link.largest_error is not None
    assert link.largest_error < 0.05
    assert link.bandwidth_bytes_per_s == pytest.approx(4e9, rel=0.01)
    assert cluster_link(link, destination="gpu").points[-1] == (MOST, pytest.approx(21384, rel=0.03))
    assert read_journal(journal).links == (link,)

    third = FakeChannel(FakeTime())
    assert measured(third, journal).links == (link,)
    assert third.carried == []


def test_interrupted_transfers_do_not_count(tmp_path: Path) -> None:
    clock = FakeTime()
    channel = FakeChannel(clock)
    plain = channel.call
    turns = iter(range(10**9))

    def call() -> None:
        plain()
        if next(turns) % 3 == 0:
            clock.now_ns += 1e7
            clock.switches += 1

    channel.call = call  # type: ignore[method-assign]
    (link,) = measured(channel, tmp_path / "j.jsonl").links
    assert link.clean_fraction == pytest.approx(2 / 3, abs=0.05)
    assert link.transfers_ns[0] == pytest.approx(5016, rel=1e-3)


def test_two_cores_hand_memory_over() -> None:
    try:
        channel = CoreChannel(1 << 12)
    except UnavailableError as error:
        pytest.skip(error.message)
    try:
        copy = channel.carry(256)
        for turn in (2, 3):
            copy.before()
            copy.call()
            assert (channel._destination[:256] == turn).all()
        assert (channel._destination[256:] == 1).all()
        trip, empty = channel.hand_off(), channel.overhead()
        assert trip is not None
        assert empty is not None
        trip()
        empty()
        channel._partner.kill()
        channel._partner.wait()
        with pytest.raises(MeasurementError, match="is gone"):
            trip()
    finally:
        channel.close()


def test_the_link_between_cores_is_measured_whole(tmp_path: Path) -> None:
    if CORES not in present():
        pytest.skip("one core only")
    (link,) = measure_links([CORES], journal=tmp_path / "links.jsonl", most_bytes=1 << 12).links
    assert link.status == "ok"
    assert link.hand_off_ns is not None
    assert 0 < link.hand_off_ns < link.transfers_ns[0]
    assert cluster_link(link, source="a", destination="b").points[0][0] == 64


@pytest.mark.parametrize("cores", [1, 2])
def test_a_link_between_cores_can_be_had_without_a_journal(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    here = core_channel._cores()
    if len(here) < cores:
        pytest.skip("one core only")
    monkeypatch.setattr(core_channel, "_cores", lambda: here[:cores])
    try:
        link = core_link(1 << 12)
    finally:
        core_channel._stay_on(here)
    assert link.sizes_bytes == tuple(2.0**power for power in range(6, 13))
    assert link.hand_off_ns is not None
    assert 0 < link.hand_off_ns < link.transfers_ns[0]
    assert link.bandwidth_bytes_per_s is not None
    points = cluster_link(link, source="a", destination="b").points
    assert [ns for _, ns in points] == sorted(ns for _, ns in points)


def test_a_link_that_breaks_is_an_error_without_a_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = FakeChannel(FakeTime(), broken_from=1024)
    monkeypatch.setattr(transfers, "CoreChannel", lambda *_, **__: channel)
    with pytest.raises(MeasurementError, match="cannot be measured: no room for 1024"):
        core_link(1 << 12, timer=channel.clock.timer())
    assert channel.closed


def test_torch_copies_bytes_between_its_ends() -> None:
    torch = pytest.importorskip("torch")
    # Both ends on the host: the code path is the GPU's, but for the stream it waits on.
    channel = _cuda_copies.TorchChannel(source="host", destination="cpu", memory=PAGEABLE, most_bytes=1024)
    copy = channel.carry(512)
    channel._buffers["host"].fill_(7)
    copy.before()
    copy.call()
    assert (channel._buffers["cpu"][:512] == 7).all()
    assert (channel._buffers["cpu"][512:] == 1).all()
    assert channel.overhead() is channel.hand_off() is None
    channel.close()
    assert channel._buffers == {}
    with pytest.raises(MeasurementError, match="bytes of pageable memory on nowhere"):
        _cuda_copies.TorchChannel(source="host", destination="nowhere", memory=PAGEABLE, most_bytes=8).carry(8)
    assert torch


def test_a_gpu_has_four_channels() -> None:
    found = _cuda_copies.channels("cuda:1", 64)
    assert {(item.source, item.destination, item.memory) for item in found} == {
        ("host", "cuda:1", PINNED),
        ("cuda:1", "host", PINNED),
        ("host", "cuda:1", PAGEABLE),
        ("cuda:1", "host", PAGEABLE),
    }


def test_only_what_is_here_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_cuda_copies, "devices", lambda: ())
    with pytest.raises(DeviceError, match="no device 'cuda'"):
        list(channels_of("cuda", 64))
    with pytest.raises(UnavailableError, match="no link to measure"):
        measure_links([], journal=tmp_path / "j")
    monkeypatch.setattr(_cuda_copies, "devices", lambda: ("cuda:0", "cuda:1"))
    assert len(list(channels_of("cuda", 64))) == 8
    assert len(list(channels_of("cuda:1", 64))) == 4
    assert present()[-2:] == ("cuda:0", "cuda:1")


@pytest.mark.gpu
def test_a_real_gpu_is_measured(tmp_path: Path) -> None:
    if not _cuda_copies.devices():
        pytest.skip("no CUDA device")
    report = measure_links(["cuda:0"], journal=tmp_path / "links.jsonl", most_bytes=1 << 20)
    assert [link.status for link in report.links] == ["ok"] * 4
