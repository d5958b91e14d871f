"""The CUDA backend as far as it can be told without a GPU, and a whole run on one made of numbers."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.fake import COMMAND, FAULTY_FOLDER
from tests.bench.fake_gpu import FakeGpu

from opmark.bench import backends
from opmark.bench.backends import torch_cuda
from opmark.bench.backends.torch_cuda import BACKEND, TorchCuda, cuda_call
from opmark.bench.clock.machine import device_slug
from opmark.bench.clock.protocol import FULL, QUICK
from opmark.bench.run.environment import measured_device, probe
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Suite
from opmark.bench.worker.backend import BACKENDS, adapted, backend_of
from opmark.bench.worker.gpu_timing import GpuDriver
from opmark.core import registry
from opmark.core.errors import UnavailableError, UsageError
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.folding import look_of
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.records import Block, decode, encode
from opmark.kinds import KINDS, kind_of

SUITE = Suite(
    name="cards",
    targets=("fakegpu-t1",),
    quality="quick",
    kinds={"gemm": KindSpec(count=4), "attention": KindSpec(count=3), "elementwise": KindSpec(count=3)},
)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_cuda, "gpu_facts", lambda: {"gpu": "NVIDIA H200", "ecc": True, "driver": "570.86"})


@pytest.fixture
def fake_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(FAULTY_FOLDER)])
    registry._module_names.cache_clear()
    yield
    registry._module_names.cache_clear()


def test_its_name_is_the_suites(card: None):
    assert backend_of("torch-cuda-t1") is BACKENDS.load("torch-cuda")
    (target,) = BACKEND.targets("some-processor")
    assert target.name == "torch-cuda-t1"
    # A GPU target's device is the GPU, whatever processor feeds it.
    assert target.device == "nvidia-h200"


def test_the_environment_is_the_gpus_and_holds_its_facts(card: None):
    found = probe([BACKEND])
    assert found.device == "nvidia-h200"
    assert found.checked["torch-cuda.ecc"] is True
    assert found.checked["torch-cuda.driver"] == "570.86"
    assert {"torch-cuda.version", "torch-cuda.cuda", "torch-cuda.cudnn", "torch-cuda.tf32_product"} <= set(
        found.checked
    )
    assert measured_device([BACKEND, BACKENDS.load("null")]) == device_slug()


def test_caches_are_those_of_the_measured_device(card: None, monkeypatch: pytest.MonkeyPatch):
    known = {"multiprocessors": 132, "level1_bytes": 228 << 10, "level2_bytes": 50 << 20, "last_level_bytes": 50 << 20}
    monkeypatch.setattr(TorchCuda, "hardware", lambda _: known)
    assert known.items() <= probe([BACKEND]).checked.items()
    # A run about the processor beside a GPU: its own caches.
    both = probe([BACKEND, BACKENDS.load("null")]).checked
    assert "multiprocessors" not in both
    assert both["last_level_bytes"] == probe([BACKENDS.load("null")]).checked["last_level_bytes"]


def test_another_card_is_another_environment(monkeypatch: pytest.MonkeyPatch, card: None):
    first = probe([BACKEND])
    monkeypatch.setattr(torch_cuda, "gpu_facts", lambda: {"gpu": "NVIDIA H200", "ecc": False, "driver": "570.86"})
    assert set(first.differences(probe([BACKEND]))) == {"torch-cuda.ecc"}


def test_one_run_is_about_one_device(card: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TorchCuda, "unavailable", lambda _: None)
    suite = Suite(name="both", targets=("null-t1", "torch-cuda-t1"), kinds={"gemm": KindSpec(count=1)})
    with pytest.raises(UsageError, match="nvidia-h200"):
        plan(suite)


def test_without_a_gpu_it_says_so():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    reason = BACKEND.unavailable()
    assert reason is not None
    assert "CUDA" in reason
    with pytest.raises(UnavailableError, match="torch-cuda-t1"):
        plan(Suite(name="gpu", targets=("torch-cuda-t1",), kinds={"gemm": KindSpec(count=1)}))


def test_rules_reach_every_target_of_the_device(card: None):
    assert adapted(FULL, BACKEND.targets("d")) == BACKEND.adapt(FULL)
    assert adapted(QUICK, BACKENDS.load("null").targets("d")) is QUICK


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_is_asked_for_by_the_name_all_devices_share(masked: bool, kv_heads: int):
    kind = KINDS.load("attention")
    mask = {"mask": (2, 1, 8, 8), "mask_dtype": "float32"} if masked else {}
    shape = {"batch": 2, "heads": 4, "kv_heads": kv_heads, "query_length": 8, "key_length": 8}
    parameters = kind.parameters(**shape, head_size=16, value_size=16, variant="flash", flat=True, **mask)
    made = kind.to_aten(parameters)
    assert made is not None
    call = cuda_call(made)
    assert call.op == "scaled_dot_product_attention.default"
    assert call.keywords == ({"enable_gqa": True} if kv_heads == 2 else {})
    assert [spec.shape for spec in call.tensors] == [spec.shape for spec in made.tensors]
    assert call.strides == made.strides
    # On the processor it is the same mathematics, so that it can be made here.
    torch = pytest.importorskip("torch")
    from opmark.bench.backends._torch.calls import prepared_calls

    prepared = prepared_calls(call, copies=1, chain=False, rotated=True)
    assert tuple(prepared._kept[0].shape) == (2, 4, 8, 16)
    assert isinstance(prepared._kept[0], torch.Tensor)
    prepared.close()


def test_calls_make_their_tensors_on_the_gpu():
    call = AtenCall(
        op="arange.default", arguments=(8,), keywords={"device": "cpu"}, outputs=(TensorSpec((8,), "int64"),)
    )
    assert cuda_call(call).keywords == {"device": "cuda"}
    backward = AtenCall(op="_scaled_dot_product_flash_attention_for_cpu_backward.default", arguments=(), outputs=())
    with pytest.raises(UnavailableError, match="processors only"):
        cuda_call(backward)


def test_every_kind_that_is_drawn_has_a_call_for_a_gpu():
    suite = dataclasses.replace(
        SUITE,
        targets=("torch-eager-t1",),
        kinds={
            name: KindSpec(count=3)
            for name in ("conv", "gemm", "matmul", "attention", "norm", "softmax", "gather", "pool")
        },
    )
    for trial in plan(suite).kernels:
        kernel = BACKEND.as_run(trial.kernel)
        kind = kind_of(kernel)
        call = kind.to_aten(kind.parse(kernel))
        assert call is not None
        assert "for_cpu" not in cuda_call(call).op


def test_the_median_travels_in_the_journal():
    ns = tuple(float(value) for value in range(100, 120))
    block = Block(
        trial="t",
        label="hot",
        process=0,
        round=0,
        construction="single",
        copies=1,
        base_copies=0,
        calls=1,
        ns=ns,
        clean="1" * 20,
        label_quantile=0.5,
        enqueue_ns=4_000.0,
        clocks_mhz=(1500.0,) * 20,
    )
    again = decode(json.loads(json.dumps(encode(block))))
    assert again == block
    assert median(look_of(block, {}, None, overhead_ns=50.0).ns) == median(ns)
    plain = dataclasses.replace(block, label_quantile=0.1, enqueue_ns=None, clocks_mhz=())
    # A processor's blocks are written as they always were.
    assert not {"label_quantile", "enqueue_ns", "clocks_mhz"} & set(encode(plain))
    assert median(look_of(plain, {}, None, overhead_ns=50.0).ns) == pytest.approx(median(ns) - 50.0)


def test_a_driver_is_opened_once():
    opened: list[FakeGpu] = []

    def open_driver() -> GpuDriver:
        opened.append(FakeGpu())
        return opened[-1]

    backend = TorchCuda(open_driver)
    assert backend.driver is backend.driver
    assert len(opened) == 1


def test_a_whole_run_on_a_gpu_made_of_numbers(fake_backend: None, tmp_path: Path):
    journal = tmp_path / "gpu.jsonl"
    summary = run(SUITE, journal=journal, command=COMMAND)
    assert summary.complete
    assert summary.statuses == {"ok": summary.planned}
    found = read_journal(journal)
    assert found.environment.device == "nvidia-made-up"
    assert {target.device for target in found.targets} == {"nvidia-made-up"}
    assert {block.label_quantile for blocks in found.blocks.values() for block in blocks} == {0.5}
    hot_latency_ns = sys.modules[type(BACKENDS.load("fakegpu")).__module__].hot_latency_ns
    for row in found.measurements:
        expected = hot_latency_ns(row.kernel)
        assert row.latency_hot_ns == pytest.approx(expected, rel=1e-3)
        assert row.latency_rotated_ns == pytest.approx(2 * expected, rel=1e-3)
        assert row.overhead_ns == pytest.approx(3_000.0)
        assert row.scheduling == "device"
        if row.kernel.kind == "attention":
            assert row.kernel.params["variant"] == "efficient"


def test_a_gpus_run_goes_on_where_it_stopped(fake_backend: None, tmp_path: Path):
    journal = tmp_path / "gpu.jsonl"
    whole = run(SUITE, journal=journal, command=COMMAND)
    lines = journal.read_bytes().splitlines(keepends=True)
    # Cut in the middle of a record, half way through.
    kept = b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:20]
    journal.write_bytes(kept)
    again = run(SUITE, journal=journal, command=COMMAND)
    assert again.complete
    assert again.planned == whole.planned
    blocks = [
        (trial, block.label, block.process, block.round)
        for trial, items in read_journal(journal).blocks.items()
        for block in items
    ]
    assert len(blocks) == len(set(blocks))
