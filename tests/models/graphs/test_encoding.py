import json

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
    ],
)
def test_a_damaged_file_is_refused_by_name(graph, tmp_path, damage, sentence):
    path = tmp_path / "graph.json"
    store.save(graph, path)
    path.write_text(damage(unsealed(path.read_text())))
    with pytest.raises(ContentError, match=sentence) as caught:
        store.load(path)
    assert str(path) in str(caught.value)
