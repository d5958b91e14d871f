"""A training plan in Sailor's format: stages of layers, their replicas, tensor parallelism, and a measured time.

Foteini Strati, Zhendong Zhang, George Manos, Ixeia Sanchez Periz, Qinghao Hu, Tiancheng Chen, Berk Buzcu, Song Han,
Pamela Delgado, Ana Klimovic: Sailor: Automating Distributed Training over Dynamic, Heterogeneous, and
Geo-distributed Clusters. SOSP 2025. A file states `real` (seconds per iteration), `red_grads` (seconds of gradient
reduction) and `max_mem` (bytes on one GPU) where they were measured.
"""

from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.reading import read_json
from opmark.core.schema import convert

# Published plans make a few thousand.
PASSES_AT_MOST = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReplica:
    """One tensor-parallel group of `tensor_parallel` GPUs of a node, which holds a stage."""

    gpu: str
    node_gpus: int
    zone: str
    tensor_parallel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A pipeline of stages; `replicas[i][j]` is replica j of stage i, and replica j of all stages form one chain.

    `model` is empty where the file does not name it. `measured_s`, `reduction_s` and `measured_bytes` are None where
    they were not measured.
    """

    path: Path
    stages: tuple[tuple[int, ...], ...]
    replicas: tuple[tuple[StageReplica, ...], ...]
    sequences: int
    global_sequences: int
    model: str = ""
    notes: tuple[str, ...] = ()
    measured_s: float | None = None
    reduction_s: float | None = None
    measured_bytes: int | None = None

    @property
    def layers(self) -> int:
        """The number of layers of the model."""
        return sum(map(len, self.stages))

    @property
    def chains(self) -> int:
        """The degree of data parallelism."""
        return len(self.replicas[0])

    @property
    def micro_batches(self) -> int:
        """The micro-batches of each chain in one iteration, rounded up."""
        return -(-self.global_sequences // (self.sequences * self.chains))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pipeline:
    num_stages: int
    layers_per_stage: list[list[int]]
    tmp_per_stage: list[list[tuple[list[tuple[str, int, str]], int]]]
    dp: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanFile:
    pipeline_list: list[_Pipeline]
    mbs: int
    gbs: int
    zone: str = ""
    model: str = ""
    real: float | None = None
    red_grads: float | None = None
    max_mem: int | None = None


def load_plan(path: Path) -> TrainingPlan:
    """Read and check the plan in `path`; keys that describe no part of the plan are passed over.

    Raises `ContentError` naming file and field: wrong types, stages that do not match their lists, layers missing,
    repeated or out of order, replicas on more than one node, or counts that are not positive.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    known = {field.name for field in fields(_PlanFile)}
    found = convert({key: value for key, value in content.items() if key in known}, _PlanFile, where=str(path))
    for name in ("mbs", "gbs"):
        if getattr(found, name) < 1:
            raise ContentError(f"must be at least 1, not {getattr(found, name)}", where=f"{path}: {name}")
    if found.red_grads is not None and found.red_grads < 0:
        raise ContentError(f"must not be negative, not {found.red_grads}", where=f"{path}: red_grads")
    for name in ("real", "max_mem"):
        value = getattr(found, name)
        if value is not None and value <= 0:
            raise ContentError(f"must be positive, not {value}", where=f"{path}: {name}")
    if not found.pipeline_list:
        raise ContentError("holds no pipeline", where=f"{path}: pipeline_list")
    first = found.pipeline_list[0]
    # Each micro-batch passes every stage once, on one replica of it.
    passes = -(-found.gbs // found.mbs) * len(first.layers_per_stage)
    if passes > PASSES_AT_MOST:
        raise ContentError(
            f"makes {passes:,} passes of micro-batches over stages, more than {PASSES_AT_MOST:,}", where=f"{path}: gbs"
        )
    rows: list[list[StageReplica]] = [[] for _ in first.layers_per_stage]
    slips: list[str] = []
    for number, pipeline in enumerate(found.pipeline_list):
        where = f"{path}: pipeline_list.{number}"
        _check_counts(pipeline, where)
        if pipeline.layers_per_stage != first.layers_per_stage:
            raise ContentError("cuts the layers unlike the first pipeline", where=f"{where}.layers_per_stage")
        slips = _check_layers(pipeline.layers_per_stage, f"{where}.layers_per_stage")
        for stage, groups in enumerate(pipeline.tmp_per_stage):
            rows[stage] += [
                _replica(group, f"{where}.tmp_per_stage.{stage}.{index}") for index, group in enumerate(groups)
            ]
    return TrainingPlan(
        path=path,
        stages=_consecutive([len(stage) for stage in first.layers_per_stage]),
        notes=tuple(slips),
        replicas=tuple(map(tuple, rows)),
        sequences=found.mbs,
        global_sequences=found.gbs,
        model=found.model,
        measured_s=found.real,
        reduction_s=found.red_grads,
        measured_bytes=found.max_mem,
    )


def _consecutive(lengths: list[int]) -> tuple[tuple[int, ...], ...]:
    ends = list(accumulate(lengths))
    return tuple(tuple(range(end - length, end)) for end, length in zip(ends, lengths, strict=True))


def _check_counts(pipeline: _Pipeline, where: str) -> None:
    for name in ("layers_per_stage", "tmp_per_stage", "dp"):
        count = len(getattr(pipeline, name))
        if count != pipeline.num_stages:
            raise ContentError(f"{count} entries for {pipeline.num_stages} stages", where=f"{where}.{name}")
    if pipeline.num_stages < 1:
        raise ContentError("at least one stage is needed", where=f"{where}.num_stages")
    for stage, (groups, count) in enumerate(zip(pipeline.tmp_per_stage, pipeline.dp, strict=True)):
        if len(groups) != count:
            raise ContentError(f"{len(groups)} replicas, but dp says {count}", where=f"{where}.tmp_per_stage.{stage}")
        if count != pipeline.dp[0] or count < 1:
            raise ContentError(
                f"every stage needs the same number of replicas, at least 1, not {count}", where=f"{where}.dp.{stage}"
            )


def _check_layers(stages: list[list[int]], where: str) -> list[str]:
    """The stages together hold layers 0, 1, 2, … in order, each once; notes about what was read as a slip."""
    expected, notes = 0, []
    for number, stage in enumerate(stages):
        if not stage:
            raise ContentError("holds no layer", where=f"{where}.{number}")
        for place, layer in enumerate(stage):
            if layer != expected and _is_slip(stage, place, expected):
                notes.append(
                    f"{where}.{number}: {layer} between {expected - 1} and {expected + 1} is read as {expected}"
                )
            elif layer != expected:
                fault = f"layer {layer} stands twice or out of order" if layer < expected else ""
                raise ContentError(fault or f"layer {expected} is missing", where=f"{where}.{number}")
            expected += 1
    return notes


def _is_slip(stage: list[int], place: int, expected: int) -> bool:
    """Five published plans say 18, 29, 20 for 18, 19, 20: one wrong digit of tens between the right neighbours."""
    around = stage[place - 1 : place] + stage[place + 1 : place + 2]
    wrong = stage[place]
    return around == [expected - 1, expected + 1] and min(wrong, expected) > 9 and (wrong - expected) % 10 == 0


def _replica(group: tuple[list[tuple[str, int, str]], int], where: str) -> StageReplica:
    nodes: Any
    nodes, degree = group
    if len(nodes) != 1:
        raise ContentError(f"a replica stands on one node, not on {len(nodes)}", where=where)
    gpu, node_gpus, zone = nodes[0]
    if not 1 <= degree <= node_gpus:
        raise ContentError(f"tensor parallelism {degree} on a node of {node_gpus} GPUs", where=where)
    return StageReplica(gpu=gpu, node_gpus=node_gpus, zone=zone, tensor_parallel=degree)
