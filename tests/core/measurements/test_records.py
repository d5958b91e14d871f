import json

import pytest

from opmark.core.errors import ContentError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.records import (
    Block,
    Done,
    FusionRound,
    FusionTrial,
    Header,
    KernelTrial,
    LinkTrial,
    NetworkTrial,
    Overhead,
    Record,
    Sentinels,
    Session,
    Transfer,
    decode,
    encode,
)

RECORDS: list[Record] = [
    Header(suite="s", suite_id="1", quality="full"),
    Session(
        environment=Environment(device="d", checked={"a": 1}, noted={"b": None}),
        targets=(Target(device="d", backend="null", options=("x=1",)),),
    ),
    Overhead(target="null-t1", process=0, ns=1.5),
    KernelTrial(
        trial="k",
        target="null-t1",
        kernel=Kernel.of("gemm", {"m": 1, "shape": (2, 3)}),
        work=Work(flops=1, read_bytes=2, written_bytes=3),
    ),
    NetworkTrial(trial="n", target="null-t1", network="net", family="f", graph_id="g", role="training"),
    Block(
        trial="k",
        label="hot",
        process=1,
        round=2,
        construction="chain",
        copies=4,
        base_copies=2,
        calls=3,
        ns=(4.0, 5.0),
        clean="10",
        base_ns=(2.0,),
        base_clean="1",
    ),
    FusionTrial(trial="f", target="null-t1", pair="conv-relu", first="conv", second="relu", shape="1x8x8x8"),
    FusionRound(
        trial="f",
        process=0,
        first_ns=(4.0, 5.0),
        second_ns=(1.0, 2.0),
        block_ns=(4.0, 6.0),
        clean=("10", "11", "01"),
        white_box="fused",
        kernels="FusedConv(conv relu)",
    ),
    LinkTrial(trial="l", source="core0", destination="core1", memory="shared"),
    Transfer(trial="l", size_bytes=64, ns=(10.0, 11.0), clean="11"),
    Sentinels(round=2, target="null-t1", ns={"compute": 1.0}, accepted=True),
    Done(trial="k", status="failed", reason="killed by SIGSEGV"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_every_record_survives_the_journal(record: Record) -> None:
    assert decode(json.loads(json.dumps(encode(record)))) == record


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ns": [1.0, float("nan")]}, "ns.1: input should be a finite number"),
        ({"ns": [1.0, -1.0]}, "positive number"),
        ({"clean": "1"}, "2 samples with flags"),
        ({"clean": "1x"}, "2 samples with flags"),
        ({"label": "warm"}, "label"),
        ({"copies": 2}, "do not fit together"),
        ({"ns": [], "clean": ""}, "do not fit together"),
        ({"colour": 1}, "colour"),
        ({"ns": 3}, "block"),
    ],
)
def test_a_damaged_block_is_refused_with_what_is_wrong(change: dict[str, object], said: str) -> None:
    content = {**encode(RECORDS[5]), **change}
    with pytest.raises(ContentError, match=said):
        decode(content)


@pytest.mark.parametrize(
    ("index", "change", "said"),
    [
        (7, {"second_ns": [1.0]}, "second_ns: 1 samples"),
        (7, {"block_ns": [], "clean": ["10", "11", ""]}, "block_ns: no samples"),
        (7, {"clean": ["10", "11"]}, "clean.2: missing"),
        (9, {"ns": [], "clean": ""}, "ns: no samples"),
        (9, {"ns": [0.0, 1.0]}, "positive number"),
    ],
)
def test_damaged_rounds_and_transfers_are_refused(index: int, change: dict[str, object], said: str) -> None:
    with pytest.raises(ContentError, match=said):
        decode({**encode(RECORDS[index]), **change})


@pytest.mark.parametrize("content", [None, 3, [], {}, {"type": "poem"}, {"type": "done", "trial": "k", "status": "?"}])
def test_what_is_no_record_is_refused(content: object) -> None:
    with pytest.raises(ContentError):
        decode(content)
