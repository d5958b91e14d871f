"""The parts of a problem made of measured layers: units, tensors and weights of a training step, points of a link."""

from collections.abc import Mapping, Sequence

from opmark.leaderboards.plans.bandwidths import Bandwidth
from opmark.leaderboards.plans.layer_times import LayerTime, TrainedModel
from opmark.leaderboards.plans.replay import DEFAULTS, FLOAT_BYTES
from opmark.leaderboards.problem.fields import Tensor, Unit

NS_PER_S = 1e9
# The optimiser's state beside each weight, as a multiple of its bytes.
OPTIMIZER_STATE = DEFAULTS.bytes_per_parameter / FLOAT_BYTES - 1
# Sizes at which the links' polynomials become points.
_SIZES = tuple(2**power for power in range(10, 33, 2))


def layer_units(model: TrainedModel, times: Mapping[str, Sequence[tuple[LayerTime, ...]]]) -> tuple[Unit, ...]:
    """Forward, backward and update of each layer, which share a device.

    `times` has, by device type, the layers of a whole micro-batch, then those of each smaller equal part.
    """
    found = []
    for layer in range(model.layers):
        for phase in ("forward", "backward", "update"):
            rows = {
                kind: [getattr(row[layer], f"{phase}_s") * NS_PER_S for row in table] for kind, table in times.items()
            }
            split = {kind: tuple(row[1:]) for kind, row in rows.items() if len(row) > 1 and phase != "update"}
            found.append(
                Unit(
                    name=f"layer{layer}.{phase}",
                    exec_ns={kind: row[0] for kind, row in rows.items()},
                    weights=(f"layer{layer}",),
                    colocation=f"layer{layer}",
                    phase=phase,
                    kind="layer",
                    split_ns=split,
                )
            )
    return tuple(found)


def layer_tensors(model: TrainedModel, sequences: int) -> tuple[Tensor, ...]:
    """Outputs forward, gradients backward, what a backward pass keeps, and the gradient of each weight."""
    size, rows = model.output_bytes(sequences), model.rows(1)
    found: list[Tensor] = []
    for layer in range(model.layers):
        name = f"layer{layer}"
        kept = round(FLOAT_BYTES * sequences * rows[layer][1])
        ways = [(f"{name}.kept", kept, "forward", (f"{name}.backward",))]
        ways.append((f"{name}.gradient", round(FLOAT_BYTES * rows[layer][0]), "backward", (f"{name}.update",)))
        if layer + 1 < model.layers:
            ways.append((f"{name}.out", size, "forward", (f"layer{layer + 1}.forward",)))
        if layer:
            ways.append((f"{name}.back", size, "backward", (f"layer{layer - 1}.backward",)))
        for tensor, size_bytes, phase, readers in ways:
            found.append(Tensor(name=tensor, size_bytes=size_bytes, producer=f"{name}.{phase}", consumers=readers))
    return tuple(found)


def layer_weights(model: TrainedModel) -> dict[str, int]:
    """The bytes of each layer's weights, in single precision."""
    return {f"layer{layer}": round(FLOAT_BYTES * row[0]) for layer, row in enumerate(model.rows(1))}


def link_points(rate: Bandwidth) -> tuple[tuple[tuple[int, int], ...], float]:
    """A measured bandwidth as a link's points, (bytes, ns), and the bytes per second beyond the last of them."""
    points = tuple((size, round(rate.seconds(size) * NS_PER_S)) for size in _SIZES)
    return points, _SIZES[-1] / rate.seconds(_SIZES[-1])
