"""`opmark leaderboards replay-plan`: measured training plans, replayed by the simulator."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.options import FILE, FOLDER, json_option
from opmark.cli.text.terminal import MISSING, long_step, seconds_text, show_json, show_note, show_table
from opmark.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.leaderboards.plans.replay import Replay


@click.command(name="replay-plan", epilog="Example: opmark leaderboards replay-plan plan.json --json")
@click.argument("plan_files", metavar="PLAN...", type=FILE, nargs=-1, required=True)
@click.option("--profiles", type=FOLDER, help="A folder of <model>/<GPU>.json. Default: the imported layers of Sailor.")
@click.option("--networks", type=FOLDER, help="A folder of bandwidth files. Default: those imported with the layers.")
@json_option
def replay_plan(*, plan_files: tuple[Path, ...], profiles: Path | None, networks: Path | None, as_json: bool) -> None:
    """Predict the iteration time of training plans.

    The parts of the time stand beside it. A PLAN is a JSON file in Sailor's format: layers per stage, GPUs of every
    replica, micro-batch and global batch.
    """
    from opmark.core.shipped import shipped_content
    from opmark.leaderboards.plans.replay import load_replayer
    from opmark.leaderboards.plans.training_plan import load_plan
    from opmark.leaderboards.search.compilation import is_compiled

    published = shipped_content().leaderboards / "layers" / "sailor"
    plans = [load_plan(path) for path in plan_files]
    replayer = load_replayer(profiles or published / "profiles", networks or published / "networks", published)
    first = "" if is_compiled() else "compiling the simulator, once per version, and "
    found: list[Replay] = []
    with long_step(f"{first}replaying {plan_files[0].name}") as tell:
        for number, plan in enumerate(plans):
            if number:
                tell(f"replaying {plan_files[number].name}, {number + 1} of {len(plans)}")
            found.append(replayer.replay(plan))
    for note in dict.fromkeys([*(note for plan in plans for note in plan.notes), *replayer.profiles.notes]):
        show_note(note)
    if as_json:
        show_json(found[0] if len(found) == 1 else found)
    else:
        _show(found)


def _show(found: "Sequence[Replay]") -> None:
    columns = ("plan", "model", "predicted", "measured", "error", "peak memory", "measured", "error")
    show_table(
        columns,
        [
            [
                Path(one.plan).stem,
                one.model,
                seconds_text(one.predicted_s),
                MISSING if one.measured_s is None else seconds_text(one.measured_s),
                MISSING if one.error is None else f"{one.error:+.1%}",
                format_bytes(one.peak_bytes),
                MISSING if one.measured_bytes is None else format_bytes(one.measured_bytes),
                MISSING if one.memory_error is None else f"{one.memory_error:+.1%}",
            ]
            for one in found
        ],
        left=2,
    )
    parts = ("compute", "bubbles", "transfers", "reduction", "update", "other")
    click.echo()
    show_table(
        ("plan", *parts),
        [
            [Path(one.plan).stem, *(f"{getattr(one.parts, f'{part}_s') / one.predicted_s:.1%}" for part in parts)]
            for one in found
        ],
        title="Where the predicted time goes",
    )
