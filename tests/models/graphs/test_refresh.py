"""Writing the graphs that travel: every one once, a second run keeps them, a failure stops nothing."""

import pytest

from opmark.models.graphs.refresh import StoreOutcome, further_pairs, shipped_pairs, store_graphs, targets_of
from opmark.models.graphs.shipped import graphs_folder
from opmark.models.zoo import models

SHIPPED = graphs_folder()


def test_graphs_are_stored_once_and_then_kept(tmp_path):
    wanted = [("plain-tiny", "torch-eager-t1"), ("plain-tiny@int8-static", "torch-eager-t1")]
    folder, cache = tmp_path / "graphs", tmp_path / "cache"
    first, refused = store_graphs(wanted, folder, cache=cache)
    assert (first.status, refused.status) == ("stored", "failed")
    assert first.kernels > 5
    assert first.hidden == ()
    assert "ONNX Runtime targets only" in refused.error
    [path] = [path for path in folder.rglob("*") if path.is_file()]
    written = path.stat().st_mtime_ns
    assert first.size_bytes == path.stat().st_size
    again, _ = store_graphs(wanted, folder, cache=cache)
    assert again == StoreOutcome(
        model="plain-tiny", target="torch-eager-t1", status="kept", size_bytes=path.stat().st_size
    )
    assert path.stat().st_mtime_ns == written


def test_a_stopped_run_goes_on(tmp_path):
    wanted = [("plain-tiny", "torch-eager-t1"), ("encoder-tiny", "torch-eager-t1")]
    run = store_graphs(wanted, tmp_path / "graphs", cache=tmp_path / "cache")
    next(run)
    run.close()
    found = store_graphs(wanted, tmp_path / "graphs", cache=tmp_path / "cache")
    assert [item.status for item in found] == ["kept", "stored"]


def test_every_network_travels_on_every_runtime_that_has_it():
    wanted = shipped_pairs()
    assert len(set(wanted)) == len(wanted)
    plain = {(name, target) for name, target in wanted if "@" not in name}
    open_models = [name for name, family in models().items() if not family.sealed]
    assert plain == {(name, target) for name in open_models for target in targets_of(name)}
    variants = {name.partition("@")[2] for name, _ in wanted}
    assert variants == {"", "bf16", "training", "int8-dynamic", "int8-static"}


def test_what_a_folder_holds_beyond_that_can_be_made_anew(tmp_path):
    plain, sized = ("plain-tiny", "torch-eager-t1"), ("plain-tiny", "torch-eager-t1", {"batch": 2, "size": 48})
    for dimensions in ({}, sized[2]):
        list(store_graphs([plain], tmp_path, cache=tmp_path / "cache", dimensions=dimensions))
    (tmp_path / "aten" / "mine.json.gz").write_bytes(b"")
    assert further_pairs(tmp_path) == (sized,)
    [again] = store_graphs([sized[:2]], tmp_path, cache=None, dimensions=sized[2])
    assert again.status == "kept"
    files = {(path.parent.name.removesuffix("-8"), path.name) for path in SHIPPED.glob("*/*.json.gz")}
    assert len(further_pairs(SHIPPED)) + len(shipped_pairs()) == len(files)


@pytest.mark.parametrize(
    ("name", "runtimes"),
    [
        ("bert-base", ["onnxruntime-cpu-t1", "torch-eager-t1"]),
        ("light-vgg19", ["onnxruntime-cpu-t1"]),
        ("bert-base@int8-dynamic", ["onnxruntime-cpu-t1"]),
        ("bert-base@training", ["torch-eager-t1"]),
    ],
)
def test_targets_are_those_that_have_the_network(name, runtimes):
    assert list(targets_of(name)) == runtimes
