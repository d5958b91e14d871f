"""What a kernel family must say about itself; one file of `opmark.kinds` per family."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from opmark.core.call import AtenCall, OnnxNode
from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.kernel import Kernel, frozen
from opmark.core.work import Work

P = TypeVar("P")

LANGUAGES = ("onnx", "aten")
FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Choice:
    """An axis that takes one of a few values, all equally likely (repeat one to prefer it)."""

    values: tuple[Any, ...]

    def at(self, fraction: float) -> Any:
        """The value at `fraction` in [0, 1)."""
        return self.values[int(fraction * len(self.values))]


@dataclass(frozen=True, slots=True)
class Range:
    """A whole-number axis from `low` to `high`, spread evenly in the logarithm, rounded to a `multiple`."""

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
    """What a drawn kernel is for: a graph language, an element type, and the host's blocked-layout width."""

    language: str
    dtype: str = "float32"
    block: int = 16


class Kind(ABC, Generic[P]):
    """A kernel family. `P` is a frozen dataclass whose fields are everything that changes what runs."""

    name: ClassVar[str]
    parameters: type[P]
    # Features that are codes, not sizes; a learner must not order them.
    categories: ClassVar[tuple[str, ...]] = ()
    # The default space a suite draws from; a suite may replace axes by name.
    space: ClassVar[Mapping[str, Axis]] = {}
    # Whether a kernel of this kind does multiply-accumulate work (what must never hide in `bytes-moved`).
    matrix: ClassVar[bool] = False
    languages: ClassVar[tuple[str, ...]] = LANGUAGES
    # The element types that a suite can ask for and get such kernels; `int8` stands for unsigned eight bits too.
    dtypes: ClassVar[frozenset[str]] = FLOATING
    # What `from_onnx` and `from_aten` may accept: `Conv`, `com.microsoft:FusedConv`; ATen names without overload.
    onnx_ops: ClassVar[frozenset[str]] = frozenset()
    aten_ops: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def work(self, p: P) -> Work:
        """FLOPs (2 per multiply-accumulate) and minimal traffic of one call."""

    @abstractmethod
    def features(self, p: P) -> dict[str, float]:
        """Family-specific numbers for a learner, the same names for every `p`; sizes raw, not logged."""

    def details(self, p: P) -> dict[str, float]:
        """Further numbers for a learner that are no sizes: shares, waste, switches between ways to compute.

        The same names for every `p`; taken as they are, and no range of them is kept.
        """
        del p
        return {}

    @abstractmethod
    def shape_group(self, p: P) -> str:
        """What kernels must share to stand on one side of a split: siblings that differ only in channels, say."""

    @abstractmethod
    def draw(self, values: Mapping[str, Any], setting: Setting) -> P | None:
        """The kernel at a point of `space` (one value per axis), or None where the combination makes no sense."""

    @abstractmethod
    def vary(self, p: P, width: float, extent: float) -> P:
        """A relative of `p`: channels or features scaled by `width`, spatial or sequence sizes by `extent`."""

    def from_onnx(self, node: OnnxNode) -> P | None:
        """The parameters of `node`, or None where it is not of this family."""
        del node
        return None

    def to_onnx(self, p: P) -> OnnxNode | None:
        """The node to run for `p`, or None where ONNX Runtime has no such kernel."""
        del p
        return None

    def from_aten(self, call: AtenCall) -> P | None:
        """The parameters of `call`, or None where it is not of this family."""
        del call
        return None

    def to_aten(self, p: P) -> AtenCall | None:
        """The call to run for `p`, or None where torch has no such kernel."""
        del p
        return None

    def kernel(self, p: P) -> Kernel:
        """`p` as a kernel."""
        return Kernel.of(self.name, plain(p))

    def parse(self, kernel: Kernel) -> P:
        """The parameters of `kernel`. Raises `ContentError` on a missing or unknown one."""
        try:
            return self.parameters(**{name: frozen(value) for name, value in kernel.parameters})
        except (TypeError, ValueError) as error:
            raise ContentError(f"not a {self.name} kernel: {error}", where=str(kernel)) from error
