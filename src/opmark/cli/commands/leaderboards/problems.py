"""Tracks, problems, placement algorithms and their standings."""

from pathlib import Path
from typing import Any

import click

from opmark.cli import completers as completing
from opmark.cli.commands.leaderboards.solutions import check_trace
from opmark.cli.commands.leaderboards.standings import freeze, score, standings
from opmark.cli.commands.leaderboards.submissions import check, submit
from opmark.cli.commands.leaderboards.tracks import make_track
from opmark.cli.options import DURATION, workspace
from opmark.cli.question import question_options
from opmark.cli.sizes import chosen_sizes, size_options
from opmark.cli.text.terminal import json_option, show_json, show_table
from opmark.core.errors import PlacementError, SubmissionError
from opmark.core.units import format_bytes, format_ns

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(name="leaderboards")
def group() -> None:
    """Tracks, problems, placement algorithms and their standings."""


for command in (make_track, check, check_trace, submit, score, standings, freeze):
    group.add_command(command)


@group.command(epilog="Example: opmark leaderboards tracks")
@json_option
@click.pass_context
def tracks(ctx: click.Context, as_json: bool) -> None:
    """List the tracks of this workspace."""
    from opmark.leaderboards.scoring.track import load_track, track_names

    folder = workspace(ctx).leaderboards
    found = [load_track(folder, name) for name in track_names(folder)]
    rows = [
        {
            "name": track.name,
            "title": track.rules.title,
            "version": track.rules.version,
            "objective": track.rules.objective,
            "semantics": track.rules.semantics,
            "problems": len(track.problem_paths()),
            "entries": len(track.solutions()),
        }
        for track in found
    ]
    if as_json:
        show_json(rows)
    else:
        columns = ("name", "title", "version", "problems", "entries")
        show_table(columns, [[str(row[column]) for column in columns] for row in rows], left=2)


@group.command(epilog="Example: opmark leaderboards problems --track inference-latency")
@click.option("--track", "track_name", shell_complete=completing.tracks, help="Only this track.")
@json_option
@click.pass_context
def problems(ctx: click.Context, track_name: str | None, as_json: bool) -> None:
    """List the problems of this workspace's tracks."""
    from opmark.leaderboards.scoring.track import load_track, track_names

    folder = workspace(ctx).leaderboards
    rows = []
    for name in [track_name] if track_name else track_names(folder):
        track = load_track(folder, name)
        if track.problem_paths() or track_name:
            rows += [
                {
                    "track": name,
                    "name": problem.name,
                    "model": problem.provenance.model,
                    "cluster": problem.cluster.name,
                    "devices": len(problem.cluster.devices),
                    "units": len(problem.units),
                    "tensors": len(problem.tensors),
                    "objective": problem.objective,
                    "unit": problem.unit,
                }
                for problem in track.problems()
            ]
    if as_json:
        show_json(rows)
    else:
        columns = ("track", "name", "model", "devices", "units", "tensors")
        show_table(columns, [[str(row[column]) for column in columns] for row in rows], left=3)


@group.command(
    name="make-problem",
    epilog="Example: opmark leaderboards make-problem vgg-16 --cluster c.yaml -o p.json",
)
@click.argument("model", shell_complete=completing.models)
@click.option("--cluster", "cluster_file", type=FILE, required=True, help="Devices and links, as YAML.")
@click.option("-o", "--output", type=FILE, required=True, help="The problem file to write.")
@click.option("--name", default="", help="The problem's name; default: model and cluster.")
@click.option(
    "--bundle",
    "bundles",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A predictor folder for its target; default: the newest in this workspace. Repeatable.",
)
@click.option(
    "--missing",
    type=click.Choice(["error", "bytes-moved"]),
    default="error",
    show_default=True,
    help="What a kernel costs whose kind has no predictor.",
)
@size_options
@question_options
@json_option
@click.pass_context
def make_problem(
    ctx: click.Context,
    *,
    model: str,
    cluster_file: Path,
    output: Path,
    name: str,
    bundles: tuple[Path, ...],
    missing: str,
    dimensions: tuple[str, ...],
    batch: int | None,
    size: int | None,
    objective: str,
    micro_batches: int,
    arrivals: str,
    rate: float | None,
    requests: int,
    target: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Make a problem from MODEL, a cluster and predictors.

    MODEL is an .onnx or .pt2 file, or a name that `opmark models list` knows.
    """
    from opmark.leaderboards.making.model_problem import load_cluster, problem_of_model
    from opmark.leaderboards.making.workload import Workload, with_workload
    from opmark.leaderboards.problem.files import save_problem

    cluster = load_cluster(cluster_file)
    sizes = chosen_sizes(dimensions, batch, size)
    workload = Workload(
        objective=objective,
        micro_batches=micro_batches,
        arrivals=arrivals,
        rate_per_s=rate,
        requests=requests,
        target_ns=None if target is None else round(target * 1e9),
        seed=seed,
    )
    plain = problem_of_model(
        model, cluster, workspace(ctx), name=name, bundles=bundles, missing=missing, dimensions=sizes
    )
    problem = with_workload(plain, workload)
    save_problem(problem, output)
    if as_json:
        found = {"name": problem.name, "id": problem.id, "units": len(problem.units), "tensors": len(problem.tensors)}
        show_json({**found, "problem": str(output)})
    else:
        click.echo(
            f"{output}: {len(problem.units)} units, {len(problem.tensors)} tensors, {len(cluster.devices)} devices"
        )


@group.command(epilog="Example: opmark leaderboards place problem.json --placer heft --budget 2s")
@click.argument("problem_file", metavar="PROBLEM", type=FILE)
@click.option(
    "--placer", "name", required=True, shell_complete=completing.placers, help="A placement algorithm: heft, opmark, …"
)
@click.option("--budget", type=DURATION, default="10s", show_default=True, help="Time to plan.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For placers that draw.")
@click.option("-o", "--output", type=FILE, help="Write the solution here.")
@json_option
def place(*, problem_file: Path, name: str, budget: float, seed: int, output: Path | None, as_json: bool) -> None:
    """Let a placer solve PROBLEM and say what its answer costs."""
    from opmark.leaderboards.bounds.bounds import lower_bound
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import save_solution, solution_content
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit
    from opmark.leaderboards.scoring.placer_process import PlacerProcess
    from opmark.leaderboards.search.placer import PLACERS

    PLACERS.load(name)
    problem = load_problem(problem_file)
    facts: dict[str, Any] = {"objective": problem.objective, "unit": problem.unit}
    try:
        with PlacerProcess() as process:
            found = process.attempt(problem, name, budget_s=budget, seed=seed)
    except SubmissionError as error:
        if as_json:
            bound = in_unit(lower_bound(problem), problem.unit)
            empty = {"cost": None, "bound": bound, "solution": None, "reason": error.message}
            show_json({"valid": False, **facts, **empty})
        raise
    least = lower_bound(problem)
    if output is not None:
        save_solution(found.solution, output)
    if as_json:
        answer = solution_content(found.solution)
        cost = {"cost": found.evaluation.value(problem.unit), "bound": in_unit(least, problem.unit)}
        cost["planning_s"] = found.planning_s
        cost |= found.evaluation.facts(problem)
        show_json({"valid": True, **facts, **cost, "solution": answer})
        return
    click.echo(
        f"{name} on {problem.name}: {format_cost(found.evaluation.schedule.value, problem.unit)}, "
        f"lower bound {format_cost(least, problem.unit)}, planned in {format_ns(found.planning_s * 1e9)}"
    )
    placed = found.evaluation.placement.device.tolist()
    devices = enumerate(problem.cluster.devices)
    show_table(("device", "units"), [(device.name, str(placed.count(number))) for number, device in devices])


@group.command(epilog="Example: opmark leaderboards simulate problem.json solution.json --draws 100")
@click.argument("problem_file", metavar="PROBLEM", type=FILE)
@click.argument("solution_file", metavar="SOLUTION", type=FILE)
@click.option("--profile", default="", help="The rules to follow; default: the problem's own.")
@click.option("--trace", type=FILE, help="Write a Chrome trace here (opens in Perfetto).")
@click.option("--draws", type=click.IntRange(min=1), help="Also draw errors from the predictors' intervals this often.")
@json_option
def simulate(
    *, problem_file: Path, solution_file: Path, profile: str, trace: Path | None, draws: int | None, as_json: bool
) -> None:
    """Check SOLUTION, simulate it on PROBLEM, say what it costs."""
    from opmark.core.files import write_json
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import load_solution
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit
    from opmark.leaderboards.problem.rules.profile import profile_named
    from opmark.leaderboards.scoring.robustness import robustness
    from opmark.leaderboards.simulator.evaluation import evaluate
    from opmark.leaderboards.simulator.trace import chrome_trace

    problem = load_problem(problem_file)
    rules = profile_named(profile or problem.profile)
    try:
        found = evaluate(problem, load_solution(solution_file, problem), rules)
    except PlacementError as error:
        raise PlacementError(error.message, where=error.where or str(solution_file), hint=error.hint) from error
    if trace is not None:
        write_json(trace, chrome_trace(problem, found, rules))
    drawn = robustness(problem, found.placement, draws=draws, profile=rules) if draws else None
    busy = found.busy_ns(len(problem.cluster.devices))
    names = [device.name for device in problem.cluster.devices]
    rows = list(zip(names, busy, found.schedule.peak_bytes.tolist(), strict=True))
    if as_json:
        cost = found.value(problem.unit)
        facts = {"valid": True, "objective": problem.objective, "unit": problem.unit, "cost": cost}
        devices = [{"name": name, "busy_ns": spent, "peak_bytes": peak} for name, spent, peak in rows]
        facts |= {"profile": rules.name, "latency_ns": found.schedule.latency_ns, "devices": devices}
        facts |= found.facts(problem) if rules.model is None else {}
        if drawn is not None:
            facts |= {"median": in_unit(drawn.median, problem.unit), "p95": in_unit(drawn.p95, problem.unit)}
        show_json(facts)
        return
    click.echo(f"{problem.name}: {format_cost(found.schedule.value, problem.unit)} ({rules.name})")
    if drawn is not None:
        shown = [format_cost(cost, problem.unit) for cost in (drawn.median, drawn.p95)]
        click.echo(f"In {draws} draws of the predictors' errors: median {shown[0]}, 95 % within {shown[1]}.")
    cells = [(name, format_ns(spent), format_bytes(peak)) for name, spent, peak in rows]
    show_table(("device", "busy", "peak memory"), cells)


@group.command(epilog="Example: opmark leaderboards bound problem.json --solver 30s")
@click.argument("problem_file", metavar="PROBLEM", type=FILE)
@click.option("--solver", type=DURATION, help="Also let an integer program prove a bound for this long.")
@json_option
def bound(problem_file: Path, solver: float | None, as_json: bool) -> None:
    """Say what no placement of PROBLEM can beat.

    And, where latency counts, the response-time guarantee: what list scheduling on the best single device never
    exceeds.
    """
    from opmark.leaderboards.bounds.bounds import bounds
    from opmark.leaderboards.bounds.response_time import known_guarantee_ns
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit

    problem = load_problem(problem_file)
    found = bounds(problem, solver_s=solver or 0.0)
    best = max(found.values(), default=0)
    guarantee = known_guarantee_ns(problem)
    if as_json:
        shown = {name: in_unit(value, problem.unit) for name, value in found.items()}
        show_json(
            {
                "objective": problem.objective,
                "unit": problem.unit,
                "bound": in_unit(best, problem.unit),
                "bounds": shown,
                "guarantee": None if guarantee is None else in_unit(guarantee, problem.unit),
            }
        )
        return
    rows = [(name.replace("_", " "), format_cost(value, problem.unit)) for name, value in found.items()]
    show_table(("bound", problem.objective), rows)
    click.echo(f"No placement of {problem.name} is better than {format_cost(best, problem.unit)}.")
    if guarantee is not None:
        shown_guarantee = format_cost(guarantee, problem.unit)
        click.echo(f"List scheduling on the best single device never takes longer than {shown_guarantee}.")


@group.command(name="import", epilog="Example: opmark leaderboards import graph.txt --format pipedream -o p.json")
@click.argument("file", type=FILE)
@click.option("--format", "name", required=True, help="The format: dnn-partitioning or pipedream.")
@click.option("-o", "--output", type=FILE, required=True, help="The problem file to write.")
@click.option(
    "--objective",
    type=click.Choice(["max-load", "latency"]),
    default="max-load",
    show_default=True,
    help="What a placement is judged by.",
)
@click.option(
    "--contiguous/--no-contiguous", default=True, show_default=True, help="Forbid paths that return to a device."
)
@click.option("--devices", type=click.IntRange(min=1), help="How many accelerators; default: the format's own.")
@click.option("--bandwidth", type=click.FloatRange(min=0, min_open=True), help="Bytes per s between machines.")
@json_option
def import_problem(
    *,
    file: Path,
    name: str,
    output: Path,
    objective: str,
    contiguous: bool,
    devices: int | None,
    bandwidth: float | None,
    as_json: bool,
) -> None:
    """Make a problem from FILE, a published one with its costs."""
    from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
    from opmark.leaderboards.problem.files import save_problem

    options = ImportOptions(
        objective=objective, contiguous=contiguous, devices=devices, bandwidth_bytes_per_s=bandwidth
    )
    problem = IMPORTERS.load(name).read(file, options)
    save_problem(problem, output)
    if as_json:
        found = {"name": problem.name, "id": problem.id, "objective": problem.objective, "unit": problem.unit}
        show_json({**found, "units": len(problem.units), "tensors": len(problem.tensors), "problem": str(output)})
    else:
        click.echo(f"{output}: {len(problem.units)} units on {len(problem.cluster.devices)} devices, {problem.profile}")


@group.command(epilog="Example: opmark leaderboards site -o site")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Default: site/ here.")
@json_option
@click.pass_context
def site(ctx: click.Context, output: Path | None, as_json: bool) -> None:
    """Write the static site of every track that has solutions."""
    from opmark.leaderboards.site.exhibition import publish_tracks

    place = workspace(ctx)
    files = publish_tracks(place.leaderboards, output or place.root / "site")
    if as_json:
        show_json({"index": str(files[0]), "files": [str(path) for path in files]})
    else:
        click.echo(f"{files[0]} ({len(files)} pages)")


COMMAND = group
