"""aiconfigurator's operator tables, `gemm_perf` and `*_attention_perf` as CSV text or Parquet, milliseconds.

ai-dynamo/aiconfigurator, `systems/data/<system>/…`. Columns: framework, version, device, op_name, kernel_source, the
shape, latency and sometimes power. Eight-bit floats, which no kind knows, and tables of communication or experts are
left out and counted.
"""

from collections.abc import Iterator
from pathlib import Path

from opmark.core.kernels.kernel import Kernel
from opmark.datasets.importing.cells import Cells, rows
from opmark.datasets.importing.importer import ImportedRow, Runtime, TableImporter, kernel_with

_NEEDED = ("framework", "version", "device", "op_name", "latency")
_DTYPES = {"float16": "float16", "bfloat16": "bfloat16", "half": "float16", "float32": "float32"}


class AiConfigurator(TableImporter):
    """Dense products and attention of serving frameworks."""

    title = "aiconfigurator's operator tables (CSV or Parquet)"
    source = "github.com/ai-dynamo/aiconfigurator"
    attribution = "NVIDIA Corporation"
    licence = "Apache-2.0"
    label = "the mean of a loop of replays"
    samples = 1

    def entries(self, path: Path) -> Iterator[ImportedRow]:
        """Read every row."""
        for cells in rows(path, _NEEDED):
            runtime = Runtime(
                backend=cells.text("framework").lower(),
                provider="cuda",
                version=cells.text("version"),
                hardware=cells.text("device"),
            )
            latency_ns = cells.latency_ns("latency", 1e6)
            found = _kernel(cells)
            if isinstance(found, str):
                yield ImportedRow(where=cells.where, runtime=runtime, left_out=found)
            else:
                yield ImportedRow(where=cells.where, runtime=runtime, latency_ns=latency_ns, kernel=found)


def _kernel(cells: Cells) -> Kernel | str:
    operator = cells.text("op_name")
    if "gemm_dtype" in cells.values:
        dtype = cells.text("gemm_dtype")
        if dtype not in _DTYPES:
            return f"gemm of {dtype}"
        return kernel_with(
            "gemm", m=cells.whole("m"), n=cells.whole("n"), k=cells.whole("k"), bias="none", dtype=_DTYPES[dtype]
        )
    if operator in {"context_attention", "generation_attention", "encoder_attention"} and "attn_dtype" in cells.values:
        return _attention(cells, operator)
    return f"operator {operator}"


def _attention(cells: Cells, operator: str) -> Kernel | str:
    dtype = cells.text("attn_dtype")
    cache = cells.text("kv_cache_dtype") if "kv_cache_dtype" in cells.values else dtype
    if dtype not in _DTYPES:
        return f"attention of {dtype}"
    if _DTYPES.get(cache) != _DTYPES[dtype]:
        return f"attention of {dtype} over a cache of {cache}"
    heads, length = cells.whole("num_heads"), cells.whole("isl")
    before = cells.whole("step", least=0) if "step" in cells.values else 0
    # tables of plain attention have no column for key heads, or zeros in it
    kv_heads = cells.whole("num_key_value_heads", least=0) if "num_key_value_heads" in cells.values else 0
    size = cells.whole("head_dim") if "head_dim" in cells.values else 128
    return kernel_with(
        "attention",
        batch=cells.whole("batch_size"),
        heads=heads,
        kv_heads=kv_heads or heads,
        query_length=1 if operator == "generation_attention" else length,
        key_length=length + before,
        head_size=size,
        value_size=size,
        causal=operator == "context_attention",
        variant="flash",
        dtype=_DTYPES[dtype],
    )


IMPORTER = AiConfigurator()
