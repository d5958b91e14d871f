"""Files that OpMark keeps beside its content: catalogues, recipes, models and records of runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.leaderboards.fidelity.test_records import RECORD
from tests.models import onnx_models
from tests.predictors import law
from tests.predictors.corun.test_fitting import LAW, gemm
from tests.readers.subject import Subject, text_file

from opmark.core.canonical import content_id, plain
from opmark.core.files import json_text, sha256, write_sealed
from opmark.core.reading import read_json
from opmark.leaderboards.fidelity.figures import fidelity_figures
from opmark.leaderboards.fidelity.records import load_record, save_record
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.pools import load_pool_recipe
from opmark.leaderboards.scoring.selection import LEFT_OUT, _read_left_out
from opmark.leaderboards.scoring.track import load_track
from opmark.leaderboards.site.origins import submission_origins
from opmark.models.graphs import shipped
from opmark.models.origin import GraphOrigin
from opmark.models.weight_files import check_weight_files
from opmark.predictors.corun.files import load_corun, save_corun
from opmark.predictors.model.bundle import load as load_bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.packing import pack, unpack
from opmark.studies.active_sampling.curve import AccuracyCurve, AccuracyPoint, TargetAccuracy, read_curve, write_curve

ROOT = Path(__file__).resolve().parents[2]
LEADERBOARDS = ROOT / "leaderboards"
BUNDLE = ROOT / "predictors" / "amd-26-2-1-2vcpu-l3-32m" / "1.0.1" / "onnxruntime-cpu-t1"
MEMBER = "softmax.json.gz"
POOLS = """schema: 1
judge_s: 1.0
candidates:
  - {model: "opt-350@training", batch: 4, catalogue: training-layers, available: {a100: 2}, goal: budget, factor: 2.0}
  - {model: m, catalogue: edge, available: {pi-4: 1}, goal: deadline, factor: 1.5, memory_share: 0.5}
"""
RECEIPT = {
    "sha256": "ab" * 32,
    "manifest": {"name": "mine", "title": "T", "authors": ["A"], "license": "MIT", "paper": "https://example.org/a"},
    "layers": ["namespaces"],
    "signed_at": 1_700_000_000,
    "signature": "cd" * 64,
}


def _catalogue(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        for part in ("devices", "clusters", "layers"):
            if not (folder / part).exists():
                (folder / part).symlink_to(LEADERBOARDS / part)
        (folder / "catalogues").mkdir(exist_ok=True)
        return Path(shutil.copy(LEADERBOARDS / "catalogues" / f"{name}.yaml", folder / "catalogues"))

    return make


def _fleet(path: Path) -> Any:
    catalogue = load_catalogue(path.parents[1], path.stem)
    return catalogue.cluster(Fleet.of({kind: min(2, offer.available) for kind, offer in catalogue.offers.items()}))


def _corun(folder: Path) -> Path:
    save_corun(LAW, folder / "null-t1.json")
    return folder / "null-t1.json"


def _slowdown(path: Path) -> Any:
    return load_corun(path), load_corun(path).interference([gemm(64, 8), gemm(512, 64)])


def _record(folder: Path) -> Path:
    path = folder / "fidelity" / "box" / "p.json"
    save_record(RECORD, path)
    return path


def _curve(folder: Path) -> Path:
    accuracy = TargetAccuracy(median=0.1, p90=0.3, acc10=0.5, n=9, held_out=0.1)
    point = AccuracyPoint(seconds=1.5, kernels=9, targets={"null-t1": accuracy})
    write_curve(AccuracyCurve(suite="small", target_error=0.05, points=(point,)), folder)
    return folder / "curve.json"


def _sealed(name: str, content: Any, *beside: tuple[str, str]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        text_file(name, "", *beside)(folder)
        write_sealed(folder / name, json_text({"schema": 1, **plain(content)}))
        return folder / name

    return make


_ORIGIN = GraphOrigin(
    model="one", language="onnx", threads=1, dimensions={"batch": 1}, content="", versions={"onnx": "1.2.3"}, code="c"
)


def _shipped(folder: Path) -> Path:
    return shipped.save(law.graph("one", law.kernels("softmax", 4)), _ORIGIN, folder)


def _stored(path: Path) -> Any:
    return shipped.stored_graph(_ORIGIN, path.parents[1], any_version=True)


def _learner(name: str) -> Callable[[Path], Path]:
    """One text of a kind's learner beside its bundle."""

    def make(folder: Path) -> Path:
        shutil.copytree(BUNDLE, folder / "b", dirs_exist_ok=True)
        (folder / name).write_text(unpack((folder / "b" / MEMBER).read_bytes(), MEMBER)[name])
        return folder / name

    return make


def _learned(path: Path) -> Any:
    """The predictions of a bundle that holds the text, with fitting checksums, as anybody can write them."""
    folder = path.parent / "b"
    texts = {**unpack((folder / MEMBER).read_bytes(), MEMBER), path.name: path.read_text(errors="replace")}
    (folder / MEMBER).write_bytes(pack(texts))
    content = read_json(folder / "manifest.json")
    content["files"][MEMBER] = sha256(folder / MEMBER)
    content["id"] = content_id({key: value for key, value in content.items() if key not in {"schema", "id"}})
    (folder / "manifest.json").write_text(json.dumps(content))
    found = CostModel(load_bundle(folder), exact=True).kernels(law.kernels("softmax", 6))
    numbers = np.concatenate([found.hot_ns, found.rotated_ns, found.low_ns, found.high_ns])
    assert np.isfinite(numbers).all()
    assert (numbers > 0).all()
    return numbers.tolist()


def _onnx(folder: Path) -> Path:
    from onnx import TensorProto

    weight = onnx_models.array("w", 4, 4)
    weight.ClearField("raw_data")
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "64")):
        weight.external_data.add(key=key, value=value)
    (folder / "w.bin").write_bytes(bytes(64))
    built = onnx_models.model([onnx_models.node("MatMul", ["x", "w"], ["y"])], {"x": (2, 4)}, ["y"], [weight])
    path: Path = onnx_models.saved(built, folder / "m.onnx")
    return path


RECORDS = (
    Subject("catalogue", _catalogue("cloud-gpus"), _fleet, cases=10),
    Subject("catalogue of layers", _catalogue("training-layers"), _fleet, cases=10),
    Subject("recipe of pools", text_file("pools.yaml", POOLS), lambda path: load_pool_recipe(path.parent), cases=20),
    Subject("co-run model", _corun, _slowdown, guarded=True),
    Subject("fidelity record", _record, lambda path: (load_record(path), fidelity_figures([load_record(path)])), True),
    Subject("accuracy curve", _curve, lambda path: read_curve(path.parent)),
    Subject(
        "left-out candidates",
        _sealed(LEFT_OUT, {"left_out": {"a": {"problem": "p", "headroom": 0.5, "reason": "r"}}}),
        lambda path: _read_left_out(path.parent),
        guarded=True,
    ),
    Subject(
        "receipt",
        _sealed("t/submissions/mine/receipt.json", RECEIPT, ("t/track.yaml", "schema: 1\ntitle: T\nversion: 1.0.0\n")),
        lambda path: submission_origins(load_track(path.parents[3], "t")),
        guarded=True,
    ),
    Subject("trees of a learner", _learner("1.hot-trees.txt"), _learned, cases=20),
    Subject("process of a learner", _learner("1.hot-smooth.json"), _learned, cases=20),
    Subject("measured kernels of a learner", _learner("measured.json"), _learned, cases=20),
    Subject("shipped graph", _shipped, _stored),
    Subject("weights beside an ONNX file", _onnx, check_weight_files),
)
