"""The interface of a kernel family; one file of `opmark.kinds` per family."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kernel import Kernel, frozen
from opmark.core.kernels.work import Work

P = TypeVar("P")

LANGUAGES = ("onnx", "aten")
FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Choice:
    """An axis of a few equally likely values; a value given twice is twice as likely."""

    values: tuple[Any, ...]

    def at(self, fraction: float) -> Any:
        """The value at `fraction` in [0, 1)."""
        return self.values[int(fraction * len(self.values))]


@dataclass(frozen=True, slots=True)
class Range:
    """An axis of integers from `low` to `high`, evenly spread in the logarithm and rounded to a `multiple`."""

    low: int
    high: int
    multiple: int = 1

    def at(self, fraction: float) -> int:
        """The value at `fraction` in [0, 1)."""
        value: float = self.low * (self.high / self.low) ** fraction
        return max(self.low, min(self.high, round(value / self.multiple) * self.multiple))


Axis = Choice | Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The graph language and element type a kernel is drawn for, and the width of the host's blocked layout."""

    language: str
    dtype: str = "float32"
    block: int = 16


class Kind(ABC, Generic[P]):
    """A kernel family. `P` is a frozen dataclass of everything that changes the computation."""

    name: ClassVar[str]
    parameters: type[P]
    # Features that are codes and not sizes; a learner must not order them.
    categories: ClassVar[tuple[str, ...]] = ()
    # The space that suites draw from by default; a suite may replace axes by name.
    space: ClassVar[Mapping[str, Axis]] = {}
    # Kernels with more work than this are not drawn.
    most_flops: ClassVar[float] = math.inf
    most_bytes: ClassVar[float] = math.inf
    # Whether kernels multiply and accumulate; such work must never hide in `bytes-moved`.
    matrix: ClassVar[bool] = False
    languages: ClassVar[tuple[str, ...]] = LANGUAGES
    # The element types a suite can ask for; `int8` stands for unsigned eight bits too.
    dtypes: ClassVar[frozenset[str]] = FLOATING
    # The operators that `from_onnx` and `from_aten` may accept (`com.microsoft:FusedConv`); ATen names lack overloads.
    onnx_ops: ClassVar[frozenset[str]] = frozenset()
    aten_ops: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def work(self, p: P) -> Work:
        """FLOPs (2 per multiply-accumulate) and minimal traffic of one call."""

    @abstractmethod
    def features(self, p: P) -> dict[str, float]:
        """Family-specific numbers for a learner, with the same names for every `p`; sizes are raw, not logarithms."""

    def details(self, p: P) -> dict[str, float]:
        """Further numbers for a learner that are not sizes: shares, waste, switches between algorithms.

        The names are the same for every `p`. Learners take the values as they are and keep no range of them.
        """
        del p
        return {}

    def steps(self, p: P) -> dict[str, float]:
        """Repetitions in an implementation of `p`: logarithms of calls, rows and blocks, and shares that stay empty.

        Like `details`, but learners use them only where they predict held-out kernels better.
        """
        del p
        return {}

    def code_path(self, p: P) -> dict[str, float]:
        """The code that a library computes `p` with, as far as sizes choose it, and what this code copies and repeats.

        Learners use these columns, too, only where they predict held-out kernels better. Flags of codes have `by_` in
        their names; amounts are logarithms.
        """
        del p
        return {}

    @abstractmethod
    def shape_group(self, p: P) -> str:
        """A label of the split that `p` belongs to; siblings that differ only in channels share it, for example."""

    @abstractmethod
    def draw(self, values: Mapping[str, Any], setting: Setting) -> P | None:
        """The kernel at a point of `space` (one value per axis), or None where the values do not fit together."""

    @abstractmethod
    def vary(self, p: P, width: float, extent: float) -> P:
        """A relative of `p`: channels or features scaled by `width`, spatial or sequence sizes by `extent`."""

    def from_onnx(self, node: OnnxNode) -> P | None:
        """The parameters of `node`, or None where the family does not cover it."""
        del node
        return None

    def to_onnx(self, p: P) -> OnnxNode | None:
        """The node that computes `p`, or None where ONNX Runtime has no such kernel."""
        del p
        return None

    def from_aten(self, call: AtenCall) -> P | None:
        """The parameters of `call`, or None where the family does not cover it."""
        del call
        return None

    def to_aten(self, p: P) -> AtenCall | None:
        """The call that computes `p`, or None where torch has no such kernel."""
        del p
        return None

    def within_limits(self, p: P) -> P | None:
        """`p`, or None where its work exceeds `most_flops` or `most_bytes`."""
        work = self.work(p)
        return p if work.flops <= self.most_flops and work.moved_bytes <= self.most_bytes else None

    def kernel(self, p: P) -> Kernel:
        """`p` as a kernel."""
        return Kernel.of(self.name, plain(p))

    def parse(self, kernel: Kernel) -> P:
        """The parameters of `kernel`. Raises `ContentError` where one is missing or unknown."""
        try:
            return self.parameters(**{name: frozen(value) for name, value in kernel.parameters})
        except (TypeError, ValueError) as error:
            raise ContentError(f"not a {self.name} kernel: {error}", where=str(kernel)) from error
