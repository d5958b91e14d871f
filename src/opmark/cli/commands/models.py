"""`opmark models`: networks, and the kernels that a runtime runs for them."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli import completers
from opmark.cli.options import DEFAULT_TARGET, FOLDER, cache_folder, chosen_sizes, json_option, size_options, workspace
from opmark.cli.text.predictions import parameters_text, share_text
from opmark.cli.text.terminal import MISSING, long_step, progress_bar, show_json, show_table
from opmark.core.errors import CheckFailedError, UsageError
from opmark.core.kernels.work import Work
from opmark.core.units import counted, format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.core.kernels.graph import Graph
    from opmark.core.kernels.kernel import Kernel
    from opmark.models.coverage import Coverage
    from opmark.models.graphs.refresh import StoreOutcome


@click.group(name="models")
def command() -> None:
    """List networks, and the kernels that a runtime runs."""


@command.command(name="list", epilog="Example: opmark models list")
@json_option
def list_models(*, as_json: bool) -> None:
    """List the networks of the zoo.

    Networks are built from configurations; nothing is downloaded. Predictors never learn from a held-out family: their
    errors are stated on its networks. A sealed family is looked at once, at the end (`predictors evaluate --sealed`).
    NAME@VARIANT names a variant: int8-dynamic and int8-static for ONNX Runtime,
    bf16, training and bf16-training for torch.
    """
    from opmark.models.source import variants_of
    from opmark.models.zoo import held_out, models

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "family": family.label(name),
            "batch": family.default_batch,
            "size": family.sizes[name],
            "torch": family.onnx_path(name) is None,
            "variants": variants_of(name),
            "held_out": held_out(name),
            "sealed": family.sealed,
        }
        for name, family in models().items()
    ]
    if as_json:
        show_json(rows)
        return
    table = [
        (
            str(row["name"]),
            str(row["family"]),
            "torch, ONNX" if row["torch"] else "ONNX",
            " ".join(dict.fromkeys(variant.partition("-")[0] for variant in row["variants"])),
            "sealed" if row["sealed"] else "held out" if row["held_out"] else "",
            str(row["batch"]),
            str(row["size"]),
        )
        for row in rows
    ]
    show_table(("network", "family", "as", "variants", "learning", "batch", "size"), table, left=5)


@command.command(name="show", epilog="Example: opmark models show bert-base --target torch-eager-t1")
@click.argument("model", shell_complete=completers.models)
@click.option("--target", default=DEFAULT_TARGET, show_default=True, help="The target that runs the network.")
@size_options
@click.option(
    "--top", type=click.IntRange(min=0), default=15, show_default=True, help="The number of kernels to show; 0 for all."
)
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    *,
    model: str,
    target: str,
    dimensions: tuple[str, ...],
    batch: int | None,
    size: int | None,
    top: int,
    as_json: bool,
) -> None:
    """Show the kernels that a target runs for MODEL.

    MODEL is an .onnx file, a .pt2 file, or a name listed by `opmark models list`.
    """
    from opmark.models.coverage import coverage
    from opmark.models.resolve import graph_of

    sizes = chosen_sizes(dimensions, batch, size)
    with long_step(f"capturing the kernels of {model}"):
        graph = graph_of(model, target, cache=cache_folder(ctx), dimensions=sizes)
        found = coverage(graph)
    if as_json:
        show_json(_described(graph, found))
    else:
        _print(graph, found, top)


@command.command(name="store", epilog="Example: opmark models store resnet-50 --target onnxruntime-cpu-t1")
@click.argument("names", metavar="[MODEL]...", nargs=-1, shell_complete=completers.models)
@click.option("--all", "everything", is_flag=True, help="All graphs that are shipped with OpMark.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="A target; repeatable. Default: every runtime that can run the network.",
)
@click.option("--batch", type=click.IntRange(min=1), help="The batch size, if not the network's own.")
@click.option("--size", type=click.IntRange(min=1), help="The image side or sequence length, if not the network's own.")
@click.option(
    "--into",
    type=FOLDER,
    help="The folder to write. Default: bench/graphs in the workspace.",
)
@json_option
@click.pass_context
def store(
    ctx: click.Context,
    *,
    names: tuple[str, ...],
    everything: bool,
    targets: tuple[str, ...],
    batch: int | None,
    size: int | None,
    into: Path | None,
    as_json: bool,
) -> None:
    """Capture graphs of networks into files.

    Machines without the runtimes can read them. A stored graph from the same code and versions is kept: running the
    same command again continues. --all also renews every other graph in the folder, in its stored sizes.
    """
    from opmark.models.graphs.refresh import further_pairs, shipped_pairs, store_graphs, targets_of

    if everything == bool(names):
        raise UsageError("name networks or pass --all, but not both", hint="`opmark models list` lists the networks")
    sizes = chosen_sizes((), batch, size)
    if everything and sizes:
        raise UsageError("--all takes no sizes", hint="name networks to store them in another size")
    wanted = (
        shipped_pairs()
        if everything
        else tuple((name, target) for name in names for target in targets or targets_of(name))
    )
    folder = into or workspace(ctx).root / "bench" / "graphs"
    sized = [(name, target, sizes) for name, target in wanted] + list(further_pairs(folder) if everything else ())
    sized = [item for item in sized if not targets or item[1] in targets]
    with progress_bar() as bar:
        task = bar.add_task("storing", total=len(sized))
        found: list[StoreOutcome] = []
        for name, target, dimensions in sized:
            found += store_graphs([(name, target)], folder, cache=cache_folder(ctx), dimensions=dimensions)
            bar.update(task, advance=1, description=name)
    if as_json:
        show_json(found)
    else:
        _print_stored(found)
    failed = [item for item in found if item.status == "failed"]
    if failed:
        raise CheckFailedError(
            f"{len(failed)} of {len(found)} graphs could not be stored; the first: {failed[0].error}",
            where=f"{failed[0].model} on {failed[0].target}",
        )


def _print_stored(found: "Sequence[StoreOutcome]") -> None:
    rows = [
        (
            item.model,
            item.target,
            item.status,
            str(item.kernels or MISSING),
            f"{item.bytes_moved_share:.1%}" if item.kernels else MISSING,
            format_bytes(item.size_bytes),
        )
        for item in found
    ]
    show_table(("network", "target", "", "kernels", "bytes-moved", "file"), rows, left=3)
    click.echo(f"{format_bytes(sum(item.size_bytes for item in found))} in {counted(len(found), 'file')}")


def _described(graph: "Graph", found: "Coverage") -> dict[str, Any]:
    """The documented JSON; kernels are sorted by floating-point operations, then bytes."""
    counts, work = _counted(graph)
    return {
        "model": graph.name,
        "target": graph.target,
        "language": graph.language,
        "kernels": [
            {
                "kind": kernel.kind,
                "params": kernel.params,
                "count": count,
                "flops": work[kernel].flops,
                "bytes": work[kernel].moved_bytes,
            }
            for kernel, count in sorted(counts.items(), key=lambda item: _order(work[item[0]], item[1]))
        ],
        "coverage": found.flops_share,
        "bytes_moved_share": found.bytes_moved_share,
        "bytes_moved_operators": found.generic,
        "mapping": graph.mapping,
        "flops": graph.work.flops,
        "bytes": graph.work.moved_bytes,
        "weight_bytes": graph.weight_bytes,
        "graph_id": graph.id,
    }


def _print(graph: "Graph", found: "Coverage", top: int) -> None:
    counts, work = _counted(graph)
    total = graph.work
    kinds: Counter[str] = Counter()
    flops: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for kernel, count in counts.items():
        kinds[kernel.kind] += count
        flops[kernel.kind] += count * work[kernel].flops
        moved[kernel.kind] += count * work[kernel].moved_bytes
    click.echo(
        f"{graph.name} on {graph.target} ({graph.mapping}): "
        f"{counted(found.kernels, 'kernel')}, {len(counts)} distinct, "
        f"{format_count(total.flops)} FLOPs, {format_bytes(total.moved_bytes)} moved, "
        f"{format_bytes(graph.weight_bytes)} of weights"
    )
    by_kind = [
        (kind, str(kinds[kind]), _share(flops[kind], total.flops), _share(moved[kind], total.moved_bytes))
        for kind in sorted(kinds, key=lambda kind: (-flops[kind], -moved[kind], kind))
    ]
    show_table(("kind", "kernels", "FLOPs", "bytes"), by_kind)
    ranked = sorted(counts.items(), key=lambda item: _order(work[item[0]], item[1]))
    shown = ranked[:top] if top else ranked
    rows = [
        (
            kernel.kind,
            parameters_text(kernel.params),
            str(count),
            format_count(count * work[kernel].flops),
            format_bytes(count * work[kernel].moved_bytes),
        )
        for kernel, count in shown
    ]
    show_table(("most work", "parameters", "count", "FLOPs", "bytes"), rows, left=2)
    if len(shown) < len(ranked):
        click.echo(f"and {len(ranked) - len(shown):,} more; --top 0 shows all")
    if found.generic_kernels:
        hidden = f"including matrix work: {', '.join(found.hidden)}" if found.hidden else "none of it matrix work"
        lost = f"{1 - found.flops_share:.1%} of the matrix work, " if found.hidden else ""
        click.echo(
            f"bytes-moved: {counted(found.generic_kernels, 'kernel')} ({', '.join(found.generic)}), "
            f"{lost}{share_text(found.bytes_moved_share)} of the bytes, {hidden}"
        )


def _counted(graph: "Graph") -> "tuple[Counter[Kernel], dict[Kernel, Work]]":
    counts = Counter(node.kernel for node in graph.costly)
    return counts, {node.kernel: node.work for node in graph.costly}


def _order(work: Work, count: int) -> tuple[int, int]:
    return (-count * work.flops, -count * work.moved_bytes)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else MISSING


COMMAND = command
