"""The operators of fusion tests by short names, each as a kernel on the output of the previous operator."""

from collections.abc import Callable, Sequence

from opmark.bench.worker.calls import call_in
from opmark.core.errors import UsageError
from opmark.core.kernels.kernel import Kernel
from opmark.core.registry import unknown_name
from opmark.kinds import KINDS

Shape = tuple[int, ...]
_HEAD = 64
# Plane: (batch, channels, height, width). Tokens: (batch, length, features). Rows: (batch, features).
# Queries: (batch, heads, length, head size).
PLANE, TOKENS, ROWS, QUERIES = "plane", "tokens", "rows", "queries"
SHAPES: dict[str, tuple[Shape, ...]] = {
    PLANE: ((1, 64, 28, 28), (1, 32, 56, 56), (1, 128, 14, 14)),
    TOKENS: ((1, 128, 256), (1, 64, 768), (1, 256, 384)),
    ROWS: ((32, 512), (64, 1024), (256, 256)),
    QUERIES: ((1, 8, 64, _HEAD), (1, 12, 128, _HEAD), (1, 4, 256, _HEAD)),
}


def shapes(domain: str, language: str) -> tuple[Shape, ...]:
    """The test shapes of a domain; torch sees tokens as rows."""
    found = SHAPES[domain]
    return tuple(shape[1:] for shape in found) if domain == TOKENS and language == "aten" else found


def chain(names: Sequence[str], shape: Shape, language: str) -> tuple[Kernel, ...]:
    """The kernels of `names` in order, from a tensor of `shape`. Raises `UsageError` for an unknown name."""
    kernels = []
    for name in names:
        if name not in _OPERATORS:
            raise unknown_name("operator", name, _OPERATORS)
        kernel = _OPERATORS[name](shape)
        kernels.append(kernel)
        shape = result(kernel, language, name)
    return tuple(kernels)


def result(kernel: Kernel, language: str, name: str = "") -> Shape:
    """The output shape of `kernel`. Raises `UsageError` if the graph language has no such kernel."""
    call = call_in(language, kernel)
    first = call.outputs[0] if call is not None else None
    if first is None:
        raise UsageError(f"no {language} kernel for {name or kernel.kind}")
    return first.shape


def names() -> tuple[str, ...]:
    """The names of all operators."""
    return tuple(_OPERATORS)


def _of(kind: str, **parameters: object) -> Kernel:
    # The kind fills in all other parameters.
    found = KINDS.load(kind)
    return found.kernel(found.parameters(**parameters))


def _conv(shape: Shape, *, side: int = 3, groups: int = 1) -> Kernel:
    batch, channels, height, width = shape
    pad = side // 2
    return _of(
        "conv",
        batch=batch,
        channels_in=channels,
        channels_out=channels,
        size=(height, width),
        kernel=(side, side),
        stride=(1, 1),
        pads=(pad, pad, pad, pad),
        dilation=(1, 1),
        groups=groups,
    )


def _convtrans(shape: Shape) -> Kernel:
    batch, channels, height, width = shape
    return _of(
        "conv-transpose",
        batch=batch,
        channels_in=channels,
        channels_out=channels,
        size=(height, width),
        kernel=(2, 2),
        stride=(2, 2),
        pads=(0, 0, 0, 0),
        output_pads=(0, 0),
        dilation=(1, 1),
    )


def _pool(op: str) -> Callable[[Shape], Kernel]:
    def pool(shape: Shape) -> Kernel:
        batch, channels, *size = shape
        everything = op.startswith("global")
        return _of(
            "pool",
            op=op,
            batch=batch,
            channels=channels,
            size=tuple(size),
            kernel=tuple(size) if everything else (2, 2),
            stride=(1, 1) if everything else (2, 2),
            pads=(0, 0, 0, 0),
            dilation=(1, 1),
        )

    return pool


def _unary(op: str) -> Callable[[Shape], Kernel]:
    return lambda shape: _of("elementwise", op=op, shapes=(shape,))


def _with_constant(op: str, size: Callable[[Shape], Shape]) -> Callable[[Shape], Kernel]:
    return lambda shape: _of("elementwise", op=op, shapes=(shape, size(shape)), constant=(1,))


def _binary(op: str) -> Callable[[Shape], Kernel]:
    return lambda shape: _of("elementwise", op=op, shapes=(shape, shape))


def _linear(shape: Shape) -> Kernel:
    *batch, rows, features = shape
    # The product of a linear layer without its bias; torch merges the batch into the rows.
    if not batch:
        return _of("gemm", m=rows, k=features, n=features, bias="none")
    return _of("matmul", batch_a=tuple(batch), batch_b=(), m=rows, k=features, n=features, weight=True)


def _fc(shape: Shape) -> Kernel:
    rows, features = shape
    return _of("gemm", m=rows, k=features, n=min(features, 1024))


def _scores(shape: Shape) -> Kernel:
    *heads, length, size = shape
    batch = tuple(heads)
    return _of("matmul", batch_a=batch, batch_b=batch, m=length, k=size, n=length, trans_b=False)


def _context(shape: Shape) -> Kernel:
    *heads, rows, length = shape
    batch = tuple(heads)
    return _of("matmul", batch_a=batch, batch_b=batch, m=rows, k=length, n=_HEAD)


def _flat(shape: Shape) -> Shape:
    size = 1
    for extent in shape[1:]:
        size *= extent
    return (shape[0], size)


def _heads(shape: Shape) -> Shape:
    return (*shape[:-1], shape[-1] // _HEAD, _HEAD)


_OPERATORS: dict[str, Callable[[Shape], Kernel]] = {
    "conv": _conv,
    "conv1x1": lambda shape: _conv(shape, side=1),
    "dwconv": lambda shape: _conv(shape, groups=shape[1]),
    "convtrans": _convtrans,
    "fc": _fc,
    "linear": _linear,
    "scores": _scores,
    "context": _context,
    "maxpool": _pool("max"),
    "avgpool": _pool("average"),
    "gap": _pool("global-average"),
    "relu": _unary("relu"),
    "relu6": _unary("clip"),
    "hswish": _unary("hard-swish"),
    "sigmoid": _unary("sigmoid"),
    "tanh": _unary("tanh"),
    "leakyrelu": _unary("leaky-relu"),
    "gelu": _unary("gelu"),
    "add": _binary("add"),
    "mul": _binary("mul"),
    "bias": _with_constant("add", lambda shape: (shape[-1],)),
    "scale": _with_constant("mul", lambda _: ()),
    "mask": _with_constant("add", lambda shape: (*(1 for _ in shape[1:]), shape[-1])),
    "bn": lambda shape: _of("norm", op="batch", shape=shape),
    "layernorm": lambda shape: _of("norm", op="layer", shape=shape, axis=len(shape) - 1),
    "softmax": lambda shape: _of("softmax", shape=shape, axis=len(shape) - 1),
    "concat": lambda shape: _of("movement", op="concat", shapes=(shape, shape), arguments=(1,)),
    "reshape": lambda shape: _of("movement", op="reshape", shapes=(shape,), arguments=_flat(shape)),
    "heads": lambda shape: _of("movement", op="reshape", shapes=(shape,), arguments=_heads(shape)),
    "transpose": lambda shape: _of(
        "movement", op="transpose", shapes=(shape,), arguments=(0, 2, 1, *range(3, len(shape)))
    ),
}
