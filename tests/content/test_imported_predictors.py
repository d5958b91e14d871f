"""The shipped predictors of imported GPUs: on shapes of real transformers, and on kinds that no table holds."""

import os
from pathlib import Path

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.datasets.importing.importer import IMPORTERS
from opmark.kinds import KINDS
from opmark.predictors.model.bundle import load
from opmark.predictors.model.cost_model import CostModel

ROOT = Path(__file__).resolve().parents[2]
EXTERNAL = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data"))
SIZES = {
    "batch": 8,
    "channels_in": 64,
    "channels_out": 64,
    "size": (28, 28),
    "kernel": (3, 3),
    "stride": (1, 1),
    "dilation": (1, 1),
    "groups": 1,
}
GPUS = ("a100", "v100", "t4", "p100")


def model_of(gpu: str) -> CostModel:
    return CostModel(load(ROOT / "predictors" / f"nvidia-{gpu}" / "1.0.0" / "torch-cuda-t1"))


def kernel(kind: str, **parameters: object) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


@pytest.mark.parametrize("gpu", GPUS)
def test_a_gpu_prices_products_and_what_its_tables_lack(gpu: str) -> None:
    model = model_of(gpu)
    assert model.bundle.manifest.derives
    shape = {"kv_heads": 8, "query_length": 128, "key_length": 128, "head_size": 64, "value_size": 64}
    asked = [
        kernel("gemm", m=512, k=512, n=512),
        kernel("gemm", m=4096, k=4096, n=4096),
        kernel("attention", batch=1, heads=8, **shape, variant="efficient"),
        kernel("conv-transpose", **SIZES, pads=(1, 1, 1, 1), output_pads=(0, 0)),
    ]
    found = model.kernels(asked)
    assert np.all((found.hot_ns > 1e3) & np.isfinite(found.hot_ns))
    assert np.all((found.low_ns < found.hot_ns) & (found.hot_ns < found.high_ns))
    # 137 GFLOP in single precision: between 3 and 20 TFLOP/s on every one of these chips
    assert 137e9 / 20e3 < found.hot_ns[1] < 137e9 / 3e3


@pytest.mark.parametrize(
    ("gpu", "table", "median"),
    [("a100", "linear", 0.05), ("a100", "bmm", 0.06), ("p100", "bmm", 0.06)],
)
def test_shapes_of_real_transformers(gpu: str, table: str, median: float) -> None:
    path = EXTERNAL / f"neusight-{gpu}" / "test" / f"{table}.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not there; see OPMARK_EXTERNAL_DATA")
    rows = [row for row in IMPORTERS.load("neusight").entries(path) if row.kernel is not None]
    predicted = model_of(gpu).kernels([row.kernel for row in rows if row.kernel is not None]).hot_ns
    errors = np.abs(predicted / np.array([row.latency_ns for row in rows]) - 1)
    assert float(np.median(errors)) <= median
