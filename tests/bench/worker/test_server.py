import gc
import io
import json
import math
from typing import Any

import pytest

from opmark.bench.clock.clock import Timer
from opmark.bench.clock.protocol import FULL, PROTOCOLS, QUICK, protocol_from, protocol_named
from opmark.bench.worker import server as worker
from opmark.core.canonical import plain
from opmark.core.errors import UnknownNameError
from opmark.core.hardware.target import Target
from opmark.kinds import KINDS

TARGET = Target(device="d", backend="null", provider="a", version="1.0", options=("x=1",))
START = {
    "do": "start",
    "target": plain(TARGET),
    "protocol": plain(QUICK),
    "level2_bytes": 1 << 20,
    "last_level_bytes": 1 << 25,
}


def served(*requests: dict[str, Any]) -> list[dict[str, Any]]:
    answers = io.StringIO()
    worker.serve(io.StringIO("".join(json.dumps(request) + "\n" for request in requests)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def kernel(kind: str, **parameters: Any) -> dict[str, Any]:
    family = KINDS.load(kind)
    content = plain(family.parameters(**parameters))
    return {"do": "kernel", "labels": ["hot"], "kernel": {"kind": kind, "parameters": content}}


def test_every_request_has_an_answer_whatever_happens() -> None:
    gemm = kernel("gemm", m=8, k=8, n=8, dtype="float32")
    broken = {**gemm, "kernel": {"kind": "gemm", "parameters": {"m": 1}}}
    unknown = {**gemm, "kernel": {"kind": "poem", "parameters": {}}}
    answers = served(START, gemm, broken, unknown, {"do": "nonsense"}, {**gemm, "labels": ["hot", "rotated"]})
    assert answers[0]["overhead_ns"] == pytest.approx(2000, rel=0.02)
    (block,) = answers[1]["blocks"]
    assert len(block["ns"]) == len(block["sentinels"]["memory"]) - 1 == 12
    assert "not a gemm kernel" in answers[2]["skipped"]
    assert "no kind is called 'poem'" in answers[3]["skipped"]
    assert "nonsense" in answers[4]["failed"]
    assert [item["label"] for item in answers[5]["blocks"]] == ["hot", "rotated"]
    assert answers[5]["waited_s"] == 0.0


@pytest.mark.parametrize(("long_ns", "is_frozen"), [(0, True), (math.inf, False)])
def test_what_stays_after_a_long_collection_is_not_collected_again(
    monkeypatch: pytest.MonkeyPatch, long_ns: float, is_frozen: bool
) -> None:
    monkeypatch.setattr(worker, "_LONG_COLLECTION_NS", long_ns)
    gemm = kernel("gemm", m=8, k=8, n=8, dtype="float32")
    try:
        started = worker.Worker(START)
        before = gc.get_freeze_count()
        stays = [list(range(one)) for one in range(1000)]
        started.kernel(gemm)
        assert (gc.get_freeze_count() >= before + len(stays)) is is_frozen
    finally:
        gc.unfreeze()


def test_what_is_asked_before_the_start_fails_and_nothing_more() -> None:
    first, second = served({"do": "started"}, START)
    assert "failed" in first
    assert "overhead_ns" in second


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_protocols_survive_the_pipe(protocol: Any) -> None:
    assert protocol_from(json.loads(json.dumps(plain(protocol)))) == protocol


def test_the_presets_follow_the_rules() -> None:
    assert protocol_named("full") is FULL
    with pytest.raises(UnknownNameError):
        protocol_named("sloppy")
    assert [FULL.tier(ns).hot for ns in (9e5, 5e6, 5e7)] == [12, 5, 2]
    assert [FULL.tier(ns).rotated for ns in (9e5, 5e6, 5e7)] == [6, 3, 2]
    for protocol in PROTOCOLS.values():
        assert 200_000 <= protocol.sample_ns <= 500_000
        assert protocol.burst_ns <= 200_000_000
        assert protocol.tiers[-1].below_ns == math.inf


@pytest.mark.parametrize(
    ("pressures", "latency_ns", "scheduling", "waited_s"),
    [
        ([90.0], 1e6, "normal", 0.0),
        ([5.0], 1e7, "normal", 0.0),
        ([90.0, 40.0, 9.0], 1e7, "normal", 1.0),
        ([90.0] * 99, 1e7, "contended", FULL.gate_limit_s),
        ([None], 1e7, "normal", 0.0),
    ],
)
def test_without_priority_long_samples_wait_for_a_quiet_machine(
    monkeypatch: pytest.MonkeyPatch,
    pressures: list[float | None],
    latency_ns: float,
    scheduling: str,
    waited_s: float,
) -> None:
    seen = iter(pressures)
    slept: list[float] = []
    monkeypatch.setattr(worker, "cpu_pressure", lambda: next(seen))
    made = worker.Worker({**START, "protocol": plain(FULL)})
    made._timer = Timer(now_ns=lambda: 0, preemptions=None, faults=lambda: 0, sleep=slept.append)
    made._patience_s = FULL.gate_limit_s
    assert made._settle(latency_ns) == scheduling
    assert sum(slept) == made._waited_s == waited_s
