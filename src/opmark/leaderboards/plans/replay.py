"""Replays of measured training plans: the predicted time of an iteration, its parts, and the peak memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opmark.leaderboards.plans.bandwidths import Bandwidths, load_bandwidths
from opmark.leaderboards.plans.layer_times import LayerProfiles, LayerTime, TrainedModel
from opmark.leaderboards.plans.timeline import NS, PlanCosts, PlanTimeline
from opmark.leaderboards.plans.training_plan import TrainingPlan
from opmark.leaderboards.simulator.simulate import simulate

FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConstants:
    """The constants that no profile states; docs/decisions/0021 says what each was fitted on.

    `exchange_s` is what a group's software spends on each message that it receives, `iteration_s` what one iteration
    spends outside all passes (data, clipping, the optimizer's own code), `early` the part of a message that buffers
    take before its receiver asks for it. A GPU needs `bytes_per_parameter` and `base_bytes` beside the activations.
    """

    exchange_s: float = 0.001
    iteration_s: float = 0.05
    early: float = 0.5
    bytes_per_parameter: float = 24.0
    base_bytes: float = 5.06e9


DEFAULTS = ReplayConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayParts:
    """Seconds of an iteration; their sum is the prediction.

    `compute_s` is that of the busiest group, `bubbles_s` the wait for other stages with free messages, `transfers_s`
    what messages between stages add, `reduction_s` the gradients' sum after the last pass.
    """

    compute_s: float
    bubbles_s: float
    transfers_s: float
    reduction_s: float
    update_s: float
    other_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The prediction for one plan; `error` is (predicted - measured) / measured, None without a measurement."""

    plan: str
    model: str
    gpus: tuple[str, ...]
    stages: int
    chains: int
    micro_batches: int
    predicted_s: float
    measured_s: float | None
    error: float | None
    parts: ReplayParts
    peak_bytes: int
    measured_bytes: int | None
    memory_error: float | None


@dataclass(frozen=True, slots=True)
class PlanReplayer:
    """The measured layers and links by which plans are replayed."""

    profiles: LayerProfiles
    bandwidths: Bandwidths
    constants: ReplayConstants = DEFAULTS

    def replay(self, plan: TrainingPlan) -> Replay:
        """Replay one plan. Raises `ContentError` naming file and field if a profile or a bandwidth is missing."""
        model = self._model(plan)
        costs = self._costs(plan, model)
        parts = _parts(plan, costs, self.bandwidths, self.constants)
        predicted = sum(getattr(parts, name) for name in parts.__dataclass_fields__)
        peak = round(peak_bytes(plan, model, self.constants))
        return Replay(
            plan=str(plan.path),
            model=model.name,
            gpus=tuple(sorted({replica.gpu for row in plan.replicas for replica in row})),
            stages=len(plan.stages),
            chains=plan.chains,
            micro_batches=plan.micro_batches,
            predicted_s=predicted,
            measured_s=plan.measured_s,
            error=_error(predicted, plan.measured_s),
            parts=parts,
            peak_bytes=peak,
            measured_bytes=plan.measured_bytes,
            memory_error=_error(peak, plan.measured_bytes),
        )

    def seconds(self, plan: TrainingPlan) -> float:
        """The prediction alone, in half the time of `replay`."""
        return _simulated(PlanTimeline(plan, self._costs(plan, self._model(plan)), self.bandwidths))[0] + (
            self.constants.iteration_s
        )

    def _model(self, plan: TrainingPlan) -> TrainedModel:
        gpus = sorted({replica.gpu for row in plan.replicas for replica in row})
        return self.profiles.model_of(plan.model, plan.layers, gpus, f"{plan.path}: pipeline_list.0.layers_per_stage")

    def _costs(self, plan: TrainingPlan, model: TrainedModel) -> PlanCosts:
        passes = []
        for stage, replicas in zip(plan.stages, plan.replicas, strict=True):
            row = []
            for one in replicas:
                times = self.profiles.layer_times(model, one.gpu, plan.sequences, one.tensor_parallel)
                row.append(_sum([times[layer] for layer in stage]))
            passes.append(row)
        gradients = []
        for stage, replicas in zip(plan.stages, plan.replicas, strict=True):
            degree = max(one.tensor_parallel for one in replicas)
            rows = model.rows(degree)
            gradients.append(round(FLOAT_BYTES * degree * sum(rows[layer][0] for layer in stage)))
        shared = FLOAT_BYTES * model.hidden_size * model.vocabulary if model.tied_embedding else 0
        return PlanCosts(
            model=model,
            passes=passes,
            exchange_s=self.constants.exchange_s,
            early=self.constants.early,
            output_bytes=model.output_bytes(plan.sequences),
            gradient_bytes=gradients,
            tied_bytes=shared,
        )


def peak_bytes(plan: TrainingPlan, model: TrainedModel, constants: ReplayConstants) -> float:
    """The largest need of any GPU: parameters with their state, and the activations of the micro-batches in flight.

    1F1B keeps as many micro-batches of a stage in flight as there are stages from it to the end.
    """
    needs = []
    for number, (stage, replicas) in enumerate(zip(plan.stages, plan.replicas, strict=True)):
        flying = min(plan.micro_batches, len(plan.stages) - number)
        for one in replicas:
            rows = [model.rows(one.tensor_parallel)[layer] for layer in stage]
            kept = FLOAT_BYTES * plan.sequences * flying * sum(row[1] for row in rows)
            needs.append(constants.bytes_per_parameter * sum(row[0] for row in rows) + kept + constants.base_bytes)
    return max(needs)


def load_replayer(profiles: Path, networks: Path, published: Path) -> PlanReplayer:
    """The replayer of two folders. Raises `ContentError` naming what is missing."""
    return PlanReplayer(LayerProfiles(profiles, published), load_bandwidths(networks))


def _parts(plan: TrainingPlan, costs: PlanCosts, bandwidths: Bandwidths, constants: ReplayConstants) -> ReplayParts:
    """Simulate twice, with messages and with free ones."""
    total, end, update = _simulated(PlanTimeline(plan, costs, bandwidths))
    free = _simulated(PlanTimeline(plan, costs, bandwidths, transfers=False))[1] if len(plan.stages) > 1 else end
    busiest = max(plan.micro_batches * (one.forward_s + one.backward_s) for row in costs.passes for one in row)
    return ReplayParts(
        compute_s=busiest,
        bubbles_s=max(free - busiest, 0.0),
        transfers_s=max(end - free, 0.0),
        reduction_s=max(total - end - update, 0.0),
        update_s=update,
        other_s=constants.iteration_s,
    )


def _simulated(timeline: PlanTimeline) -> tuple[float, float, float]:
    """Seconds until everything is done, until the last pass is done, and of the last update."""
    problem, placement = timeline.made()
    schedule = simulate(problem, placement)
    passes, update, total = 0, 0, 0
    ends = zip(problem.units, schedule.unit_start_ns.tolist(), schedule.unit_end_ns.tolist(), strict=True)
    for unit, start, end in ends:
        if unit.phase == "update":
            if end >= total:
                total, update = end, end - start
        elif not unit.name.startswith(("gradients.", "tied.")):
            passes = max(passes, end)
    return total / NS, min(passes, total - update) / NS, update / NS


def _sum(times: Sequence[LayerTime]) -> LayerTime:
    total = LayerTime(0.0, 0.0, 0.0)
    for time in times:
        total = total.plus(time)
    return total


def _error(predicted: float, measured: float | None) -> float | None:
    return None if measured is None else predicted / measured - 1
