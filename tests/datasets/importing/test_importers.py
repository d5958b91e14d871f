"""Published tables become releases of ours, marked as imported; a bad row is named by file, line and column."""

import io
import json
import os
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests.datasets import sample

from opmark.cli.main import cli
from opmark.core.errors import ContentError, NothingSelectedError, UnknownNameError, UsageError
from opmark.core.measurements.measurement import OK
from opmark.datasets.format.manifest import IMPORTED, LICENCE, MEASURED
from opmark.datasets.importing.cells import rows
from opmark.datasets.importing.foreign import Import, facts_of, import_tables
from opmark.datasets.importing.importer import IMPORTERS
from opmark.datasets.release.release import load
from opmark.datasets.validation.check import ERROR
from opmark.datasets.validation.validate import validate
from opmark.predictors.inputs.features import hardware_of

ROOT = Path(__file__).resolve().parents[3]
EXTERNAL = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data")) / "neusight-a100"

NEUSIGHT = """OPName,Latency,Device,Torch Version,Kernels,B,M,N,K
linear,0.05,NVIDIA A100-PCIE-40GB,p2.1.0,"a;b,c",2,29,13,141
bmm,0.03,NVIDIA A100-PCIE-40GB,p2.1.0,x,6,27,21,390
"""
ROWS = """OPName,Latency,Device,Torch Version,B,H
ln,0.046,NVIDIA A100-PCIE-40GB,p2.1.0,60,272
softmax,0.031,NVIDIA A100-PCIE-40GB,p2.1.0,127,168
add,0.026,NVIDIA A100-PCIE-40GB,p2.1.0,127,168
mulu,0.025,NVIDIA A100-PCIE-40GB,p2.1.0,127,168
powu,0.025,NVIDIA A100-PCIE-40GB,p2.1.0,127,168
gelu,0.024,NVIDIA A100-PCIE-40GB,p2.1.0,127,168
"""
CONV = """OPName,Latency,Device,Torch Version,B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,Stride,Padding
conv,0.96,NVIDIA A100 80GB PCIe,p2.1.0,38,893,326,3,5,1,0
"""
GEMM = """framework,version,device,op_name,kernel_source,gemm_dtype,m,n,k,latency
TRTLLM,1.2.0,NVIDIA H200 SXM,gemm,torch_flow,float16,1024,4096,2048,0.234
TRTLLM,1.2.0,NVIDIA H200 SXM,gemm,torch_flow,fp8,1024,4096,2048,0.134
"""
TWO_VERSIONS = "\n".join([*GEMM.splitlines()[:2], GEMM.splitlines()[1].replace("1.2.0", "1.3.0"), ""])
ATTENTION = """framework,version,device,op_name,kernel_source,batch_size,isl,num_heads,num_key_value_heads,head_dim,\
beam_width,attn_dtype,kv_cache_dtype,step,latency
VLLM,0.20.0,NVIDIA H200,context_attention,flash,2,1536,40,2,256,1,bfloat16,bfloat16,0,0.0193
VLLM,0.20.0,NVIDIA H200,context_attention,flash,2,1536,40,2,256,1,bfloat16,fp8,0,0.0183
VLLM,0.20.0,NVIDIA H200,generation_attention,flash,2,1,40,0,128,1,bfloat16,bfloat16,511,0.0093
"""
LUT = """{
    "firstconv_224_3_16_2_3": 0.7,
    "conv_88_16_24_6_1_hard_swish_5": 3.54973,
    "transformer_7_344_344_4_1_hard_swish_4_nods": 7.77516
}"""
TORCH = """Benchmarking Framework,Benchmarking Module Name,Case Name,tag,run_backward,Execution Time,Peak Memory (KB)
PyTorch,add,add_M64_N64_K128_cpu,short,False,14.4,0.0
PyTorch,add,add_M64_N64_K64_cpu_bwdall_BACKWARD,short,True,144.9,0.0
PyTorch,add_,add__M1_N1_K1_cpu_dtype_onetorch.int32_dtype_twotorch.int32,short,False,3.1,0.0
PyTorch,add,"add_in_one[64,1,64]_in_two[1,64,1]_cpu_dtypetorch.bfloat16",short,False,21.1,0.0
PyTorch,linear,linear_N4_IN256_OUT128_cpu,short,False,24.4,0.0
PyTorch,mm,mm_M64_N32_K128_cpu_dtypetorch.float32,short,False,13.0,0.0
PyTorch,matmul,matmul_M128_N64_K256_trans_aTrue_trans_bFalse_cpu,short,False,15.9,0.0
PyTorch,"bmm (actual op=bmm","bmm (actual op=bmm_B2_M8_N256_K16_cpu_dtypetorch.float32_opbmm",short,False,15.9,0.0
PyTorch,Softmax,Softmax_N1_C3_H256_W256_cpu,short,False,90.0,0.0
PyTorch,LayerNormBenchmark,"LayerNormBenchmark_dims(8,8,16)",short,False,14.2,0.0
PyTorch,GroupNormBenchmark,"GroupNormBenchmark_dims(32,8,56,56)_num_groups2",short,False,33.2,0.0
PyTorch,Conv2d,Conv2d_IC256_OC256_kernel3_stride1_N1_H16_W16_G1_pad0_cpu,short,False,500.0,0.0
PyTorch,exp_,exp__M512_N256_cpu,short,False,77.5,0.0
PyTorch,digamma,digamma_M512_N512_cpu,short,False,675.5,0.0
"""


def imported(tmp_path: Path, format_name: str, text: str, name: str = "table.csv", device: str = "acme") -> Import:
    path = tmp_path / name
    path.write_text(text)
    return import_tables([path], format_name, tmp_path / "datasets", device=device)


def kernels(found: Import) -> dict[tuple[str, str], float]:
    release = found.release
    return {
        (row.kernel.kind, str(row.kernel)): row.latency_hot_ns or 0.0
        for target in release.targets
        for row in release.measurements(target.name)
    }


def test_every_format_says_what_it_is() -> None:
    assert IMPORTERS.names() == ("aiconfigurator", "neusight", "nn-meter-lut", "torch-operator-benchmark")
    for importer in IMPORTERS:
        assert importer.title
        assert importer.source.startswith("github.com/")
        assert importer.licence in {"MIT", "Apache-2.0", "BSD-3-Clause"}
        assert importer.samples >= 1


def test_neusight_products_rows_and_convolutions(tmp_path: Path) -> None:
    found = imported(tmp_path, "neusight", NEUSIGHT)
    release = found.release
    (target,) = release.targets
    assert (target.name, target.version) == ("torch-cuda-t1", "2.1.0")
    by_kind = {row.kernel.kind: row for row in release.measurements(target.name)}
    linear = by_kind["gemm"]
    assert {name: linear.kernel.params[name] for name in "mnk"} == {"m": 58, "n": 13, "k": 141}
    assert linear.latency_hot_ns == pytest.approx(50_000)
    assert by_kind["matmul"].kernel.params["batch_a"] == (6,)
    for row in by_kind.values():
        assert (row.status, row.latency_rotated_ns, row.hot_quantiles_ns, row.samples) == (OK, None, (), 5)
    checked = release.manifest.environments[0].checked
    assert checked["hardware"] == "NVIDIA A100"
    assert hardware_of(checked).last_level_cache_bytes == 40 << 20

    by_rows = imported(tmp_path, "neusight", ROWS, "rows.csv", "rows").release.measurements(target.name)
    shapes = {(row.kernel.kind, row.kernel.params.get("op")): row.kernel.params for row in by_rows}
    assert shapes["elementwise", "add"]["shapes"] == ((127, 168), (127, 168))
    assert shapes["elementwise", "mul"]["shapes"] == ((127, 168), ())
    assert shapes["elementwise", "pow"]["exponent"] == 2.0
    assert shapes["norm", "layer"]["shape"] == (60, 272)
    (conv,) = imported(tmp_path, "neusight", CONV, "conv.csv", "conv").release.measurements(target.name)
    assert (conv.kernel.params["kernel"], conv.kernel.params["pads"]) == ((3, 3), (0, 0, 0, 0))


def test_an_imported_release_is_sound_and_says_where_it_is_from(tmp_path: Path) -> None:
    release = imported(tmp_path, "neusight", NEUSIGHT).release
    assert [finding for finding in validate(release.path) if finding.level == ERROR] == []
    again = load(release.path)
    assert again.manifest.licence == "MIT"
    assert again.manifest.provenance.kind == IMPORTED
    card = (release.path / "README.md").read_text()
    assert "**imported**" in card
    assert "github.com/sitar-lab/NeuSight" in card
    assert "licence MIT" in card
    croissant = json.loads((release.path / "croissant.json").read_text())
    assert croissant["license"].endswith("/mit")
    ours = sample.contents()
    assert (ours.licence, ours.provenance.kind) == (LICENCE, MEASURED)


def test_aiconfigurator_products_and_attention(tmp_path: Path) -> None:
    found = imported(tmp_path, "aiconfigurator", GEMM, "gemm_perf.txt")
    assert found.left_out == {"gemm of fp8": 1}
    assert found.release.targets[0].name == "trtllm-cuda-t1"
    ((kind, _),) = kernels(found)
    assert kind == "gemm"
    attention = imported(tmp_path, "aiconfigurator", ATTENTION, "attention.txt", "h200")
    assert attention.left_out == {"attention of bfloat16 over a cache of fp8": 1}
    shapes = [row.kernel.params for row in attention.release.measurements("vllm-cuda-t1")]
    by_causal = {shape["causal"]: shape for shape in shapes}
    assert (by_causal[True]["query_length"], by_causal[True]["kv_heads"]) == (1536, 2)
    assert (by_causal[False]["query_length"], by_causal[False]["key_length"]) == (1, 512)
    assert by_causal[False]["kv_heads"] == 40


def test_aiconfigurator_tables_come_as_parquet_too(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    row = dict(zip(GEMM.splitlines()[0].split(","), GEMM.splitlines()[1].split(","), strict=True))
    sizes: dict[str, object] = {**row, **{name: int(row[name]) for name in "mnk"}, "latency": float(row["latency"])}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([sizes]), tmp_path / "gemm_perf.parquet")
    found = import_tables([tmp_path / "gemm_perf.parquet"], "aiconfigurator", tmp_path / "d", device="h200")
    assert list(kernels(found).values()) == [pytest.approx(234_000)]
    bad = pyarrow.Table.from_pylist([{**sizes, "m": -1}])
    pyarrow.parquet.write_table(bad, tmp_path / "bad.parquet")
    with pytest.raises(ContentError, match=r"bad\.parquet: row 0: m: '-1' is not a whole number"):
        import_tables([tmp_path / "bad.parquet"], "aiconfigurator", tmp_path / "d", device="h201")


def test_nn_meter_blocks_are_networks_and_first_convolutions_kernels(tmp_path: Path) -> None:
    release = imported(tmp_path, "nn-meter-lut", LUT, "pixel6_lut.json", "pixel6").release
    (target,) = release.targets
    assert target.name == "tflite-cpu-t1"
    (conv,) = release.measurements(target.name)
    assert conv.kernel.params["size"] == (224, 224)
    blocks = {one.network: one for one in release.network_measurements(target.name)}
    assert blocks["conv_88_16_24_6_1_hard_swish_5"].latency_ns == pytest.approx(3_549_730)
    assert {one.family for one in blocks.values()} == {"conv", "transformer"}


def test_torch_operator_benchmark_cases(tmp_path: Path) -> None:
    found = imported(tmp_path, "torch-operator-benchmark", TORCH)
    assert found.left_out == {"backward case": 1, "case of digamma": 1}
    rows_found = found.release.measurements("torch-eager-t1")
    assert len(rows_found) == 12
    by_shape = {(row.kernel.kind, row.kernel.params.get("m")): row.kernel.params for row in rows_found}
    product = by_shape["gemm", 128]
    assert (product["k"], product["n"], product["trans_a"], product["trans_b"]) == (64, 256, False, True)
    assert by_shape["gemm", 64]["k"] == 32
    assert by_shape["matmul", 8]["n"] == 256
    dtypes = {row.kernel.params["dtype"] for row in rows_found if row.kernel.kind == "elementwise"}
    assert dtypes == {"float32", "int32", "bfloat16"}
    assert {row.latency_hot_ns for row in rows_found} >= {24_400.0}


@pytest.mark.parametrize(
    ("format_name", "text", "message"),
    [
        ("neusight", NEUSIGHT.replace("0.03,", "fast,"), r"table\.csv: line 3: Latency: 'fast' is not a number"),
        ("neusight", NEUSIGHT.replace("0.03,", "-1,"), r"line 3: Latency: -1\.0 is not a latency"),
        ("neusight", NEUSIGHT.replace("0.03,", "nan,"), r"line 3: Latency: 'nan' is not finite"),
        ("neusight", NEUSIGHT.replace("bmm,", "bmn,"), r"line 3: OPName: unknown operator 'bmn'"),
        ("neusight", NEUSIGHT.replace(",390", ",390,1"), r"line 3: 10 cells, but the header has 9"),
        ("neusight", NEUSIGHT.replace(",390", ",0"), r"line 3: K: '0' is not a whole number from 1"),
        ("neusight", NEUSIGHT.replace(",390", ","), r"line 3: K: is empty"),
        ("neusight", NEUSIGHT.replace("Latency", "Time"), r"line 1: Latency: no column 'Latency'"),
        ("neusight", NEUSIGHT.replace(",K", ",Q"), r"line 2: K: no such column"),
        ("neusight", NEUSIGHT.replace("0.03,", "0_3,"), r"line 3: Latency: '0_3' is not a number"),
        ("neusight", NEUSIGHT.replace("0.03,", "\u0663,"), r"line 3: Latency: .* is not a number"),
        ("neusight", NEUSIGHT.replace("Kernels", "Latency"), r"line 1: the column 'Latency' stands twice"),
        ("aiconfigurator", ATTENTION.replace(",isl,", ",length,"), r"line 2: isl: no such column"),
        ("aiconfigurator", GEMM.replace(",k,", ",depth,"), r"line 2: k: no such column"),
        ("neusight", "", "the file is empty"),
        ("neusight", NEUSIGHT.replace("bmm,0.03,NVIDIA A", "bmm,0.03,NVIDIA B"), r"line 3: measured on 'NVIDIA B"),
        ("neusight", NEUSIGHT.replace("x,6", '"x,6'), r"line \d: not CSV"),
        ("aiconfigurator", TWO_VERSIONS, r"line 3: trtllm-cuda-t1 of version '1\.3\.0'"),
        ("nn-meter-lut", LUT.replace("3.54973", '"3 ms"'), r"line 3: conv_88_16_24_6_1_hard_swish_5: '3 ms' is not a"),
        ("nn-meter-lut", LUT.replace("3.54973", "0"), r"line 3: conv_88.*0 is not a latency"),
        ("nn-meter-lut", LUT[:-1], r":\d+: not JSON"),
        ("nn-meter-lut", "[1]", "not an object of names"),
        ("torch-operator-benchmark", TORCH.replace("14.4,", ","), r"line 2: Execution Time: is empty"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named(tmp_path: Path, format_name: str, text: str, message: str) -> None:
    with pytest.raises(ContentError, match=message):
        imported(tmp_path, format_name, text)
    assert not (tmp_path / "datasets").exists()


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no import format is called 'neusigh'"):
        imported(tmp_path, "neusigh", NEUSIGHT)
    with pytest.raises(UsageError, match="cannot name a device"):
        imported(tmp_path, "neusight", NEUSIGHT, device="A 100")
    with pytest.raises(NothingSelectedError, match="2 × gemm of fp8"):
        imported(tmp_path, "aiconfigurator", GEMM.replace("float16", "fp8"))
    with pytest.raises(ContentError, match="no such file"):
        list(rows(tmp_path / "absent.csv", ()))
    assert facts_of("NVIDIA H100 PCIe")["multiprocessors"] == 114
    assert facts_of("Acme 1") == {}


def opmark(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_the_command_imports_and_reports(tmp_path: Path) -> None:
    (tmp_path / "gemm_perf.txt").write_text(GEMM)
    common = (str(tmp_path / "gemm_perf.txt"), "--format", "aiconfigurator", "--device", "h200", "-o", str(tmp_path))
    result = opmark("datasets", "import", *common, "--fact", "last_level_bytes=52428800", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["kernels"] == 1
    assert "left out: 1 × gemm of fp8" in result.stderr
    shown = opmark("datasets", "show", str(tmp_path / "h200" / "1.0.0"))
    assert "licence Apache-2.0" in shown.stdout
    assert "imported from github.com/ai-dynamo/aiconfigurator" in shown.stdout
    assert opmark("datasets", "import", *common, "--fact", "odd").exit_code == 2
    assert opmark("datasets", "import", *common, "--format", "odd").exit_code == 2


@pytest.mark.skipif(not EXTERNAL.is_dir(), reason="OPMARK_EXTERNAL_DATA has no neusight-a100")
def test_the_published_tables_import_whole(tmp_path: Path) -> None:
    tables = sorted(path for path in (EXTERNAL / "test").glob("*.csv") if path.stem != "bmm")
    found = import_tables(tables, "neusight", tmp_path, device="a100-pcie-40gb")
    assert found.left_out == {}
    rows_found = sum(table.num_rows for table in found.release.tables.values())
    assert rows_found == 708 + 1040 + 79 + 79


@pytest.mark.parametrize(
    "case",
    [
        "add_in_one[1,,2]_in_two[1,2]_cpu_dtypetorch.float32",
        "add_in_one[,]_in_two[1]_cpu_dtypetorch.float32",
        f"linear_N{'9' * 5000}_IN256_OUT128_cpu",
        "linear_N\u0664_IN256_OUT128_cpu",
        "LayerNormBenchmark_dims(,)",
    ],
)
def test_cases_that_only_look_known_are_left_out(tmp_path: Path, case: str) -> None:
    text = f'{TORCH}PyTorch,x,"{case}",short,False,1.0,0.0\n'
    left_out = imported(tmp_path, "torch-operator-benchmark", text).left_out
    assert sum(left_out.values()) == sum(imported(tmp_path, "torch-operator-benchmark", TORCH).left_out.values()) + 1


def test_a_packed_table_is_read_like_its_text(tmp_path: Path) -> None:
    path = tmp_path / "gemm.parquet"
    pq.write_table(pyarrow.csv.read_csv(io.BytesIO(GEMM.encode())), path)
    packed = import_tables([path], "aiconfigurator", tmp_path / "packed", device="acme")
    assert kernels(packed) == kernels(imported(tmp_path, "aiconfigurator", GEMM))
    (tmp_path / "broken.parquet").write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ContentError, match=r"broken\.parquet: not a readable Parquet file"):
        import_tables([tmp_path / "broken.parquet"], "aiconfigurator", tmp_path / "packed", device="acme")
