"""`opmark leaderboards problems`, `make-problem` and `import`."""

from pathlib import Path

import click

from opmark.cli import completers
from opmark.cli.commands.leaderboards._options import seed_option
from opmark.cli.options import (
    DURATION,
    FILE,
    FOLDER,
    FiniteRange,
    chosen_sizes,
    json_option,
    missing_option,
    size_options,
    together,
    workspace,
)
from opmark.cli.text.terminal import long_step, show_json, show_table
from opmark.core.units import counted

OBJECTIVES = ("latency", "throughput", "cost", "rent", "serving", "hypervolume")
# The options that become a `Workload`.
workload_options = together(
    (
        click.option(
            "--objective",
            type=click.Choice(OBJECTIVES),
            default="latency",
            show_default=True,
            help="The quantity that a placement is judged by.",
        ),
        click.option(
            "--micro-batches",
            type=click.IntRange(min=0),
            default=0,
            help="The number of micro-batches per training step.",
        ),
        click.option("--arrivals", default="", help="The arrival process for the objective serving: poisson, bursty."),
        click.option(
            "--rate",
            type=FiniteRange(min=0, min_open=True),
            help="Requests per second. Default: 70 % of the rate that the best single device can serve.",
        ),
        click.option(
            "--requests", type=click.IntRange(min=1), default=100, show_default=True, help="The number of requests."
        ),
        click.option(
            "--target",
            type=DURATION,
            help="The latency after which an answer is late. Default: three times the latency on the best device.",
        ),
        seed_option("the arrivals"),
    )
)


@click.command(epilog="Example: opmark leaderboards problems --track inference-latency")
@click.option("--track", "track_name", shell_complete=completers.tracks, help="Only this track.")
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
                    "provenance": problem.costs_from,
                    "bound_ns": problem.reference.bound_ns if problem.reference else None,
                    "best_known_ns": problem.reference.best_known_ns if problem.reference else None,
                    "features": problem.features,
                }
                for problem in track.problems()
            ]
    if as_json:
        show_json(rows)
        return
    columns = ("track", "name", "model", "provenance", "devices", "units", "tensors")
    show_table(columns, [[str(row[column]) for column in columns] for row in rows], left=4)


@click.command(
    name="make-problem",
    epilog="Example: opmark leaderboards make-problem vgg-16 --cluster c.yaml -o p.json",
)
@click.argument("model", shell_complete=completers.models)
@click.option("--cluster", "cluster_file", type=FILE, required=True, help="A YAML file of devices and links.")
@click.option("-o", "--output", type=FILE, required=True, help="The problem file to write.")
@click.option("--name", default="", help="The problem's name. Default: the names of model and cluster.")
@click.option(
    "--bundle",
    "bundles",
    multiple=True,
    type=FOLDER,
    help="A predictor's folder, for its target; repeatable. Default: the newest predictor in this workspace.",
)
@missing_option
@size_options
@workload_options
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

    MODEL is an .onnx file, a .pt2 file, or a name listed by `opmark models list`.
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
    with long_step(f"capturing the kernels of {model}"):
        plain = problem_of_model(
            model,
            cluster,
            workspace(ctx),
            name=name,
            bundles=bundles,
            missing=missing,
            dimensions=sizes,
            where=str(cluster_file),
        )
    problem = with_workload(plain, workload)
    save_problem(problem, output)
    if as_json:
        found = {"name": problem.name, "id": problem.id, "units": len(problem.units), "tensors": len(problem.tensors)}
        show_json({**found, "problem": str(output)})
        return
    parts = ((problem.units, "unit"), (problem.tensors, "tensor"), (cluster.devices, "device"))
    click.echo(f"{output}: {', '.join(counted(len(rows), noun) for rows, noun in parts)}")


@click.command(name="import", epilog="Example: opmark leaderboards import graph.txt --format pipedream -o p.json")
@click.argument("file", type=FILE)
@click.option("--format", "name", required=True, help="The format of FILE: dnn-partitioning or pipedream.")
@click.option("-o", "--output", type=FILE, required=True, help="The problem file to write.")
@click.option(
    "--objective",
    type=click.Choice(["max-load", "latency"]),
    default="max-load",
    show_default=True,
    help="The quantity that a placement is judged by.",
)
@click.option(
    "--contiguous/--no-contiguous", default=True, show_default=True, help="Forbid paths that return to a device."
)
@click.option("--devices", type=click.IntRange(1, 1024), help="The number of accelerators. Default: the file's own.")
@click.option("--bandwidth", type=FiniteRange(min=0, min_open=True), help="The bytes per second between machines.")
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
        return
    placed = f"{counted(len(problem.units), 'unit')} on {counted(len(problem.cluster.devices), 'device')}"
    click.echo(f"{output}: {placed}, {problem.profile}")
