"""Which blocks of a journal count."""

import pytest

from opmark.core.hardware.target import KEEPS_MEMORY, Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.counted_blocks import counted_blocks
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.records import VALUES, Block, KernelTrial, NetworkTrial, Record, Session

WORK = Work(flops=1, read_bytes=1, written_bytes=1)


def session(backend: str = "torch-eager", *, values: int = VALUES, options: tuple[str, ...] = ()) -> Session:
    target = Target(device="d", backend=backend, options=options)
    return Session(environment=Environment(device="d", checked={}), targets=(target,), values=values)


def pool(op: str, target: str = "torch-eager-t1") -> KernelTrial:
    return KernelTrial(trial=op, target=target, kernel=Kernel.of("pool", {"op": op}), work=WORK)


def block(trial: str, number: int, *, faults: float = 0.0) -> Block:
    return Block(
        trial=trial,
        label="hot",
        process=0,
        round=number,
        construction="single",
        copies=1,
        base_copies=0,
        calls=1,
        ns=(100.0,),
        clean="1",
        faults_per_call=faults,
    )


@pytest.mark.parametrize(("options", "counted"), [((KEEPS_MEMORY,), [0, 2]), ((), [0, 1, 2])])
def test_looks_on_new_pages_are_left_out_where_a_target_keeps_its_memory(
    options: tuple[str, ...], counted: list[int]
) -> None:
    network = NetworkTrial(trial="n", target="torch-eager-t1", network="net", family="f", graph_id="g", role="training")
    blocks = [block("n", 0), block("n", 1, faults=8192.0), block("n", 2, faults=20.0)]
    records: list[Record] = [session(options=options), network, *blocks]
    assert [one.round for one in counted_blocks(records)] == counted


def test_maximum_pooling_of_torch_counts_from_when_it_compared_images() -> None:
    trials = [pool("max"), pool("average")]
    earlier = [block("max", 0), block("average", 1)]
    later = [block("max", 2), block("average", 3)]
    records: list[Record] = [session(values=1), *trials, *earlier, session(), *later]
    assert [one.round for one in counted_blocks(records)] == [1, 2, 3]


def test_other_runtimes_take_as_long_for_any_values() -> None:
    records: list[Record] = [session("onnxruntime", values=1), pool("max", "onnxruntime-t1"), block("max", 0)]
    assert [one.round for one in counted_blocks(records)] == [0]


@pytest.mark.parametrize(
    ("kind", "parameters", "changed"),
    [
        ("pool", {"block": 16}, True),
        ("movement", {"block": 16}, True),
        ("conv", {"block": 16, "groups": 64}, True),
        ("conv", {"block": 16, "groups": 1}, False),
        ("conv", {"block": 0, "groups": 64}, False),
        ("pool", {"block": 8}, False),
        ("pool", {}, False),
    ],
)
def test_blocked_kernels_of_onnx_runtime_count_from_when_their_vectors_crossed_no_lines(
    kind: str, parameters: dict[str, int], changed: bool
) -> None:
    kernel = Kernel.of(kind, parameters)
    trial = KernelTrial(trial="k", target="onnxruntime-cpu-t1", kernel=kernel, work=WORK)
    records: list[Record] = [
        session("onnxruntime", values=3),
        trial,
        block("k", 0),
        session("onnxruntime", values=4),
        block("k", 1),
    ]
    assert [one.round for one in counted_blocks(records)] == ([1] if changed else [0, 1])
