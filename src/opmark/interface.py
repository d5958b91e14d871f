"""The Python interface, imported on first use of `opmark.predict` and the other names of `import opmark`."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from opmark.core.errors import ContentError, UsageError
from opmark.core.kernels.kernel import Parameter
from opmark.core.shipped import shipped_content
from opmark.core.units import format_ns
from opmark.core.workspace import Workspace, find_workspace
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem

if TYPE_CHECKING:
    import pandas
    import torch

    from opmark.core.kernels.graph import Graph
    from opmark.datasets.release.release import Release
    from opmark.leaderboards.search.placer import Placer
    from opmark.predictors.model.bundle import Bundle

    Inputs = Union[torch.Tensor, Sequence[torch.Tensor]]  # noqa: UP007 (torch is not imported here)
    Model = Union[torch.nn.Module, str, Path]  # noqa: UP007

MODULE_TARGET = "torch-eager-t1"
USUAL_TARGET = "onnxruntime-cpu-t1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedKernel:
    """One distinct kernel of a network: its kind and parameters, its `count` of calls, and the time of one call.

    `extrapolated` marks a kernel outside the measured range.
    """

    kind: str
    params: Mapping[str, Parameter]
    count: int
    latency_ns: float
    interval_ns: tuple[float, float]
    extrapolated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted latency of one call of a network; nine of ten measurements should lie in `interval_ns`.

    `target` names the device and the runtime, and `this_machine` tells if that device is this one. `warnings` are
    sentences about work that no predictor knows. `kernels` are sorted by their share of the time.
    """

    model: str
    target: str
    latency_ns: float
    interval_ns: tuple[float, float]
    kernels: tuple[PredictedKernel, ...]
    warnings: tuple[str, ...]
    this_machine: bool

    def to_pandas(self) -> "pandas.DataFrame":
        """A table of the kernels: kind, count, `latency_ns`, `low_ns`, `high_ns`, `share`, one column per parameter."""
        import pandas

        rows = [
            {
                "kind": one.kind,
                "count": one.count,
                "latency_ns": one.latency_ns,
                "low_ns": one.interval_ns[0],
                "high_ns": one.interval_ns[1],
                "share": one.count * one.latency_ns / self.latency_ns if self.latency_ns else 0.0,
                "extrapolated": one.extrapolated,
                **one.params,
            }
            for one in self.kernels
        ]
        return pandas.DataFrame(rows)

    def __str__(self) -> str:
        low, high = map(format_ns, self.interval_ns)
        return f"{self.model} on {self.target}: {format_ns(self.latency_ns)} ({low} to {high})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoad:
    """The part of one device in a schedule: the summed time of its units, and its peak memory."""

    name: str
    busy_ns: int
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSolution:
    """The cost of a solution in the problem's objective, shown in `unit`; smaller is better."""

    problem: str
    cost: int | float
    unit: str
    latency_ns: int
    devices: tuple[DeviceLoad, ...]

    def to_pandas(self) -> "pandas.DataFrame":
        """A table of the devices: `name`, `busy_ns`, `peak_bytes`."""
        import pandas

        return pandas.DataFrame(
            [{"name": one.name, "busy_ns": one.busy_ns, "peak_bytes": one.peak_bytes} for one in self.devices]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedProblem:
    """The answer of a placer, simulated; no solution of the problem costs less than `bound`."""

    placer: str
    solution: Solution
    simulated: SimulatedSolution
    bound: int | float
    planning_s: float

    @property
    def cost(self) -> int | float:
        """The cost of the solution, in the problem's unit."""
        return self.simulated.cost


def predict(
    model: "Model",
    inputs: "Inputs | None" = None,
    *,
    target: str = "",
    dimensions: Mapping[str, int] | None = None,
    missing: str = "error",
    bundle: str | Path | None = None,
    workspace: str | Path | None = None,
) -> Prediction:
    """Predict the latency of one call of `model`.

    `model` is a torch module with `inputs` for one call (evaluation mode), a path of an `.onnx` or `.pt2` file, or a
    name that `opmark models list` prints. `dimensions` sets its open sizes, such as `{"batch": 8}`. `target` is
    `[DEVICE/]TARGET`, by default torch-eager-t1 for a module and onnxruntime-cpu-t1 otherwise. The predictor is that in
    the folder `bundle`, else the newest of the `workspace` (by default the nearest), else the one shipped with OpMark.
    With `missing="bytes-moved"` work without a predictor counts as the bytes that it moves.
    Raises `OpMarkError`: `UsageError` for arguments that do not fit, `ContentError` for work without a predictor.
    """
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import path_of, with_predictors
    from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
    from opmark.predictors.model.unmodelled import warnings_about
    from opmark.studies.machine.facts import is_this_machine

    if missing not in {"error", BYTES_MOVED}:
        raise UsageError(f"missing cannot be {missing!r}", hint=f"use 'error' or {BYTES_MOVED!r}")
    named = isinstance(model, (str, Path))
    wanted = target or (USUAL_TARGET if named else MODULE_TARGET)
    here = _workspace(workspace)
    path = Path(bundle) if bundle else path_of(with_predictors(here), wanted)
    loaded = load(path, target_name=wanted.rpartition("/")[2])
    graph = _graph(model, inputs, loaded, dimensions, here)
    found = CostModel(loaded, missing=missing, exact=True).network(graph)
    kernels = tuple(
        PredictedKernel(
            kind=row.kernel.kind,
            params=row.kernel.params,
            count=row.count,
            latency_ns=row.ns,
            interval_ns=(row.low_ns, row.high_ns),
            extrapolated=row.extrapolated,
        )
        for row in found.rows
    )
    return Prediction(
        model=graph.name,
        target=str(loaded.target),
        latency_ns=found.total_ns,
        interval_ns=(found.low_ns, found.high_ns),
        kernels=kernels,
        warnings=warnings_about(found.unmodelled),
        this_machine=is_this_machine(loaded.target.device),
    )


def load_release(name: str | Path, *, workspace: str | Path | None = None) -> "Release":
    """Read the release in the folder `name`, or `DEVICE/VERSION` or `DEVICE` (its newest) of a workspace, and check it.

    `.kernels` and `.networks` are pandas tables. Raises `OpMarkError` where there is none, or where it was changed.
    """
    from opmark.datasets.release.finding import find

    here = _workspace(workspace)
    return find(str(name), (here or Workspace(Path.cwd())).datasets)


def load_problem(name: str | Path) -> Problem:
    """Read the placement problem in the file `name`, or the shipped one called `TRACK/PROBLEM`, and check it."""
    from opmark.leaderboards.problem.files import load_problem as load

    path = Path(name)
    track, _, problem = str(name).rpartition("/")
    shipped = shipped_content().leaderboards / track / "problems" / f"{problem}.json.gz"
    return load(shipped if not path.exists() and track and shipped.is_file() else path)


def place(
    problem: Problem | str | Path, placer: "str | Placer" = "opmark", *, budget_s: float = 10.0, seed: int = 0
) -> PlacedProblem:
    """Let `placer` (a name that `opmark list placers` prints, or an object) solve `problem` within `budget_s` seconds.

    Code that is not compiled yet is compiled first, which a line of the logger `opmark` tells. Raises
    `UnknownNameError`, or `SubmissionError` without a valid answer.
    """
    from opmark.leaderboards.bounds.bounds import known_bound
    from opmark.leaderboards.problem.compile_cache import runs_uncompiled
    from opmark.leaderboards.problem.rules.objective import in_unit
    from opmark.leaderboards.scoring.attempt import attempt, prepare
    from opmark.leaderboards.search.compilation import is_compiled

    asked = _problem(problem)
    if not (runs_uncompiled() or is_compiled()):
        logging.getLogger("opmark").warning("compiling what is not compiled yet: up to a minute of processor time")
    name = placer if isinstance(placer, str) else type(placer).__name__
    if isinstance(placer, str):
        prepare(placer)
    own = None if isinstance(placer, str) else placer
    found = attempt(asked, name, budget_s=budget_s, seed=seed, placer=own)
    return PlacedProblem(
        placer=name,
        solution=found.solution,
        simulated=simulate(asked, found.solution),
        bound=in_unit(known_bound(asked), asked.unit),
        planning_s=found.planning_s,
    )


def simulate(problem: Problem | str | Path, solution: Solution | str | Path) -> SimulatedSolution:
    """Check `solution` and simulate it on `problem`; both may be paths of files.

    Raises `PlacementError` with the first reason why the solution is invalid.
    """
    from opmark.leaderboards.problem.placement import load_solution
    from opmark.leaderboards.simulator.evaluation import evaluate

    asked = _problem(problem)
    answer = solution if isinstance(solution, Solution) else load_solution(Path(solution), asked)
    found = evaluate(asked, answer)
    names = [device.name for device in asked.cluster.devices]
    loads = zip(names, found.busy_ns(len(names)), found.schedule.peak_bytes.tolist(), strict=True)
    return SimulatedSolution(
        problem=asked.name,
        cost=found.value(asked.unit),
        unit=asked.unit,
        latency_ns=int(found.schedule.latency_ns),
        devices=tuple(DeviceLoad(name=name, busy_ns=busy, peak_bytes=peak) for name, busy, peak in loads),
    )


def _problem(problem: Problem | str | Path) -> Problem:
    return problem if isinstance(problem, Problem) else load_problem(problem)


def _workspace(folder: str | Path | None) -> Workspace | None:
    if folder is not None:
        return Workspace(Path(folder))
    try:
        return find_workspace(Path.cwd())
    except ContentError:
        return None


def _graph(
    model: "Model",
    inputs: "Inputs | None",
    bundle: "Bundle",
    dimensions: Mapping[str, int] | None,
    here: Workspace | None,
) -> "Graph":
    if isinstance(model, (str, Path)):
        from opmark.models.resolve import graph_to_predict

        if inputs is not None:
            raise UsageError("inputs belong to a torch module; a file or a name has its own", hint="give dimensions")
        cache = None if here is None else here.cache
        target, width = bundle.target.name, bundle.manifest.hardware.block_width
        return graph_to_predict(str(model), target, cache=cache, dimensions=dimensions, block_width=width)[0]
    import torch

    from opmark.models.live_module import graph_of_module

    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__} is no model", hint="give a torch module, a path or a name")
    if inputs is None or dimensions:
        raise UsageError("a torch module takes its sizes from its inputs", hint="predict(module, inputs)")
    given: tuple[Any, ...] = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    if not all(isinstance(one, torch.Tensor) for one in given):
        raise UsageError("inputs must be tensors", hint="predict(module, (tokens, mask))")
    return graph_of_module(model, given, bundle.target.name)
