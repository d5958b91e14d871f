"""`opmark doctor`: this machine, its runtimes, its noise, and advice."""

from typing import TYPE_CHECKING

import click

from opmark.cli.options import DURATION, json_option
from opmark.cli.text.terminal import show_json, show_table, show_text
from opmark.core.units import format_bytes

if TYPE_CHECKING:
    from opmark.studies.machine.doctor import Diagnosis


@click.command(epilog="Example: opmark doctor --watch 10s")
@click.option("--watch", type=DURATION, default="2s", show_default=True, help="How long to measure the noise.")
@json_option
def doctor(*, watch: float, as_json: bool) -> None:
    """Describe this machine: what works, and how noisy it is.

    The advice says what to install, what to permit, and when to wait.
    """
    from opmark.studies.machine.doctor import diagnose

    found = diagnose(seconds=watch)
    if as_json:
        show_json(found)
    else:
        _show(found)


def _show(found: "Diagnosis") -> None:
    checked = found.environment.checked
    click.echo(
        f"{found.device}: {checked['cpu']}, {checked['processors']} processors, hypervisor {checked['hypervisor']}"
    )
    caches = [format_bytes(int(checked[name] or 0)) for name in ("level1_bytes", "level2_bytes", "last_level_bytes")]
    click.echo(f"caches: level 1 {caches[0]}, level 2 {caches[1]}, last level {caches[2]}")
    cards = [f"{card.name} with {format_bytes(card.memory_bytes)}" for card in found.gpus]
    click.echo(f"GPU: {', '.join(cards) or 'none'}")
    permitted = "permitted" if found.environment.noted.get("fifo") else "not permitted"
    click.echo(f"real-time priority (SCHED_FIFO): {permitted}")
    rows = [
        (part.name, what, "yes" if part.works else "no", part.detail, part.hint)
        for what, parts in (("runtime", found.runtimes), ("extra", found.extras))
        for part in parts
    ]
    show_table(("part", "", "works", "details", "to get it"), rows, left=5)
    noise = found.noise
    pressure = "unknown" if noise.pressure is None else f"{noise.pressure:.0f} %"
    show_text(
        f"noise: {noise.verdict}. {100 * noise.clean_fraction:.0f} % of the samples were uninterrupted; their median "
        f"is {100 * noise.median_bias:.1f} % above the label; labels vary by {100 * noise.compute_spread:.1f} % "
        f"(compute) and {100 * noise.memory_spread:.1f} % (memory); processor pressure {pressure}."
    )
    if noise.floor is not None:
        show_text(
            f"noise floor: one look tells a kernel within {100 * noise.floor.kernels:.1f} % and a network within "
            f"{100 * noise.floor.networks:.1f} %, beside what processes differ; more looks tell it better."
        )
    for sentence in found.advice:
        show_text(sentence, bullet="- ")
    if not found.advice:
        click.echo("Nothing to improve.")


COMMAND = doctor
