"""`opmark bench noise` and `backends`: this machine's noise, and its runtimes."""

from typing import TYPE_CHECKING

import click

from opmark.cli.options import FiniteRange, datasets_folder, json_option
from opmark.cli.text.terminal import show_json, show_table, show_text
from opmark.core.units import format_ns

if TYPE_CHECKING:
    from opmark.bench.run.noise import Noise
    from opmark.studies.machine.clock import ClockNow


@click.command(epilog="Example: opmark bench noise --seconds 20 --target onnxruntime-cpu-t1")
@click.option(
    "--seconds",
    type=FiniteRange(min=0.5, max=600),
    default=4.0,
    show_default=True,
    help="How long to measure the noise.",
)
@click.option("--target", default="", help="Also measure a kernel of this target, for half as long.")
@json_option
@click.pass_context
def noise(ctx: click.Context, seconds: float, target: str, as_json: bool) -> None:
    """Measure this machine's current noise.

    The advice says how long to wait, or how many samples a label needs. Where a release of this device exists, the
    clock is compared with it: in a slow hour kernels may be measured, but whole networks should not.
    """
    from opmark.bench.run.noise import measure
    from opmark.core.canonical import plain
    from opmark.studies.machine.clock import clock_now

    found = measure(seconds, target=target)
    folder = datasets_folder(ctx)
    clock = None if folder is None else clock_now(found, folder)
    if as_json:
        show_json({**plain(found), "clock": clock})
    else:
        _show_noise(found, clock)


def _show_noise(found: "Noise", clock: "ClockNow | None") -> None:
    rows = [
        ("uninterrupted samples", f"{found.clean_fraction:.0%}"),
        ("spread of the compute sentinel", f"{found.compute_spread:.1%}"),
        ("spread of the memory sentinel", f"{found.memory_spread:.1%}"),
        ("drift of the compute sentinel", f"{found.drift:+.1%}"),
        ("preemptions", _known(found.preemptions_per_s, "{:.0f} a second")),
        ("processor time stolen", _known(found.stolen, "{:.1%}")),
        ("waiting for a processor", _known(found.pressure, "{:.0f} % of the last 10 s")),
        ("quiet rounds", _known(found.quiet_share, "{:.0%}")),
    ]
    if clock is not None:
        rows.append((f"time relative to {clock.release}", f"{clock.ratio - 1:+.1%}"))
    if found.floor is not None:
        rows += [
            ("noise floor of kernels, one look", f"{found.floor.kernels:.1%}"),
            ("noise floor of networks, one look", f"{found.floor.networks:.1%}"),
        ]
    rows.append(("bias of a plain median", f"{found.median_bias:+.1%}"))
    if (reference := found.reference) is not None:
        rows += [
            (f"label of the {reference.name}", f"{format_ns(reference.label_ns)} ± {reference.half_width:.1%}"),
            ("its median and mean above the label", f"{reference.median_bias:+.1%}, {reference.mean_bias:+.1%}"),
        ]
    rows.append(("real-time priority", "permitted" if found.fifo else "not permitted"))
    show_table(("this machine", "now"), rows)
    show_text(f"{found.verdict[0].upper()}{found.verdict[1:]}: {found.advice}.")
    if clock is not None and clock.advice:
        show_text(clock.advice)


def _known(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)


@click.command(epilog="Example: opmark bench backends")
@json_option
def backends(as_json: bool) -> None:
    """List the runtimes, and the targets that each offers here."""
    from opmark.bench.clock.machine import device_slug
    from opmark.bench.worker.backend import BACKENDS

    reasons = {backend.name: backend.unavailable() for backend in BACKENDS}
    targets = {
        backend.name: tuple(target.name for target in backend.targets(device_slug()))
        for backend in BACKENDS
        if reasons[backend.name] is None
    }
    if as_json:
        show_json(
            [
                {"name": name, "available": reason is None, "reason": reason, "targets": targets.get(name, ())}
                for name, reason in reasons.items()
            ]
        )
        return
    rows = [(name, reason or ", ".join(targets[name])) for name, reason in reasons.items()]
    show_table(("backend", "targets"), rows, left=2)
