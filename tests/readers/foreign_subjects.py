"""Files that others publish or hand in: tables, plans, profiles, uploads and keys."""

import io
import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from tests.datasets import sample
from tests.datasets.importing.test_importers import ATTENTION, CONV, GEMM, NEUSIGHT, ROWS, TORCH
from tests.datasets.tampering import fit_manifest
from tests.leaderboards.making.test_importers import LINE
from tests.leaderboards.plans.test_layer_times import MODEL, layers, profile_file
from tests.leaderboards.plans.test_training_plan import content as plan
from tests.readers.subject import Subject, text_file

from opmark.datasets.format.parquet_file import read_parquet
from opmark.datasets.importing.foreign import import_tables
from opmark.datasets.release.building import build_from
from opmark.datasets.release.card import card
from opmark.datasets.release.finding import summaries
from opmark.datasets.release.network_kernels import COLUMNS, checked_network_kernels
from opmark.datasets.release.release import load as load_release
from opmark.datasets.validation.validate import validate
from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.plans.bandwidths import BETWEEN, WITHIN, load_bandwidths
from opmark.leaderboards.plans.layer_times import LayerProfiles
from opmark.leaderboards.plans.training_plan import load_plan
from opmark.leaderboards.serving.upload_archive import unpack_upload
from opmark.leaderboards.submissions.signature import own_key

PIPEDREAM = (
    LINE.format("node1", "Input0", 9.0, 0.0, 7.0, 0.0)
    + LINE.format("node2", "Conv2d(3, 8)", 1.0, 2.0, 100.0, 3_000_000.0)
    + LINE.format("node3", "LSTM(4)", 2.0, 2.0, "[50.0; 25.0]", 0.0)
    + "\tnode1 -- node2\n\tnode2 -- node3\n"
)


def _release(table: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        trials = [sample.measurement(kernel) for kernel in sample.kernels(3)]
        contents = sample.contents([*trials, sample.without_latency(sample.kernels(4)[-1])])
        return build_from([contents], folder / "datasets").path / table

    return make


def _checked(path: Path) -> Any:
    """All findings; checksums that do not fit stop no other check."""
    return [finding.message for finding in validate(path.parent)]


def _loaded(path: Path) -> Any:
    """All that a release tells, after its checksums were made to fit."""
    if path.suffix == ".parquet":
        read_parquet(path)
        fit_manifest(path.parent)
    found = load_release(path.parent)
    rows = [
        read(target.name)
        for target in found.targets
        for read in (found.measurements, found.network_measurements, found.network_retests, found.fusions)
    ]
    return rows, found.kernels, found.networks, found.links, card(found.manifest), summaries(path.parents[2])


def _network_kernels(folder: Path) -> Path:
    types = {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_()}
    values: dict[str, list[Any]] = {"string": ["a", "b"], "int64": [1, 2], "bool": [True, False]}
    columns = {name: pa.array(values[kind], types[kind]) for name, (kind, _) in COLUMNS.items()}
    pq.write_table(pa.table(columns), folder / "network_kernels.parquet")
    return folder / "network_kernels.parquet"


def _table(path: Path) -> Any:
    return checked_network_kernels(read_parquet(path), str(path)).to_pylist()


def _imported(format_name: str) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            found = import_tables([path], format_name, Path(folder), device="acme")
            return found.release.manifest, found.left_out

    return read


def _packed_table(folder: Path) -> Path:
    path = folder / "gemm.parquet"
    pq.write_table(pyarrow.csv.read_csv(io.BytesIO(GEMM.encode())), path)
    return path


def _problem(format_name: str) -> Callable[[Path], Any]:
    return lambda path: IMPORTERS.load(format_name).read(path, ImportOptions())


def _profile(folder: Path) -> Path:
    (folder / "models.json").write_text(json.dumps([MODEL]))
    return profile_file(folder / "profiles", "M", "X", {"1": {"1": layers(2)}, "2": {"1": layers(2, 1.5)}})


def _times(path: Path) -> Any:
    folder = path.parents[2]
    import gzip

    (folder / "models.json.gz").write_bytes(gzip.compress((folder / "models.json").read_bytes()))
    profiles = LayerProfiles(folder / "profiles", folder)
    model = profiles.model_of("", 2, ["X"], "plan")
    return [profiles.layer_times(model, "X", size, 1) for size in (1, 1.5, 2)], model.rows(1), model.output_bytes(3)


def _models(folder: Path) -> Path:
    path = _profile(folder).parents[2] / "models.json"
    (folder / "profiles" / "any").mkdir()
    return path


def _read_models(path: Path) -> Any:
    return _times(path.parent / "profiles" / "M" / "X.json")


def _networks(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        row = [[0.1, 1.0, 2.0], 5e9]
        (folder / BETWEEN).write_text(json.dumps({"z": {"A": {"1": {"z": {"A": {"1": row, "2": row}}}}}}))
        (folder / WITHIN).write_text(json.dumps({"A": {"2": row}}))
        return folder / name

    return make


def _bandwidths(path: Path) -> Any:
    found = load_bandwidths(path.parent)
    pair = found.between(("z", "A", 1), ("z", "A", 4)), found.within("A", 2)
    return [one.seconds(size) for one in pair for size in (1, 10**6, 10**10)]


def _upload(form: str) -> Callable[[Path], Path]:
    files = {"mine/submission.yaml": b"schema: 1\nname: mine\n", "mine/placer.py": b"pass\n"}

    def make(folder: Path) -> Path:
        path = folder / f"upload.{form}"
        if form == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
                for name, content in files.items():
                    packed.writestr(name, content)
            return path
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in files.items():
                item = tarfile.TarInfo(name)
                item.size, item.pax_headers = len(content), {"comment": "ä" * 9}
                archive.addfile(item, io.BytesIO(content))
        path.write_bytes(written.getvalue())
        return path

    return make


def _taken(path: Path) -> Any:
    import gzip

    content = path.read_bytes()
    place = Path(tempfile.mkdtemp())
    try:
        unpack_upload(content if path.suffix == ".zip" else gzip.compress(content, 1), place / "in")
        return sorted(item.name for item in (place / "in").rglob("*"))
    finally:
        shutil.rmtree(place)


def _key(folder: Path) -> Path:
    own_key(folder / "key.pem")
    return folder / "key.pem"


FOREIGN = (
    Subject("kernels table", _release("kernels.parquet"), _checked, cases=10),
    Subject("networks table", _release("networks.parquet"), _checked, cases=10),
    Subject("release", _release("kernels.parquet"), _loaded, cases=10),
    Subject("figures of a release", _release("manifest.json"), _loaded, cases=10),
    Subject("network kernels", _network_kernels, _table),
    Subject("NeuSight table", text_file("linear.csv", NEUSIGHT), _imported("neusight"), cases=10),
    Subject("NeuSight rows", text_file("rows.csv", ROWS), _imported("neusight"), cases=10),
    Subject("NeuSight convolutions", text_file("conv.csv", CONV), _imported("neusight"), cases=10),
    Subject("aiconfigurator table", text_file("attention.csv", ATTENTION), _imported("aiconfigurator"), cases=10),
    Subject("aiconfigurator Parquet", _packed_table, _imported("aiconfigurator"), cases=10),
    Subject("torch benchmark", text_file("torch.csv", TORCH), _imported("torch-operator-benchmark"), cases=10),
    Subject("PipeDream graph", text_file("graph.txt", PIPEDREAM), _problem("pipedream")),
    Subject("training plan", text_file("plan.json", json.dumps(plan([[0, 1], [2, 3, 4]], chains=3))), load_plan),
    Subject("layer profile", _profile, _times),
    Subject("models of profiles", _models, _read_models),
    Subject("bandwidths between nodes", _networks(BETWEEN), _bandwidths),
    Subject("bandwidths within a node", _networks(WITHIN), _bandwidths),
    Subject("uploaded tar", _upload("tar"), _taken),
    Subject("uploaded zip", _upload("zip"), _taken),
    Subject("submitter's key", _key, lambda path: own_key(path).public),
)
