from opmark.bench.worker.calls import allocated_bytes
from opmark.kinds import KINDS, work_of


def test_a_row_of_a_large_table_takes_the_whole_table() -> None:
    kind = KINDS.load("gather")
    kernel = kind.kernel(kind.parameters(op="gather", shape=(10_000, 100), indices=(4,), axis=0, dtype="float32"))
    table = 10_000 * 100 * 4
    assert work_of(kernel).moved_bytes < 10_000
    for language in ("onnx", "aten"):
        assert table < allocated_bytes(kernel, language) < table + 10_000


def test_a_product_takes_what_it_moves() -> None:
    kind = KINDS.load("gemm")
    kernel = kind.kernel(kind.parameters(m=64, k=64, n=64, dtype="float32"))
    moved = work_of(kernel).moved_bytes
    assert moved <= allocated_bytes(kernel, "onnx") <= 1.1 * moved
