"""Views: a second name of another tensor's memory, which no transfer or copy must pay twice."""

from opmark.core.graph import Graph


def aliases(graph: Graph) -> dict[str, str]:
    """What each view of a whole tensor really is: a tensor of `graph` that a kernel makes, an input, or a weight.

    A view of a part stays itself: sending it costs less than the whole.
    """
    found: dict[str, str] = {}
    specs = {**graph.weights, **graph.tensors}
    for node in graph.nodes:
        if not node.free or len(node.inputs) != 1:
            continue
        source = found.get(node.inputs[0], node.inputs[0])
        for name in node.outputs:
            if name in specs and specs[name].size_bytes == specs[source].size_bytes:
                found[name] = source
    return found
