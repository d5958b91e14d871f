"""Rows of a made-up machine, small but of real kinds, for the tests of this room."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Setting
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.measurement import FAILED, OK, QUANTILES, SKIPPED, Measurement, NetworkMeasurement
from opmark.datasets.format.manifest import RowSource
from opmark.datasets.release.contents import Contents, from_measurements
from opmark.kinds import KINDS, work_of

DEVICE = "acme-1-2-3-2vcpu-l3-32m"
ENVIRONMENT = Environment(
    device=DEVICE,
    checked={"cpu": "Acme", "last_level_bytes": 32 << 20, "onnxruntime.version": "1.31.0"},
    noted={"load": 0.5},
)
TARGET = Target(device=DEVICE, backend="onnxruntime", provider="cpu", version="1.31")


def kernels(count: int, kind: str = "conv") -> list[Kernel]:
    """The first `count` distinct kernels of `kind`, drawn from its space with a fixed seed."""
    family = KINDS.load(kind)
    found: dict[str, Kernel] = {}
    fractions = random.Random(0)
    for _ in range(100 * count):
        values = {name: axis.at(fractions.random()) for name, axis in family.space.items()}
        drawn = family.draw(values, Setting(language="onnx"))
        if drawn is not None:
            kernel = family.kernel(drawn)
            found.setdefault(kernel.key, kernel)
        if len(found) == count:
            return list(found.values())
    raise AssertionError(f"{kind} gives only {len(found)} kernels")


def training_kernels() -> list[Kernel]:
    """Two kernels of a backward pass and one of an update."""
    return [
        family.kernel(family.parameters(**parameters))
        for family, parameters in (
            (KINDS.load("activation-backward"), {"op": "relu", "shape": (64, 64)}),
            (KINDS.load("loss"), {"op": "nll-backward", "shape": (16, 10)}),
            (KINDS.load("update"), {"op": "sgd", "tensors": 2, "elements": 4096}),
        )
    ]


def measurement(kernel: Kernel, *, flops_per_s: float = 5e10, **changes: Any) -> Measurement:
    """A usable trial whose hot label is arithmetic at `flops_per_s` or traffic at a tenth of it, plus 100 ns."""
    work = work_of(kernel)
    hot_ns = changes.pop("latency_hot_ns", 100 + max(work.flops, 10 * work.moved_bytes) / flops_per_s * 1e9)
    rotated_ns = 1.5 * hot_ns
    fields: dict[str, Any] = {
        "status": OK,
        "latency_hot_ns": hot_ns,
        "latency_rotated_ns": rotated_ns,
        "overhead_ns": 2100.0,
        "hot_quantiles_ns": tuple(hot_ns * (0.98 + at / 10) for at in QUANTILES),
        "rotated_quantiles_ns": tuple(rotated_ns * (0.98 + at / 10) for at in QUANTILES),
        "clean_fraction": 0.9,
        "between_process_variation": 0.01,
        "samples": 60,
        "processes": 2,
        "suite": "sample",
        "environment_id": ENVIRONMENT.id,
        "target": TARGET.name,
    }
    return Measurement(kernel=kernel, work=work, **{**fields, **changes})


def without_latency(kernel: Kernel, status: str = FAILED, reason: str = "the worker crashed") -> Measurement:
    """A failed or skipped trial."""
    return Measurement(
        kernel=kernel,
        work=work_of(kernel),
        target=TARGET.name,
        status=status,
        reason=reason,
        environment_id=ENVIRONMENT.id,
    )


def network(name: str = "tiny", **changes: Any) -> NetworkMeasurement:
    """A measured network."""
    fields: dict[str, Any] = {
        "family": "tiny",
        "target": TARGET.name,
        "graph_id": "0123456789abcdef",
        "status": OK,
        "role": "training",
        "latency_ns": 1.5e6,
        "quantiles_ns": tuple(1.5e6 * (1 + at) for at in QUANTILES),
        "peak_memory_bytes": 1 << 24,
        "samples": 9,
        "processes": 2,
        "environment_id": ENVIRONMENT.id,
    }
    return NetworkMeasurement(network=name, **{**fields, **changes})


def contents(
    measurements: Sequence[Measurement] | None = None,
    networks: Sequence[NetworkMeasurement] | None = None,
    *,
    environment: Environment = ENVIRONMENT,
    target: Target = TARGET,
    name: str = "a.jsonl",
) -> Contents:
    """What one run measured: by default forty convolutions, one of them failed and one skipped, and a network."""
    if measurements is None:
        *usable, failed, skipped = kernels(42)
        measurements = [*map(measurement, usable), without_latency(failed), without_latency(skipped, SKIPPED, "cast")]
    measurements = [replace(item, environment_id=environment.id, target=target.name) for item in measurements]
    found = [network()] if networks is None else networks
    found = [replace(item, environment_id=environment.id, target=target.name) for item in found]
    return from_measurements(
        name,
        measurements,
        found,
        environments=(environment,),
        targets=(target,),
        sources=(RowSource(name=name, sha256="0" * 64, kernels=len(measurements), networks=len(found)),),
    )
