"""Bundles on disk: the same predictions, and every kind of foreign or spoiled folder refused."""

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError, OpMarkError
from opmark.core.files import json_text
from opmark.core.workspace import Workspace
from opmark.predictors.model import packing as member
from opmark.predictors.model.bundle import Bundle, load, save
from opmark.predictors.model.bundle_card import card
from opmark.predictors.model.bundle_paths import bundle_path, find_bundle, path_of, stored_bundles
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.manifest import read_manifest
from opmark.predictors.model.training import train_on

KERNELS = tuple(kernel for kind in law.KIND_NAMES for kernel in law.kernels(kind, 40))


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(law.rows(30), law.TARGET, hardware=law.HARDWARE)


@pytest.fixture
def folder(bundle: Bundle, tmp_path: Path) -> Path:
    save(bundle, tmp_path / "bundle")
    return tmp_path / "bundle"


def test_a_saved_bundle_predicts_to_the_last_bit(bundle: Bundle, folder: Path) -> None:
    loaded = load(folder, target_name="onnxruntime-cpu-t1")
    before, after = CostModel(bundle).kernels(KERNELS), CostModel(loaded).kernels(KERNELS)
    assert np.array_equal(before.hot_ns, after.hot_ns)
    assert np.array_equal(before.rotated_ns, after.rotated_ns)
    assert np.array_equal(before.high_ns, after.high_ns)
    assert loaded.target == law.TARGET
    assert loaded.manifest.kinds == bundle.manifest.kinds


def test_saving_twice_gives_the_same_bytes_and_replaces_the_folder(bundle: Bundle, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    save(bundle, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["bundle"]


def test_nothing_is_a_pickle_and_the_card_tells_errors(bundle: Bundle, folder: Path) -> None:
    names = {"manifest.json", "README.md", *(f"{kind}.json.gz" for kind in law.KIND_NAMES)}
    assert {path.name for path in folder.iterdir()} == names
    texts = json.loads(gzip.decompress((folder / "gemm.json.gz").read_bytes()))
    assert texts == bundle.kinds["gemm"].texts
    assert texts["hot-trees.txt"].startswith("tree\nversion=")
    text = (folder / "README.md").read_text()
    assert text == card(bundle.manifest)
    for kind in law.KIND_NAMES:
        assert f"| {kind} | 30 |" in text
    assert "no training network" in text


def test_another_target_is_refused(folder: Path) -> None:
    with pytest.raises(ContentError, match="predicts onnxruntime-cpu-t1, not torch-eager-t1"):
        load(folder, target_name="torch-eager-t1")


@pytest.mark.parametrize("name", ["gemm.json.gz", "README.md"])
def test_a_flipped_byte_is_noticed(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    with pytest.raises(ContentError, match=rf"{name}: changed since it was written"):
        load(folder)


def test_a_missing_file_is_noticed(folder: Path) -> None:
    (folder / "gemm.json.gz").unlink()
    with pytest.raises(ContentError, match=r"gemm.json.gz: missing"):
        load(folder)
    with pytest.raises(ContentError, match="no such predictor bundle"):
        load(folder / "nowhere")


def test_a_changed_manifest_is_noticed(folder: Path) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    content["constants"]["gap_ns"] = 5.0
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ContentError, match=r"manifest.json: changed since"):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("schema", "message"),
    [(99, "newer than 2"), (1, "trained by an earlier version"), (None, "missing"), ("1", "whole number")],
)
def test_a_foreign_schema_is_refused(folder: Path, schema: object, message: str) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    content["schema"] = schema
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ContentError, match=message):
        load(folder)


def resigned(folder: Path, name: str, content: bytes) -> None:
    """Put `content` in place of a member, and make the manifest agree: what only its reader can notice."""
    (folder / name).write_bytes(content)
    manifest = read_manifest(folder)
    files = {**manifest.files, name: hashlib.sha256(content).hexdigest()}
    unsigned = replace(manifest, files=files, id="")
    signed = replace(unsigned, id=unsigned.content_id)
    (folder / "manifest.json").write_text(json_text({"schema": 2, **plain(signed)}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda packed: packed[: len(packed) // 2], "cut off"),
        (lambda packed: packed + b"more", "goes on after its end"),
        (lambda _: b"plain text", "not a compressed member"),
        (lambda _: gzip.compress(b"{"), "unpacks to no JSON:"),
        (lambda _: gzip.compress(b"[1]"), "unpacks to no JSON object of texts"),
        (lambda _: gzip.compress(b"0" * 2_000_000), "unpacks to more than 1 MiB"),
    ],
)
def test_a_member_that_cannot_be_unpacked_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[bytes], bytes], message: str
) -> None:
    if "1 MiB" in message:
        monkeypatch.setattr(member, "MOST_BYTES", 2**20)
    resigned(folder, "gemm.json.gz", spoil((folder / "gemm.json.gz").read_bytes()))
    loaded = CostModel(load(folder))
    assert len(loaded.kernels(law.kernels("conv", 3)).hot_ns) == 3
    with pytest.raises(ContentError, match=rf"gemm\.json\.gz: {message}"):
        loaded.kernels(law.kernels("gemm", 3))


def test_a_kind_is_unpacked_when_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []
    real = member.unpack
    monkeypatch.setattr(member, "unpack", lambda content, where: unpacked.append(where) or real(content, where))
    model = CostModel(load(folder))
    assert unpacked == []
    model.kernels(law.kernels("conv", 3))
    model.kernels(law.kernels("conv", 5))
    assert unpacked == [str(folder / "conv.json.gz")]


def test_a_kind_without_a_member_is_noticed(folder: Path) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    content["kinds"]["matmul"] = content["kinds"]["gemm"]
    content["id"] = content_id({key: value for key, value in content.items() if key not in {"schema", "id"}})
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ContentError, match=r"manifest.json: files: 'matmul.json.gz' is not listed"):
        load(folder)


def test_text_of_another_estimator_is_refused(bundle: Bundle) -> None:
    predictor = replace(bundle.kinds["gemm"], estimator="nearest")
    odd = Bundle(manifest=bundle.manifest, kinds={"gemm": predictor})
    with pytest.raises(ContentError, match="not a nearest predictor"):
        CostModel(odd).kernels(law.kernels("gemm", 1))


def test_a_folder_that_cannot_be_written_says_so(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OpMarkError, match="cannot write"):
        save(bundle, tmp_path / "file" / "bundle")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_preliminary_version_of_another_device_makes_no_target_ambiguous(bundle: Bundle, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    save(bundle, bundle_path(workspace, "other-2", "0.1.0", "onnxruntime-cpu-t1"))
    assert find_bundle(workspace, "onnxruntime-cpu-t1").parent.name == "0.1.0"
    save(bundle, bundle_path(workspace, "acme-1", "1.0.0", "onnxruntime-cpu-t1"))
    assert find_bundle(workspace, "onnxruntime-cpu-t1").parent.parent.name == "acme-1"
    assert find_bundle(workspace, "onnxruntime-cpu-t1", device="other-2").parent.name == "0.1.0"


def test_the_newest_version_of_a_target_is_found(bundle: Bundle, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert stored_bundles(workspace) == []
    with pytest.raises(ContentError, match="no predictor of onnxruntime-cpu-t1"):
        find_bundle(workspace, "onnxruntime-cpu-t1")
    for version in ("1.9.0", "1.10.0"):
        save(bundle, bundle_path(workspace, "acme-1", version, "onnxruntime-cpu-t1"))
    assert find_bundle(workspace, "onnxruntime-cpu-t1").parent.name == "1.10.0"
    assert [one.version for one in stored_bundles(workspace)] == ["1.9.0", "1.10.0"]
    assert path_of(workspace, "acme-1/1.9.0/onnxruntime-cpu-t1").parent.name == "1.9.0"
    with pytest.raises(ContentError) as raised:
        find_bundle(workspace, "onnxruntime-cpu-t2")
    assert raised.value.hint == "did you mean 'onnxruntime-cpu-t1'?"
    save(bundle, bundle_path(workspace, "other-2", "1.0.0", "onnxruntime-cpu-t1"))
    with pytest.raises(ContentError, match="2 devices: acme-1, other-2") as raised:
        find_bundle(workspace, "onnxruntime-cpu-t1")
    assert raised.value.hint == "say which, like acme-1/onnxruntime-cpu-t1"
    assert find_bundle(workspace, "onnxruntime-cpu-t1", device="other-2").parent.parent.name == "other-2"
    assert path_of(workspace, "other-2/onnxruntime-cpu-t1").parent.parent.name == "other-2"
    with pytest.raises(ContentError) as raised:
        path_of(workspace, "other-3/onnxruntime-cpu-t1")
    assert raised.value.hint == "did you mean 'other-2/onnxruntime-cpu-t1'?"


@pytest.mark.parametrize("stray", ["notes.txt", "bundle/manifest.json", "kernels.parquet"])
def test_a_folder_with_anything_else_in_it_is_never_replaced(bundle: Bundle, folder: Path, stray: str) -> None:
    (folder / stray).parent.mkdir(exist_ok=True)
    (folder / stray).write_text("mine")
    with pytest.raises(ContentError, match="no predictor that may be replaced"):
        save(bundle, folder)
    assert (folder / stray).read_text() == "mine"


def test_neither_a_link_nor_a_folder_without_a_manifest_is_replaced(bundle: Bundle, folder: Path) -> None:
    link, other = folder.with_name("link"), folder.with_name("other")
    link.symlink_to(folder)
    other.mkdir()
    (other / "README.md").write_text("mine")
    for place in (link, other):
        with pytest.raises(ContentError):
            save(bundle, place)
    assert link.is_symlink()
    assert (other / "README.md").read_text() == "mine"


@pytest.mark.parametrize(("device", "version"), [("../../away", "1.0.0"), ("dev", "../../x"), ("dev\n", "1.0.0")])
def test_the_names_of_a_release_do_not_leave_the_workspace(tmp_path: Path, device: str, version: str) -> None:
    with pytest.raises(ContentError, match="cannot name a file or folder"):
        bundle_path(Workspace(tmp_path), device, version, "onnxruntime-cpu-t1")


def _with_texts(folder: Path, change: Callable[[dict[str, str]], None]) -> None:
    """Write other texts of the kind gemm, with correct checksums all the way up."""
    path = folder / "gemm.json.gz"
    texts = json.loads(gzip.decompress(path.read_bytes()))
    change(texts)
    path.write_bytes(member.pack(texts))
    content = json.loads((folder / "manifest.json").read_text())
    content["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    content["id"] = content_id({key: value for key, value in content.items() if key not in {"schema", "id"}})
    (folder / "manifest.json").write_text(json_text(content))


def _in_trees(name: str, old: str, new: str) -> Callable[[dict[str, str]], None]:
    """Write `new` for the value `old` (all values for `*`) of the first tree that has it."""
    values = "().*" if old == "*" else rf"(.* )?{re.escape(old)}(?= |$)"

    def change(texts: dict[str, str]) -> None:
        texts["hot-trees.txt"], count = re.subn(
            rf"^{name}={values}",
            lambda found: f"{name}={found[1] or ''}{new}",
            texts["hot-trees.txt"],
            count=1,
            flags=re.MULTILINE,
        )
        assert count

    return change


def _in_json(**values: object) -> Callable[[dict[str, str]], None]:
    def change(texts: dict[str, str]) -> None:
        texts["hot-smooth.json"] = json.dumps({**json.loads(texts["hot-smooth.json"]), **values})

    return change


@pytest.mark.parametrize(
    "change",
    [
        _in_trees("split_feature", "*", "99999999"),
        _in_trees("left_child", "-1", "0"),
        _in_trees("right_child", "-2", "-999"),
        _in_trees("leaf_value", "*", "nan nan nan"),
        _in_json(low=float("nan")),
        _in_json(low=3.0, high=-3.0),
        _in_json(median=float("inf")),
        _in_json(process={"centre": [1.0], "scale": [0.0], "rows": "x", "weights": [], "hyper": [], "mean": 0}),
    ],
)
def test_spoiled_texts_with_correct_checksums_are_one_clear_error(
    folder: Path, change: Callable[[dict[str, str]], None]
) -> None:
    _with_texts(folder, change)
    with pytest.raises(ContentError, match="'gemm'"):
        CostModel(load(folder)).kernels([kernel for kernel in KERNELS if kernel.kind == "gemm"])


def signed(folder: Path, path: tuple[str | int, ...], value: object) -> None:
    """Change one entry of a bundle's manifest, and sign it as anybody can."""
    content = json.loads((folder / "manifest.json").read_text())
    at = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    content["id"] = content_id({key: one for key, one in content.items() if key not in {"schema", "id"}})
    (folder / "manifest.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("constants", "gap_ns"), -1e308),
        (("constants", "midpoint"), -1),
        (("constants", "interval_scale"), 1e300),
        (("anything", "ns_per_byte"), -5),
        (("kinds", "gemm", "errors", "half_width"), 1e308),
        (("kinds", "gemm", "roofline", "constant_ns"), 1e30),
    ],
)
def test_numbers_that_no_prediction_can_use_are_named(folder: Path, path: tuple[str | int, ...], value: object) -> None:
    signed(folder, path, value)
    with pytest.raises(ContentError, match=rf"manifest.json: {re.escape('.'.join(map(str, path)))}: must be from"):
        load(folder)


@pytest.mark.parametrize(
    ("path", "value"), [(("share",), -1), (("view_ns",), 1e30), (("deviation",), 1e3), (("enqueue_ns", "gemm"), -5.0)]
)
def test_so_are_those_of_a_host(folder: Path, path: tuple[str, ...], value: float) -> None:
    host = {"enqueue_ns": {"gemm": 1e4}, "share": 0.8, "view_ns": 3e3, "python_call_ns": 5e2, "deviation": 0.2}
    signed(folder, ("constants", "host"), host)
    assert load(folder).constants.host is not None
    signed(folder, ("constants", "host", *path), value)
    with pytest.raises(ContentError, match=rf"constants.host.{re.escape('.'.join(path))}: must be from"):
        load(folder)


@pytest.mark.parametrize("value", [[], [0, 1024], [-1]])
def test_caches_without_a_size_are_refused(folder: Path, value: list[int]) -> None:
    signed(folder, ("hardware", "cache_bytes"), value)
    with pytest.raises(ContentError, match=r"manifest.json: hardware: sizes must be positive"):
        load(folder)


@pytest.mark.parametrize(("field", "value"), [("low", []), ("high", [1.0]), ("codes", [[999, [1.0]]])])
def test_a_range_that_does_not_fit_its_features_is_refused(folder: Path, field: str, value: list[object]) -> None:
    signed(folder, ("kinds", "gemm", "range", field), value)
    with pytest.raises(ContentError, match=r"manifest.json: kinds.gemm.range: does not fit its features"):
        CostModel(load(folder)).kernels(law.kernels("gemm", 3))
