from opmark.bench.suite.judging import judging_kernels
from opmark.models.resolve import graph_of


def test_families_take_turns_and_small_networks_come_first() -> None:
    graphs = {name: graph_of(name, "onnxruntime-cpu-t1") for name in ("light-squeezenet", "light-inception-v1")}
    kernels = {name: {node.kernel for node in graph.costly} for name, graph in graphs.items()}
    networks = [("inception", graphs["light-inception-v1"]), ("squeezenet", graphs["light-squeezenet"])]
    small = len(kernels["light-squeezenet"])
    assert small < len(kernels["light-inception-v1"])
    assert set(judging_kernels(networks, small)) == kernels["light-squeezenet"]
    again = [("squeezenet", graphs["light-squeezenet"]), *networks]
    both = judging_kernels(again, 10_000)
    assert set(both) == kernels["light-squeezenet"] | kernels["light-inception-v1"]
    assert len(both) == len(set(both))
    assert judging_kernels(networks, 0) == ()
