"""Feature columns of kernels, the same for training and for prediction, and the facts of a machine behind them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Kind
from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.core.measurements.environment import Fact
from opmark.kinds import kind_of
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.waves import waves

_DTYPES = {name: float(code) for code, name in enumerate(DTYPE_BYTES)}
# A GPU cuts matrix products into tiles of up to 128 floats on a side, and pads sizes that do not fill one.
_TILE_BYTES = 512
_CACHES = ("level1_bytes", "level2_bytes", "last_level_bytes")
# Features of kinds that code vectorises or tiles over.
_TILED = frozenset({"m", "n", "k", "along", "inner", "last", "columns", "head_size", "hidden", "features"})

# Numbers of each kernel, as flat tuples in plain dictionaries: `lru_cache` with a hundred thousand entries, each with a
# key, costs the garbage collector a second.
_KNOWN: dict[Kind[Any], dict[Kernel, tuple[float, ...]]] = {}
_MOST_KNOWN = 2**18
# Columns that jump at every multiple of a tile's size: trees can cut there, a smooth surface only learns noise.
_SAWTEETH = "_tail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Facts of a machine that features depend on.

    `vector_bytes` is the width of a vector register, on a GPU the side of a tile; `cache_bytes` lists the caches,
    nearest first; `multiprocessors` counts those of a GPU and is 0 on a CPU.
    """

    vector_bytes: int = 32
    cache_bytes: tuple[int, ...] = (32 * 2**10, 2**20, 32 * 2**20)
    multiprocessors: int = 0

    @property
    def last_level_cache_bytes(self) -> int:
        """The size of the largest cache."""
        return max(self.cache_bytes)

    @property
    def block_width(self) -> int:
        """The floats in a vector register: the channel block of ONNX Runtime's blocked convolutions."""
        return self.vector_bytes // DTYPE_BYTES["float32"]

    @property
    def level2_share(self) -> float:
        """The second-nearest cache over the largest, 0 where they are the same or there is one only."""
        nearer = sorted(self.cache_bytes)[1:-1]
        return nearer[0] / self.last_level_cache_bytes if nearer else 0.0


def hardware_of(facts: Mapping[str, Fact]) -> Hardware:
    """Read the hardware from an environment's checked facts; missing facts keep their defaults."""
    default = Hardware()
    sizes = (facts.get(name) for name in _CACHES)
    found = tuple(sorted({int(size) for size in sizes if isinstance(size, (int, float)) and size > 0}))
    wide = "avx512f" in str(facts.get("instruction_sets", "")).split()
    several = facts.get("multiprocessors")
    multiprocessors = int(several) if isinstance(several, (int, float)) else 0
    vector_bytes = _TILE_BYTES if multiprocessors else 64 if wide else default.vector_bytes
    return Hardware(
        vector_bytes=vector_bytes, cache_bytes=found or default.cache_bytes, multiprocessors=multiprocessors
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """Kernels of one kind as arrays, one row per kernel.

    `matrix` has one column per name in `names`. The columns `categorical` hold codes; the others grow with the size
    that they stand for. The first `sizes` columns are the kind's own features and its work, and have a training range.
    The columns `smooth` are those that a smooth surface can follow: all but codes and sawteeth. `multiprocessors` is
    the number of those of a GPU and 0 on a CPU.
    """

    kind: str
    kernels: tuple[Kernel, ...]
    matrix: Floats
    names: tuple[str, ...]
    categorical: tuple[int, ...]
    sizes: int
    smooth: tuple[int, ...]
    raw: Mapping[str, Floats]
    flops: Floats
    moved_bytes: Floats
    weight_bytes: Floats
    written_bytes: Floats
    multiprocessors: int = 0

    def __len__(self) -> int:
        return len(self.kernels)

    @property
    def log_work(self) -> Floats:
        """The logarithm of FLOPs times moved bytes of each kernel, by which kernels of a kind are larger or smaller."""
        work: Floats = np.log1p(self.flops) + np.log1p(self.moved_bytes)
        return work

    def take(self, rows: Any) -> "Inputs":
        """Select rows by indices or by a mask."""
        chosen = np.arange(len(self))[rows]
        return Inputs(
            kind=self.kind,
            kernels=tuple(self.kernels[index] for index in chosen),
            matrix=self.matrix[chosen],
            names=self.names,
            categorical=self.categorical,
            sizes=self.sizes,
            smooth=self.smooth,
            raw={name: column[chosen] for name, column in self.raw.items()},
            flops=self.flops[chosen],
            moved_bytes=self.moved_bytes[chosen],
            weight_bytes=self.weight_bytes[chosen],
            written_bytes=self.written_bytes[chosen],
            multiprocessors=self.multiprocessors,
        )

    def with_columns(self, columns: Mapping[str, Floats]) -> "Inputs":
        """Append columns that a smooth surface can follow."""
        first = len(self.names)
        return replace(
            self,
            matrix=np.column_stack([self.matrix, *columns.values()]),
            names=(*self.names, *columns),
            smooth=(*self.smooth, *range(first, first + len(columns))),
        )

    def only(self, names: Collection[str]) -> "Inputs":
        """Select columns by name; the first `sizes` and the codes must be among them."""
        kept = [column for column, name in enumerate(self.names) if name in names]
        place = {column: number for number, column in enumerate(kept)}
        return replace(
            self,
            matrix=self.matrix[:, kept],
            names=tuple(self.names[column] for column in kept),
            categorical=tuple(place[column] for column in self.categorical),
            smooth=tuple(place[column] for column in self.smooth if column in place),
        )


def features(kernels: Sequence[Kernel], kind: Kind[Any] | None = None, hardware: Hardware | None = None) -> Inputs:
    """Compute the features of `kernels`, all of one `kind` (by default that of the first), on `hardware`.

    Columns: the kind's own features (sizes as log(1 + size)); logs of FLOPs, bytes, weight bytes and written bytes; the
    kind's details; arithmetic intensity; the excess of moved and of weight bytes over each cache; tail fraction and
    padding of tiled sizes for the vector width; on a GPU, waves of tiles over its multiprocessors; the code of the
    element type. Raises `ContentError` for a kernel that its kind cannot read.
    """
    kind = kind or kind_of(kernels[0])
    hardware = hardware or Hardware()
    rows = _rows(kind, kernels)
    own, details = _names(kind, kernels[0]) if rows else ((), ())
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(own) + len(details) + 5)
    raw = {name: table[:, column] for column, name in enumerate(own)}
    flops, read, written, weight, dtype = (table[:, len(own) + len(details) + offset] for offset in range(5))
    moved = read + written

    columns = {name: value if name in kind.categories else _logged(value) for name, value in raw.items()}
    columns |= {
        "log_flops": np.log1p(flops),
        "log_bytes": np.log1p(moved),
        "log_weight_bytes": np.log1p(weight),
        "log_written_bytes": np.log1p(written),
    }
    sizes = len(columns)
    columns |= {name: table[:, len(own) + column] for column, name in enumerate(details)}
    columns["log_intensity"] = np.log((flops + 1) / (moved + 1))
    for level, cache in enumerate(hardware.cache_bytes, start=1):
        columns[f"beyond_cache_{level}"] = np.log1p(moved / cache)
        columns[f"weights_beyond_cache_{level}"] = np.log1p(weight / cache)
    lanes = np.maximum(1.0, hardware.vector_bytes / _element_bytes()[dtype.astype(int)])
    for name in own:
        if name in _TILED or "channels" in name:
            size = np.maximum(raw[name], 1.0)
            columns[f"{name}_tail"] = np.mod(size, lanes) / lanes
            columns[f"{name}_padding"] = np.ceil(size / lanes) * lanes / size - 1
    if hardware.multiprocessors:
        columns |= waves(raw, hardware.multiprocessors)
    columns["dtype_code"] = dtype
    names = tuple(columns)
    codes = {*kind.categories, "dtype_code"}
    return Inputs(
        kind=kind.name,
        kernels=tuple(kernels),
        matrix=np.column_stack(list(columns.values())) if rows else np.empty((0, len(names))),
        names=names,
        categorical=tuple(index for index, name in enumerate(names) if name in codes),
        sizes=sizes,
        smooth=tuple(index for index, name in enumerate(names) if name not in codes and not name.endswith(_SAWTEETH)),
        raw=raw,
        flops=flops,
        moved_bytes=moved,
        weight_bytes=weight,
        written_bytes=written,
        multiprocessors=hardware.multiprocessors,
    )


def _rows(kind: Kind[Any], kernels: Sequence[Kernel]) -> list[tuple[float, ...]]:
    """Look up the numbers of each kernel; the same kernels are asked for again and again."""
    known = _KNOWN.setdefault(kind, {})
    if len(known) > _MOST_KNOWN:
        known.clear()
    rows = []
    for kernel in kernels:
        row = known.get(kernel)
        if row is None:
            row = known[kernel] = _row(kind, kernel)
        rows.append(row)
    return rows


def _row(kind: Kind[Any], kernel: Kernel) -> tuple[float, ...]:
    parameters = _parameters(kind, kernel)
    work = kind.work(parameters)
    dtype = _DTYPES.get(str(getattr(parameters, "dtype", "float32")), -1.0)
    return (
        *kind.features(parameters).values(),
        *kind.details(parameters).values(),
        work.flops,
        work.read_bytes,
        work.written_bytes,
        work.weight_bytes,
        dtype,
    )


def _names(kind: Kind[Any], kernel: Kernel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name a kind's features and its details; they are the same for every kernel."""
    parameters = _parameters(kind, kernel)
    return tuple(kind.features(parameters)), tuple(kind.details(parameters))


def _parameters(kind: Kind[Any], kernel: Kernel) -> Any:
    try:
        # a hashable kernel has no list in it, so nothing is left to freeze
        return kind.parameters(**dict(kernel.parameters))
    except (TypeError, ValueError):
        return kind.parse(kernel)


def _logged(values: Floats) -> Floats:
    logged: Floats = np.sign(values) * np.log1p(np.abs(values))
    return logged


def dtype_code(dtype: str) -> float:
    """The value of the feature `dtype_code` for an element type; -1 for an unknown one."""
    return _DTYPES.get(dtype, -1.0)


def _element_bytes() -> Floats:
    # the last entry serves the code -1, an element type of unknown size
    return np.array([*DTYPE_BYTES.values(), 4], dtype=np.float64)
