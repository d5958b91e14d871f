"""Measured seconds per layer of a model: forward, backward and update, by GPU, micro-batch and tensor parallelism."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.reading import read_json
from opmark.core.registry import unknown_name
from opmark.core.schema import convert

MODELS = "models.json.gz"
COUNT_AT_MOST = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model as its authors profiled it, in single precision.

    `memory` holds, by degree of tensor parallelism, a row per layer: parameters, floats kept for the backward pass per
    sequence, floats of the output per sequence. With `tied_embedding`, the first and the last stage share a weight;
    without `head_in_profile` the profile's last layer leaves out the product with the vocabulary.
    """

    name: str
    layers: int
    hidden_size: int
    sequence_length: int
    vocabulary: int
    tied_embedding: bool
    head_in_profile: bool
    memory: Mapping[int, Sequence[tuple[int, int, int]]]

    def problems(self) -> list[str]:
        """List the faults of this model, one sentence each."""
        counts = ("layers", "hidden_size", "sequence_length", "vocabulary")
        found = [
            f"{name}: must be from 1 to {COUNT_AT_MOST:,}, not {getattr(self, name)}"
            for name in counts
            if not 1 <= getattr(self, name) <= COUNT_AT_MOST
        ]
        if 1 not in self.memory:
            found.append("memory: the rows of tensor parallelism 1 are missing")
        for degree, rows in self.memory.items():
            if degree < 1 or len(rows) != self.layers or any(min(row) < 0 for row in rows):
                found.append(f"memory.{degree}: a row of three counts is needed for each of {self.layers} layers")
        return found

    def rows(self, tensor_parallel: int) -> Sequence[tuple[float, float, float]]:
        """The rows of `memory` on each GPU; a degree that was not profiled shares those of the next smaller one."""
        known = max(degree for degree in self.memory if degree <= tensor_parallel)
        share = known / tensor_parallel
        rows = self.memory[known]
        return rows if share == 1 else [(row[0] * share, row[1] * share, row[2]) for row in rows]

    def output_bytes(self, sequences: int) -> int:
        """The size of a message between stages: one vector of floats per token."""
        return 4 * sequences * self.sequence_length * self.hidden_size


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one layer on one tensor-parallel group."""

    forward_s: float
    backward_s: float
    update_s: float

    def scaled(self, factor: float) -> "LayerTime":
        """All three times by a factor."""
        return LayerTime(self.forward_s * factor, self.backward_s * factor, self.update_s * factor)

    def plus(self, other: "LayerTime") -> "LayerTime":
        """The sum, layer after layer."""
        return LayerTime(
            self.forward_s + other.forward_s, self.backward_s + other.backward_s, self.update_s + other.update_s
        )


@dataclass(frozen=True)
class Profile:
    """The file of one model on one GPU: micro-batch -> tensor parallelism -> layer -> three times."""

    path: Path
    table: Mapping[int, Mapping[int, tuple[LayerTime, ...]]]

    @cached_property
    def layers(self) -> int:
        """The number of layers."""
        return len(next(iter(next(iter(self.table.values())).values())))

    def times(self, sequences: float, tensor_parallel: int) -> tuple[LayerTime, ...]:
        """The layers for a micro-batch; between two measured micro-batches they are interpolated.

        Raises `ContentError` for a degree of parallelism that was not measured, or a micro-batch out of range.
        """
        known = sorted(size for size, rows in self.table.items() if tensor_parallel in rows)
        if not known:
            raise ContentError(
                f"tensor parallelism {tensor_parallel} was not measured", where=f"{self.path}: *.{tensor_parallel}"
            )
        if not known[0] <= sequences <= known[-1]:
            raise ContentError(
                f"a micro-batch of {sequences:g} was not measured, only {known[0]} to {known[-1]}",
                where=f"{self.path}: {sequences:g}.{tensor_parallel}",
            )
        low = max(size for size in known if size <= sequences)
        high = min(size for size in known if size >= sequences)
        first, second = self.table[low][tensor_parallel], self.table[high][tensor_parallel]
        share = 0.0 if low == high else (sequences - low) / (high - low)
        return tuple(a.scaled(1 - share).plus(b.scaled(share)) for a, b in zip(first, second, strict=True))

    def nearest_times(self, sequences: float, tensor_parallel: int) -> tuple[LayerTime, ...]:
        """As `times`, with micro-batches out of range scaled in proportion from the nearest one."""
        known = sorted(size for size, rows in self.table.items() if tensor_parallel in rows)
        inside = min(max(sequences, known[0]), known[-1]) if known else sequences
        return tuple(time.scaled(sequences / inside) for time in self.times(inside, tensor_parallel))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelsFile:
    models: list[TrainedModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfileFile:
    times: dict[int, dict[int, dict[int, tuple[float, float, float]]]]


class LayerProfiles:
    """The profiles of a folder, `<model>/<GPU>.json`, with the published ones where a file holds another model."""

    def __init__(self, folder: Path, published: Path) -> None:
        """Read nothing yet but the names. Raises `ContentError` if the folder holds no profile."""
        self.folder, self.published = folder, published
        self.files = _files(folder)
        if not self.files:
            raise ContentError("holds no profile, <model>/<GPU>.json", where=str(folder))
        self._read: dict[Path, Profile] = {}
        self.notes: list[str] = []

    @cached_property
    def models(self) -> Mapping[str, TrainedModel]:
        """The published models by name."""
        path = self.published / MODELS
        found = convert({"models": read_json(path)}, _ModelsFile, where=str(path))
        for model in found.models:
            if faults := model.problems():
                raise ContentError("; ".join(faults), where=f"{path}: {model.name}")
        return {model.name: model for model in found.models}

    def model_of(self, name: str, layers: int, gpus: Sequence[str], where: str) -> TrainedModel:
        """The model called `name`, or the one with that many layers and profiles of all `gpus`.

        Raises `UnknownNameError`, or `ContentError` if no model or more than one fits.
        """
        if name:
            if name not in self.files or name not in self.models:
                raise unknown_name("model", name, sorted(set(self.files) & set(self.models)))
            if self.models[name].layers != layers:
                raise ContentError(
                    f"{layers} layers, but {name} has {self.models[name].layers}: some are missing or too many",
                    where=where,
                )
            return self.models[name]
        alike = [known for known in sorted(self.files) if known in self.models and self.models[known].layers == layers]
        if not alike:
            counts = ", ".join(f"{model.name} {model.layers}" for model in self.models.values())
            raise ContentError(
                f"no model has {layers} layers: some are missing or too many", where=where, hint=f"layers: {counts}"
            )
        full = [known for known in alike if all(gpu in self.files[known] for gpu in gpus)] or alike
        if len(full) > 1:
            raise ContentError(
                f"{' and '.join(full)} have {layers} layers", where=where, hint='add "model" to the plan'
            )
        return self.models[full[0]]

    def profile(self, model: TrainedModel, gpu: str) -> Profile:
        """The profile of `model` on `gpu`; a file of the folder that holds another model yields to the published one.

        Raises `ContentError` naming the folder and the GPU if there is none.
        """
        path = self.files.get(model.name, {}).get(gpu)
        if path is None:
            known = ", ".join(sorted(self.files.get(model.name, {})))
            raise ContentError(f"no profile of {gpu}", where=str(self.folder / model.name), hint=f"known: {known}")
        found = self._load(path)
        if found.layers == model.layers:
            return found
        other = _files(self.published / "profiles").get(model.name, {}).get(gpu)
        if other is None or other == path:
            raise ContentError(f"{found.layers} layers, but {model.name} has {model.layers}", where=str(path))
        note = (
            f"{path} holds {found.layers} layers, not the {model.layers} of {model.name}; the published profile counts"
        )
        if note not in self.notes:
            self.notes.append(note)
        return self._load(other)

    def layer_times(self, model: TrainedModel, gpu: str, sequences: int, tensor_parallel: int) -> tuple[LayerTime, ...]:
        """All layers of `model`; a vocabulary product that the profile leaves out is derived.

        The rule of work: it takes as long as the last layer of another model of equal work per token (hidden size times
        vocabulary), measured on the same GPU with as many more sequences as its hidden size is smaller.
        """
        times = self.profile(model, gpu).times(sequences, tensor_parallel)
        if model.head_in_profile:
            return times
        donors = [other for other in self.models.values() if other.head_in_profile and not other.tied_embedding]
        for donor in donors:
            if gpu in self.files.get(donor.name, {}):
                work = model.hidden_size * model.vocabulary / (donor.hidden_size * donor.vocabulary)
                head = self.profile(donor, gpu).nearest_times(sequences * work, tensor_parallel)[-1]
                last = times[-1].plus(LayerTime(head.forward_s, head.backward_s, 0.0))
                return (*times[:-1], last)
        return times

    def _load(self, path: Path) -> Profile:
        if path not in self._read:
            self._read[path] = Profile(path, _table(read_json(path), path))
        return self._read[path]


def _files(folder: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for path in sorted([*folder.glob("*/*.json"), *folder.glob("*/*.json.gz")]):
        found.setdefault(path.parent.name, {})[path.name.partition(".json")[0]] = path
    return found


def _table(content: Any, path: Path) -> dict[int, dict[int, tuple[LayerTime, ...]]]:
    raw = convert({"times": content}, _ProfileFile, where=str(path)).times
    counts: Counter[int] = Counter()
    table: dict[int, dict[int, tuple[LayerTime, ...]]] = {}
    for size, degrees in raw.items():
        for degree, layers in degrees.items():
            where = f"{path}: {size}.{degree}"
            if sorted(layers) != list(range(len(layers))) or not layers:
                raise ContentError(f"layers 0 to {max(layers, default=0)} are not all there", where=where)
            if any(value < 0 for row in layers.values() for value in row):
                raise ContentError("a time is negative", where=where)
            table.setdefault(size, {})[degree] = tuple(LayerTime(*layers[number]) for number in sorted(layers))
            counts[len(layers)] += 1
    if not table:
        raise ContentError("holds no times", where=str(path))
    if len(counts) > 1:
        raise ContentError(f"holds {' and '.join(map(str, sorted(counts)))} layers", where=str(path))
    return table
