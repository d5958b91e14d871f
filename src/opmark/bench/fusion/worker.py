"""The process that measures pairs of operators: both parts and the whole, next to each other.

Run it as `python -m opmark.bench.fusion.worker`.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from opmark.bench.clock.clock import Samples
from opmark.bench.clock.scheduling import UNFILTERED
from opmark.bench.worker.backend import Backend, Piece, Prepared
from opmark.bench.worker.server import Worker, main
from opmark.core.errors import UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.kernels.fusion import FUSED, NOT_FUSED, UNDECIDED
from opmark.core.kernels.kernel import Kernel

_PARTS = ("first", "second", "block")


class FusionWorker(Worker):
    """A worker that also answers `fusion`: all rounds of one pair in this process."""

    def fusion(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure rounds over the first `split` kernels, the others, and all of them, in random order."""
        backend, target, clock = self._bench.backend, self._bench.target, self._bench.clock
        kernels = [Kernel.of(item["kind"], item["parameters"]) for item in request["kernels"]]
        split = request["split"]
        parts = {"first": kernels[:split], "second": kernels[split:], "block": kernels}
        pieces = reported_pieces(backend, parts, target)
        prepared: dict[str, Prepared] = {}
        try:
            for name, part in parts.items():
                with self._bench.building():
                    prepared[name] = backend.prepare_sequence(part, target)
            latency_ns = {name: clock.warm_up(item.call) for name, item in prepared.items()}
            scheduling = self._bench.settle(max(latency_ns.values()))
            protocol = clock.protocol
            wanted = protocol.tier(max(latency_ns.values())).hot
            rounds = []
            for _ in range(protocol.fusion_rounds):
                taken: dict[str, Samples] = {}
                for name in random.sample(_PARTS, len(_PARTS)):
                    taken[name] = clock.take(
                        prepared[name].call,
                        latency_ns=latency_ns[name],
                        samples=wanted,
                        limit_s=protocol.look_limit_s / len(_PARTS),
                    )
                rounds.append(_encoded(taken, scheduling))
        finally:
            for item in prepared.values():
                item.close()
        inserted = {name: sum(not piece.covers for piece in found) for name, found in pieces.items()}
        return {
            "rounds": rounds,
            "white_box": UNDECIDED if not pieces["block"] else FUSED if joined(pieces["block"], split) else NOT_FUSED,
            "kernels": described(pieces["block"], request["operators"]),
            "inserted_saved": inserted["first"] + inserted["second"] - inserted["block"],
        }


def reported_pieces(
    backend: Backend, parts: Mapping[str, Sequence[Kernel]], target: Target
) -> dict[str, tuple[Piece, ...]]:
    """The kernels that the runtime reports for each part; none where it does not report them."""
    try:
        return {name: backend.pieces(part, target) for name, part in parts.items()}
    except UnavailableError:
        return dict.fromkeys(parts, ())


def joined(pieces: tuple[Piece, ...], split: int) -> bool:
    """Return True if one kernel covers the operators before and at `split`."""
    return any({split - 1, split} <= set(piece.covers) for piece in pieces)


def described(pieces: tuple[Piece, ...], operators: list[str]) -> str:
    """Describe kernels with their operators: `ReorderInput, Conv(conv bn relu), ReorderOutput`."""
    shown = []
    for piece in pieces:
        covered = " ".join(operators[place] for place in piece.covers)
        shown.append(f"{piece.name}({covered})" if covered else piece.name)
    return ", ".join(shown)


def _encoded(taken: dict[str, Samples], scheduling: str) -> dict[str, Any]:
    filtered = all(samples.filtered for samples in taken.values())
    return {
        **{f"{name}_ns": [round(ns, 1) for ns in taken[name].ns] for name in _PARTS},
        "clean": [taken[name].flags for name in _PARTS],
        "scheduling": scheduling if filtered else UNFILTERED,
    }


if __name__ == "__main__":
    main(FusionWorker)
