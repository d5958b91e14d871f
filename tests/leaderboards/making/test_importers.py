"""Importers on small files: every field, and the place of every fault."""

import json
from pathlib import Path

import pytest

from opmark.core.errors import ContentError, UsageError
from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.simulator.evaluation import evaluate


def node(number: int, **facts: object) -> dict[str, object]:
    times = {"cpuLatency": 10.0, "fpgaLatency": 1.5, "size": 100.0, "supportedOnFpga": 1, "isBackwardNode": False}
    return {"id": number, **times, "colorClass": number, **facts}


def graph_file(folder: Path, nodes: list[dict[str, object]], edges: list[dict[str, object]], **facts: object) -> Path:
    path = folder / "graph.json"
    content = {"maxSizePerFPGA": 250.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges, **facts}
    path.write_text(json.dumps(content))
    return path


def edge(source: int, destination: int, cost: float = 0.25) -> dict[str, object]:
    return {"sourceId": source, "destId": destination, "cost": cost}


def read(path: Path, **options: object):
    return IMPORTERS.load("dnn-partitioning").read(path, ImportOptions(**options))


def test_a_graph_of_dnn_partitioning(tmp_path: Path) -> None:
    nodes = [node(1), node(2), node(3, supportedOnFpga=False, size=0), node(4, colorClass=1)]
    problem = read(graph_file(tmp_path, nodes, [edge(1, 2), edge(1, 3), edge(2, 4, 0.5)]), contiguous=False)
    assert (problem.unit, problem.objective, problem.profile) == ("ms", "throughput", "maxload_serial")
    assert [device.name for device in problem.cluster.devices] == ["cpu0", "acc0", "acc1"]
    assert [unit.colocation != "" for unit in problem.units] == [True, False, False, True]
    assert "accelerator" not in problem.units[2].exec_ns
    place = {"1": "acc0", "2": "acc1", "3": "cpu0", "4": "acc0"}
    # acc0: 1 and 4, out of 1 once, into 4; acc1: 2, in and out; the host pays for its unit alone
    found = evaluate(problem, Solution(device=place))
    assert found.value("ms") == pytest.approx(10.0)
    busy = [3.0 + 0.25 + 0.5, 1.5 + 0.25 + 0.5]
    assert found.cost == 10_000_000
    quick = [{**item, "cpuLatency": 0.0} for item in nodes]
    lighter = read(graph_file(tmp_path, quick, [edge(1, 2), edge(1, 3), edge(2, 4, 0.5)]), contiguous=False)
    assert evaluate(lighter, Solution(device=place)).value("ms") == pytest.approx(max(busy))
    with pytest.raises(Exception, match="a path leaves device 'acc0'"):
        evaluate(read(tmp_path / "graph.json"), Solution(device=place))
    full = {"1": "acc0", "2": "acc0", "3": "cpu0", "4": "acc0"}
    with pytest.raises(Exception, match="device 'acc0' needs 300"):
        evaluate(problem, Solution(device=full))


def test_latency_and_the_way_to_a_file_and_back(tmp_path: Path) -> None:
    path = graph_file(tmp_path, [node(1), node(2)], [edge(1, 2)])
    problem = read(path, objective="latency", devices=1)
    assert (problem.objective, problem.profile, len(problem.cluster.devices)) == ("latency", "atomic_calls", 2)
    save_problem(problem, tmp_path / "problem.json")
    assert load_problem(tmp_path / "problem.json") == problem
    assert evaluate(problem, Solution(device={"1": "cpu0", "2": "acc0"})).value("ms") == pytest.approx(10 + 0.25 + 1.5)
    with pytest.raises(UsageError, match="objective must be one of"):
        read(path, objective="beauty")


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        ([node(1), {"id": 2}], [], r"nodes\.1\.cpuLatency: missing"),
        ([node(1, fpgaLatency=-1)], [], r"nodes\.0\.fpgaLatency: input should be greater than or equal to 0"),
        ([{"cpuLatency": 1}], [], r"nodes\.0\.id: missing"),
        ([node(1)], [edge(1, 7)], r"edges\.0: no node has the id 7"),
        ([node(1), node(2), node(3)], [edge(1, 2), edge(1, 3, 0.5)], "node 1 has two different costs"),
        ([node(1, isBackwardNode=True), node(2)], [edge(1, 2)], "backward node 1 cannot precede forward node 2"),
        ([node(1), node(1)], [], "the name appears twice"),
        (7, [], "nodes: input should be a valid tuple"),
    ],
)
def test_a_wrong_graph_is_named(tmp_path: Path, nodes, edges, sentence: str) -> None:
    with pytest.raises(ContentError, match=sentence):
        read(graph_file(tmp_path, nodes, edges))


LINE = "{} -- {} -- forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}\n"


def test_a_profile_of_pipedream(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text(
        LINE.format("node1", "Input0", 9.0, 0.0, 7.0, 0.0)
        + LINE.format("node2", "Conv2d(3, 8)", 1.0, 2.0, 100.0, 3_000_000.0)
        + LINE.format("node3", "LSTM(4)", 2.0, 2.0, "[50.0; 25.0]", 0.0)
        + LINE.format("node4", "__getitem__(0)", 1.0, 0.0, 5.0, 0.0)
        + "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n"
    )
    problem = IMPORTERS.load("pipedream").read(path, ImportOptions(devices=3, bandwidth_bytes_per_s=1e9))
    assert [unit.name for unit in problem.units] == ["node2", "node3"]
    assert [tensor.size_bytes for tensor in problem.tensors] == [100, 75]
    alone = evaluate(problem, Solution(device=dict.fromkeys(["node2", "node3"], "machine0")))
    assert alone.value("s") == pytest.approx(0.007, rel=1e-12)
    # two replicas exchange 4 · 1/2 of 3 MB at 1 GB/s; half of 3 ms and of 6 ms
    stages = Solution(device={"node2": "machine0", "node3": "machine2"}, replicas={"machine0": ("machine1",)})
    assert evaluate(problem, stages).value("s") == pytest.approx(0.0045, rel=1e-12)
    with pytest.raises(UsageError, match="objective is max-load"):
        IMPORTERS.load("pipedream").read(path, ImportOptions(objective="latency"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nonsense\n", r"net\.txt:1: neither a node nor an edge"),
        ("", "no node"),
        ("\ta -- b\n", "an edge names 'a', which is not a node"),
        (LINE.format("a", "Conv", "fast", 1, 1, 1), "expected forward_compute_time=number"),
        (LINE.format("a", "Conv", 1, 1, "nan", 1), r"net\.txt:1: expected activation_size=number"),
        (LINE.format("a", "Conv", 1, 1, 1, "inf"), "expected parameter_size=number"),
        (LINE.format("a", "Conv", 1, -1, 1, 1), "expected backward_compute_time=number"),
        (LINE.format("a", "Conv", 1, 1, "1e300", 1), "expected activation_size=number"),
        (2 * LINE.format("a", "Conv", 1, 1, 1, 1), r"net\.txt:2: the node 'a' appears twice"),
    ],
)
def test_a_wrong_profile_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "net.txt"
    path.write_text(text)
    with pytest.raises(ContentError, match=sentence):
        IMPORTERS.load("pipedream").read(path, ImportOptions())


def test_every_format_says_what_it_is() -> None:
    assert IMPORTERS.names() == ("dnn-partitioning", "pipedream", "sailor")
    assert all(importer.summary for importer in IMPORTERS)
