"""The pairs and chains of operators in a fusion report."""

from collections.abc import Sequence
from dataclasses import dataclass

from opmark.bench.fusion.operators import PLANE, QUERIES, ROWS, TOKENS
from opmark.core.registry import unknown_name

_SEPARATOR = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`first` then `second`, each an operator or a chain joined by `-`, on tensors of a `domain`.

    The pair is fused if the first operator of `second` joins the kernel of the last operator of `first`.
    """

    first: str
    second: str
    domain: str

    @property
    def name(self) -> str:
        """The name of the pair, such as `conv-bn+relu`."""
        return f"{self.first}+{self.second}"

    @property
    def operators(self) -> tuple[str, ...]:
        """All operators in order."""
        return (*self.first.split(_SEPARATOR), *self.second.split(_SEPARATOR))

    @property
    def split(self) -> int:
        """The number of operators in the first part."""
        return len(self.first.split(_SEPARATOR))


def _product(firsts: str, seconds: str, domain: str) -> tuple[Pair, ...]:
    return tuple(
        Pair(first=first, second=second, domain=domain) for first in firsts.split() for second in seconds.split()
    )


# The operators of nn-Meter's test cases (ruletest_config.yaml), every producer with every possible consumer; then its
# hard-coded chains; then the operators of transformers, which nn-Meter does not test.
_IMAGE = (
    *_product(
        "conv dwconv", "relu relu6 hswish sigmoid bn add concat maxpool avgpool reshape conv dwconv convtrans", PLANE
    ),
    *_product("convtrans maxpool avgpool concat", "relu add bn conv concat", PLANE),
    *_product("bn add", "relu relu6 hswish add bn conv dwconv concat maxpool reshape", PLANE),
    *_product("relu hswish", "add bn conv dwconv maxpool avgpool concat reshape", PLANE),
    *_product("conv-bn dwconv-bn", "relu relu6 hswish sigmoid add", PLANE),
    *_product("conv-add conv-bn-add", "relu", PLANE),
    *_product("conv-bn-relu conv1x1-bn-relu6 dwconv-bn-relu6", "conv1x1 dwconv gap add", PLANE),
    *_product("conv conv1x1", "leakyrelu tanh gelu mul", PLANE),
)
_DENSE = _product("fc", "relu relu6 hswish sigmoid tanh gelu add bias fc", ROWS) + _product("relu add", "fc", ROWS)
_TRANSFORMER = (
    *_product("linear", "bias add gelu relu scale heads linear layernorm", TOKENS),
    *_product("linear-bias", "gelu relu add heads layernorm", TOKENS),
    *_product("layernorm", "linear add gelu", TOKENS),
    *_product("add bias", "layernorm", TOKENS),
    *_product("linear-bias-add", "layernorm", TOKENS),
    *_product("linear-bias-gelu", "linear", TOKENS),
    *_product("linear-bias-heads", "transpose", TOKENS),
    *_product("scores", "scale softmax mask", QUERIES),
    *_product("scores-scale", "mask softmax", QUERIES),
    *_product("scores-scale-mask", "softmax", QUERIES),
    *_product("scores-scale-softmax scores-scale-mask-softmax", "context", QUERIES),
)
PAIRS: dict[str, Pair] = {pair.name: pair for pair in (*_IMAGE, *_DENSE, *_TRANSFORMER)}


def pairs_named(names: Sequence[str]) -> tuple[Pair, ...]:
    """The pairs called `names`, or all pairs without names. Raises `UnknownNameError` with the nearest name."""
    for name in names:
        if name not in PAIRS:
            raise unknown_name("pair", name, PAIRS)
    return tuple(PAIRS[name] for name in dict.fromkeys(names)) if names else tuple(PAIRS.values())
