"""Graphs that travel: equal to captured ones, used where they may stand for them, and nowhere else."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from opmark.core.errors import MissingExtraError
from opmark.core.hardware import processor
from opmark.core.reading import read_json
from opmark.models import origin, resolve
from opmark.models.capture import onnx_session
from opmark.models.graphs.refresh import TARGETS
from opmark.models.graphs.shipped import (
    graph_path,
    graphs_folder,
    is_stored,
    needs_no_capture,
    save,
    sized_graphs,
    stored_graph,
)
from opmark.models.resolve import captured_graph, graph_of, graph_origin, graph_to_predict
from opmark.models.source import source_of

PAIRS = [("encoder-tiny", "torch-eager-t1"), ("plain-tiny", "onnxruntime-cpu-t1")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def travelling(tmp_path, monkeypatch):
    """An own folder in place of the one that came with OpMark."""
    folder = tmp_path / "graphs"
    monkeypatch.setattr(resolve, "graphs_folder", lambda: folder)
    return folder


def captures(monkeypatch):
    """How often a graph is captured from now on."""
    counted = []
    real = resolve._captured
    monkeypatch.setattr(resolve, "_captured", lambda *given: counted.append(given) or real(*given))
    return counted


@pytest.mark.parametrize(("model", "target"), PAIRS)
def test_a_stored_graph_equals_a_captured_one(model, target, cache, travelling, tmp_path, monkeypatch):
    fresh = captured_graph(model, target, cache=cache)
    save(fresh, graph_origin(model, target), travelling)
    counted = captures(monkeypatch)
    again = graph_of(model, target, cache=tmp_path / "empty")
    assert again == fresh
    assert again.id == fresh.id
    assert not counted
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(("model", "target"), PAIRS)
def test_what_came_with_opmark_is_what_is_captured(model, target, cache):
    here = graph_origin(model, target)
    folder = graphs_folder()
    paths = [] if folder is None else [graph_path(one, folder) for one in (here, replace(here, block_width=0))]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        pytest.skip("no graphs came with this installation")
    content = json.loads(gzip.decompress(path.read_bytes()))
    minor = {name: text.rpartition(".")[0] for name, text in content["origin"]["versions"].items()}
    if minor != {name: text.rpartition(".")[0] for name, text in here.versions.items()}:
        pytest.skip("the graphs that came with OpMark were captured by other versions")
    # Whatever has changed in the code since, the graph must not have: else run `opmark models store --all`.
    found = stored_graph(replace(here, code=content["origin"]["code"]), folder)
    fresh = captured_graph(model, target, cache=cache)
    # The runtime makes up names for what it inserts, and not always the same.
    assert found.id == fresh.id
    assert [(node.kernel, node.work, node.scope) for node in found.nodes] == [
        (node.kernel, node.work, node.scope) for node in fresh.nodes
    ]


def test_the_same_graph_gives_the_same_bytes(cache, tmp_path):
    here = graph_origin(*PAIRS[0])
    graph = captured_graph(*PAIRS[0], cache=cache)
    first, second = (save(graph, here, tmp_path / name) for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()


def test_a_graph_needs_no_capture_where_the_stored_one_stands_for_it(cache, tmp_path):
    here = graph_origin(*PAIRS[0])
    assert not needs_no_capture(here, None)
    assert not needs_no_capture(here, tmp_path)
    save(captured_graph(*PAIRS[0], cache=cache), here, tmp_path)
    assert needs_no_capture(here, tmp_path)
    assert not needs_no_capture(replace(here, code="0123456789abcdef"), tmp_path)
    graph_path(here, tmp_path).write_bytes(b"damaged")
    assert not needs_no_capture(here, tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        {"code": "0123456789abcdef"},
        {"versions": {"torch": "1.0.0"}},
        {"content": "some file"},
    ],
)
def test_a_stale_graph_is_captured_again(other, cache, travelling, tmp_path, monkeypatch):
    model, target = PAIRS[0]
    here = graph_origin(model, target)
    changed = replace(captured_graph(model, target, cache=cache), nodes=())
    save(changed, replace(here, **other), travelling)
    counted = captures(monkeypatch)
    assert graph_of(model, target, cache=tmp_path).nodes
    assert len(counted) == 1


def test_a_patch_release_changes_no_graph(cache, travelling, tmp_path, monkeypatch):
    model, target = PAIRS[0]
    here = graph_origin(model, target)
    minor = ".".join(here.versions["torch"].split(".")[:2])
    save(captured_graph(model, target, cache=cache), replace(here, versions={"torch": f"{minor}.999"}), travelling)
    counted = captures(monkeypatch)
    graph_of(model, target, cache=tmp_path)
    assert not counted


@pytest.mark.parametrize(("model", "target"), PAIRS)
def test_without_the_packages_a_stored_graph_is_all_there_is(model, target, cache, travelling, tmp_path, monkeypatch):
    fresh = captured_graph(model, target, cache=cache)
    save(fresh, replace(graph_origin(model, target), code="old", versions={"torch": "1.0.0"}), travelling)
    monkeypatch.setattr(origin, "installed", lambda package: "")
    monkeypatch.setattr(resolve, "require", missing)
    assert graph_of(model, target, cache=tmp_path / "empty") == fresh
    with pytest.raises(MissingExtraError, match="torch"):
        graph_of(model, target, cache=tmp_path / "empty", dimensions={"batch": 7})
    with pytest.raises(MissingExtraError, match="torch"):
        captured_graph(model, target, cache=tmp_path / "empty")


def missing(package):
    raise MissingExtraError(f"this needs {package}")


def test_a_damaged_file_is_as_good_as_none(cache, travelling, tmp_path, monkeypatch):
    model, target = PAIRS[0]
    here = graph_origin(model, target)
    path = save(captured_graph(model, target, cache=cache), here, travelling)
    path.write_bytes(path.read_bytes()[:-20])
    assert not is_stored(here, travelling)
    counted = captures(monkeypatch)
    graph_of(model, target, cache=tmp_path)
    assert len(counted) == 1


def test_files_are_named_by_what_is_unusual(tmp_path):
    def name(model, target="torch-eager-t1", width=16, **sizes):
        here = graph_origin(model, target, dimensions=sizes, block_width=width)
        return graph_path(here, tmp_path).relative_to(tmp_path).as_posix()

    assert name("plain-tiny") == name("plain-tiny", batch=1) == "aten/plain-tiny.json.gz"
    assert name("plain-tiny", batch=8) == "aten/plain-tiny-batch8.json.gz"
    assert name("plain-tiny@bf16", size=64) == "aten/plain-tiny@bf16-size64.json.gz"
    assert name("light-vgg19", "onnxruntime-cpu-t1") == "onnx/light-vgg19.json.gz"
    assert name("light-vgg19", "onnxruntime-cpu-t1", width=8) == "onnx-8/light-vgg19.json.gz"


def test_the_width_of_blocks_is_that_of_the_runtime() -> None:
    if onnx_session.block_width() == 0:
        pytest.skip("ONNX Runtime has no blocked layout on this processor")
    assert processor.block_width() == onnx_session.block_width()


def test_a_processor_with_other_blocks_has_graphs_of_its_own(cache, travelling, tmp_path, monkeypatch):
    model, target = PAIRS[1]
    here = graph_origin(model, target)
    own = captured_graph(model, target, cache=cache)
    other = 16 if here.block_width == 8 else 8
    theirs = replace(own, nodes=own.nodes[:-1])
    save(own, here, travelling)
    save(theirs, replace(here, block_width=other), travelling)
    counted = captures(monkeypatch)
    empty = tmp_path / "empty"
    assert graph_of(model, target, cache=empty) == own
    assert graph_of(model, target, cache=empty, block_width=other) == theirs
    assert graph_to_predict(model, target, cache=empty, block_width=other) == (theirs, "")
    assert {path.parent.name for path in travelling.rglob("*.gz")} == {"onnx", "onnx-8"}
    assert {graph.id for graph in sized_graphs(model, travelling)} == {own.id, theirs.id}
    assert not counted


def test_blocks_that_nobody_captured_are_those_of_this_processor(cache, travelling, tmp_path, monkeypatch):
    model, target = PAIRS[1]
    other = 16 if processor.block_width() == 8 else 8
    counted = captures(monkeypatch)
    assert (
        graph_of(model, target, cache=tmp_path, block_width=other).id == captured_graph(model, target, cache=cache).id
    )
    assert len(counted) == 1


def test_a_graph_without_blocks_is_that_of_every_processor(cache, tmp_path):
    model, target = "encoder-tiny", "onnxruntime-cpu-t1"
    here = graph_origin(model, target)
    path = save(captured_graph(model, target, cache=cache), here, tmp_path)
    assert path.parent.name == "onnx"
    for width in (8, 16):
        assert is_stored(graph_origin(model, target, block_width=width), tmp_path)
        assert needs_no_capture(graph_origin(model, target, block_width=width), tmp_path)


def test_the_origin_tells_files_threads_and_variants_apart():
    assert graph_origin("encoder-tiny", "torch-eager-t1") == graph_origin("encoder-tiny", "torch-eager-t4")
    ids = {
        graph_origin("encoder-tiny", "onnxruntime-cpu-t1").id,
        graph_origin("encoder-tiny", "onnxruntime-cpu-t4").id,
        graph_origin("encoder-tiny", "torch-eager-t1").id,
        graph_origin("encoder-tiny@bf16", "torch-eager-t1").id,
        graph_origin("encoder-small", "torch-eager-t1").id,
    }
    assert len(ids) == 5
    light = origin.origin_of(source_of("light-vgg19"), "onnx", 1, {})
    assert len(light.content) == 64
    assert set(light.versions) == {"onnx", "onnxruntime"}


def test_graphs_of_a_network_are_found_in_any_batch_and_size(cache, tmp_path):
    graphs = [
        captured_graph("plain-tiny", "torch-eager-t1", cache=cache, dimensions=sizes) for sizes in ({}, {"batch": 2})
    ]
    for graph, sizes in zip(graphs, ({}, {"batch": 2}), strict=True):
        save(graph, graph_origin("plain-tiny", "torch-eager-t1", dimensions=sizes), tmp_path)
    other = captured_graph("encoder-tiny", "torch-eager-t1", cache=cache)
    save(other, graph_origin("encoder-tiny", "torch-eager-t1"), tmp_path)
    assert {graph.id for graph in sized_graphs("plain-tiny", tmp_path)} == {graph.id for graph in graphs}
    (tmp_path / "aten" / "plain-tiny.json.gz").write_bytes(b"cut short")
    assert [graph.id for graph in sized_graphs("plain-tiny", tmp_path)] == [graphs[1].id]
    assert list(sized_graphs("plain", tmp_path)) == []
    assert list(sized_graphs("plain-tiny", None)) == []


def test_every_module_that_captures_decides_some_origin():
    folder = Path(origin.__file__).parent / "capture"
    named = {Path(place).name for places in origin._CAPTURE.values() for place in places}
    assert {path.name for path in folder.glob("*.py")} - named == {"__init__.py", "quiet.py"}


def test_what_came_with_opmark_is_of_this_code() -> None:
    """A stale graph would be captured again by every prediction in a new workspace, for half a minute each."""
    stale = []
    for target, folder in ((TARGETS[0], "onnx"), (TARGETS[0], "onnx-8"), (TARGETS[1], "aten")):
        paths = sorted((graphs_folder() / folder).glob("*.json.gz"))
        assert paths
        for path in paths[::9]:
            parts = re.fullmatch(r"(.+?)((?:-(?:batch|size)\d+)*)\.json\.gz", path.name)
            assert parts is not None
            sizes = {name: int(value) for name, value in re.findall(r"-(batch|size)(\d+)", parts[2])}
            here = graph_origin(parts[1], target, dimensions=sizes)
            if not here.missing and read_json(path)["origin"]["code"] != here.code:
                stale.append(path.name)
    assert not stale, "capture them again (`opmark models store --all`), or prove that they are equal and note the code"


def test_a_prediction_takes_a_graph_of_another_version_and_names_it(cache, travelling, tmp_path, monkeypatch):
    model, target = PAIRS[1]
    here = graph_origin(model, target)
    fresh = captured_graph(model, target, cache=cache)
    save(fresh, replace(here, versions={**here.versions, "onnxruntime": "1.2.3"}), travelling)
    counted = captures(monkeypatch)
    graph, versions = graph_to_predict(model, target, cache=tmp_path / "own")
    assert (graph.id, versions) == (fresh.id, "onnxruntime 1.2.3")
    assert not counted
    assert not (tmp_path / "own").exists()
    # A graph that was captured here goes first.
    graph_of(model, target, cache=tmp_path / "own")
    assert len(counted) == 1
    assert graph_to_predict(model, target, cache=tmp_path / "own")[1] == ""
