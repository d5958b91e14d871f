"""The share of a graph's work that specific kinds cover, and the operators left to the generic kind."""

import re
from dataclasses import dataclass

from opmark.core.kernels.graph import Graph, Node
from opmark.kinds import GENERIC, KINDS

# Operators that multiply or decompose matrices, in ONNX's, ONNX Runtime's and ATen's spelling.
_MATRIX = re.compile(
    r"conv|matmul|gemm|attention|einsum|(?<![a-z])linear(?![a-z0-9])|lstm|gru|rnn|nbits|mixtureofexperts|moe"
    r"|linalg_(?!vector_norm)|cholesky|\._trilinear|transformer|euclidean_dist|cdist|triangular_solve|ormqr|geqrf|lu_solve"
    r"|(?:^|[._:])(?:mm|bmm|addmm|addbmm|baddbmm|addmv|mv|dot|vdot|matmul)(?:$|[._])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares in [0, 1] of what a graph does per call.

    `flops_share` is the kind coverage of the matrix work: 1 unless `hidden` names matrix operators in `bytes-moved`,
    whose FLOPs are unknown. `generic` names all operators in `bytes-moved`.
    """

    kernels: int
    generic_kernels: int
    flops_share: float
    bytes_share: float
    generic: tuple[str, ...]
    hidden: tuple[str, ...]

    @property
    def bytes_moved_share(self) -> float:
        """The share of the bytes in `bytes-moved`."""
        return 1.0 - self.bytes_share


def operator_of(node: Node) -> str:
    """The operator that `node` stands for, as the runtime spells it."""
    return node.origins[0] if node.origins else node.name


def is_hidden(node: Node) -> bool:
    """True if `node` multiplies matrices but counts as `bytes-moved`, because no kind describes its operator."""
    return node.kernel.kind == GENERIC and not node.free and bool(_MATRIX.search(operator_of(node)))


def hidden_operators(graph: Graph) -> tuple[str, ...]:
    """The matrix operators of `graph` without a kind, sorted."""
    return tuple(sorted({operator_of(node) for node in graph.costly if is_hidden(node)}))


def coverage(graph: Graph) -> Coverage:
    """The shares of `graph` in specific kinds and in `bytes-moved`."""
    nodes = list(graph.costly)
    generic = [node for node in nodes if node.kernel.kind == GENERIC]
    moved = sum(node.work.moved_bytes for node in nodes)
    moved_generic = sum(node.work.moved_bytes for node in generic)
    labels = tuple(sorted({operator_of(node) for node in generic}))
    hidden = [node for node in generic if is_hidden(node)]
    matrix = sum(1 for node in nodes if node.kernel.kind != GENERIC and KINDS.load(node.kernel.kind).matrix)
    return Coverage(
        kernels=len(nodes),
        generic_kernels=len(generic),
        # The FLOPs of hidden kernels are unknown; each counts like an average known one.
        flops_share=matrix / (matrix + len(hidden)) if hidden else 1.0,
        bytes_share=1.0 - moved_generic / moved if moved else 1.0,
        generic=labels,
        hidden=hidden_operators(graph),
    )
