"""Measure strangers as a release measures its networks: in turns with the sentinels, told at the calm state.

The allocator keeps freed memory, as in measuring processes, and every reading of the clock stands beside readings of
both sentinels (decision 0022). A look is one visit to a network; several looks at different moments give its label.
"""

import gc
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from opmark.bench.clock.clock import Clock, machine_timer
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.turns import Part, sentinel_part, take_turns
from opmark.bench.worker.backend import BACKENDS
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.canonical import plain
from opmark.core.errors import OpMarkError
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import look_of
from opmark.core.measurements.estimate import median
from opmark.core.measurements.labelling import Label, labels_of
from opmark.core.measurements.records import NETWORK, Block
from opmark.core.schema import convert_json
from opmark.core.workspace import Workspace
from opmark.datasets.format import manifest
from opmark.datasets.release.release import load
from opmark.predictors.model.manifest import TrainingRelease

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def become_measuring_process(target: Target) -> None:
    """Start this script again unless it has the variables of a measuring process, which the allocator reads at once."""
    variables = {**dict.fromkeys(_THREADS, "1"), **BACKENDS.load(target.backend).environment_variables(target)}
    if any(os.environ.get(name) != value for name, value in variables.items()):
        os.environ.update(variables)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Looks:
    """Looks at networks by name, kept in `file`, so that an interrupted run goes on."""

    def __init__(self, file: Path | None) -> None:
        # One thread: its own processor time leaves out what other programs take, and the sentinels tell how they slow it.
        timer = replace(machine_timer(), now_ns=time.thread_time_ns)
        self._clock = Clock(timer=timer, protocol=FULL)
        self._sentinels = {
            name: sentinel_part(item.call, self._clock.warm_up(item.call))
            for name, item in processor_sentinels().items()
        }
        self._file = file
        self.blocks: dict[str, list[Block]] = defaultdict(list)
        for line in file.read_text().splitlines() if file and file.exists() else ():
            block = convert_json(line.encode(), Block, where=str(file))
            self.blocks[block.trial].append(block)

    def look(self, name: str, module: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        """Look at a network once, for a few turns."""
        call, protocol = partial(module, *inputs), self._clock.protocol
        gc.collect()
        gc.disable()
        try:
            with torch.inference_mode():
                calls = self._clock.calls(self._clock.warm_up(call))
                part = Part(call=call, calls=calls, samples=protocol.network_samples)
                taken = take_turns(
                    self._clock, [part], self._sentinels, turns=protocol.network_turns, limit_s=protocol.look_limit_s
                )
        finally:
            gc.enable()
        (samples,) = taken.samples
        block = Block(
            trial=name,
            label=NETWORK,
            # Looks at different moments count as processes do: nothing else of a stranger repeats.
            process=len(self.blocks[name]),
            round=0,
            construction="single",
            copies=1,
            base_copies=0,
            calls=calls,
            ns=samples.ns,
            clean=samples.flags,
            sentinels=taken.readings,
        )
        self.blocks[name].append(block)
        if self._file:
            with self._file.open("a") as out:
                out.write(f"{json.dumps(plain(block))}\n")

    def labels(self, calm: Mapping[str, float]) -> dict[str, Label]:
        """The label of every network with looks, at the `calm` readings of the sentinels in ns."""
        looks = {name: [look_of(one, calm, None, 0.0) for one in blocks] for name, blocks in self.blocks.items()}
        return labels_of({name: found for name, found in looks.items() if found})


def calm_readings(content: Workspace, origin: TrainingRelease, target: str) -> dict[str, float]:
    """The calm readings of the sentinels in the release behind a predictor, in ns; empty where it is not at hand."""
    try:
        sources = manifest.read(content.datasets / origin.device / origin.version).sources
    except OpMarkError:
        return {}
    found: dict[str, list[float]] = defaultdict(list)
    for source in sources:
        for key, ns in source.sentinels_ns.items():
            of, _, sentinel = key.partition("/")
            if of == target:
                found[sentinel].append(ns)
    return {sentinel: median(readings) for sentinel, readings in found.items()}


def released_ns(content: Workspace, origin: TrainingRelease, target: str) -> dict[tuple[str, int, int | None], float]:
    """The measured latency of each network in that release by name, batch and size; empty where it is not at hand."""
    try:
        rows = load(content.datasets / origin.device / origin.version).network_measurements(target)
    except OpMarkError:
        return {}
    return {(row.network, row.batch, row.size): row.latency_ns for row in rows if row.latency_ns}
