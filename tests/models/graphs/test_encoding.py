import json
from dataclasses import replace

import pytest
from tests.sealing import unsealed

from opmark.core.errors import ContentError
from opmark.models import zoo
from opmark.models.capture.aten import capture
from opmark.models.graphs import encoding as store


@pytest.fixture(scope="module")
def graph():
    built = zoo.build("mixture-of-experts-tiny", weights=False)
    return capture(lambda: (built.module, built.inputs), name="mixture")


def test_a_graph_survives_its_file(graph, tmp_path):
    path = tmp_path / "graph.json"
    store.save(graph, path)
    again = store.load(path)
    assert again == graph
    assert again.id == graph.id
    assert again.python_calls > len(graph.nodes)


def test_a_file_without_a_count_of_python_calls_is_read(graph, tmp_path):
    path = tmp_path / "graph.json"
    uncounted = replace(graph, python_calls=None)
    store.save(uncounted, path)
    assert "python_calls" not in path.read_text()
    assert store.load(path) == uncounted
    assert uncounted.id == graph.id


def test_equal_kernels_are_written_once(graph, tmp_path):
    path = tmp_path / "graph.json"
    store.save(graph, path)
    kernels = json.loads(path.read_text())["kernels"]
    assert len(kernels) == len({(node.kernel, node.work) for node in graph.nodes}) < len(graph.nodes)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[:-200], "not JSON"),
        (lambda text: text.replace('"schema":1', '"schema":9'), "newer"),
        (lambda text: text.replace('"nodes":', '"knots":'), "not a stored graph"),
        (lambda text: "[]", "a mapping"),
        (lambda text: text.replace('"python_calls":', '"python_calls":-'), "python_calls is -"),
    ],
)
def test_a_damaged_file_is_refused_by_name(graph, tmp_path, damage, sentence):
    path = tmp_path / "graph.json"
    store.save(graph, path)
    path.write_text(damage(unsealed(path.read_text())))
    with pytest.raises(ContentError, match=sentence) as caught:
        store.load(path)
    assert str(path) in str(caught.value)
