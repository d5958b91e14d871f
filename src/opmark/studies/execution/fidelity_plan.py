"""The plan of a fidelity run: its networks, clusters and placers, and the problems in the order of their making."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

TRACK = "inference-latency"
ONNX, TORCH = "onnxruntime-cpu-t1", "torch-eager-t1"
# Two cores with the same runtime, and with unequal ones.
CLUSTERS: Mapping[str, tuple[str, str]] = {
    "2onnx": (ONNX, ONNX),
    "2torch": (TORCH, TORCH),
    "onnx-torch": (ONNX, TORCH),
}
PLACERS = ("best-single-device", "heft", "cpop", "peft", "etf", "m-topo", "local-search", "opmark")
# Networks of a few milliseconds to some tenths of a second, most of them with branches.
MODELS = (
    "inception-small",
    "nasnet-like",
    "rand-wire",
    "two-tower",
    "bart-mini",
    "squeeze-small",
    "mixture-of-experts",
    "wide-and-deep",
    "resnet-small",
    "inception",
    "mobilenet-v1",
    "vit-tiny",
)


@dataclass(frozen=True, kw_only=True)
class FidelityPlan:
    """A run: `models` times `clusters` (names of `CLUSTERS`) times `placers`, each executed in `visits` visits.

    A visit executes a placement `repeats` times, a placer plans for `planning_s`. `predictors` is the device whose
    predictors give the costs. The run ends after `limit_s` seconds.
    """

    models: Sequence[str] = MODELS
    clusters: Sequence[str] = tuple(CLUSTERS)
    placers: Sequence[str] = PLACERS
    visits: int = 3
    repeats: int = 20
    planning_s: float = 2.0
    predictors: str = ""
    track: str = TRACK
    limit_s: float = math.inf

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """(problem, model, cluster) in order: every model once, each on another cluster than the one before it.

        So a run that ends early knows every network and every cluster.
        """
        for turn in range(len(self.clusters)):
            for place, model in enumerate(self.models):
                cluster = self.clusters[(place + turn) % len(self.clusters)]
                yield f"{model}-{cluster}".replace("@", "-"), model, cluster
