"""`opmark leaderboards savings`: what one entry of a track of pools saves over another."""

from typing import TYPE_CHECKING

import click

from opmark.cli.commands.leaderboards._options import track_option
from opmark.cli.options import json_option, workspace
from opmark.cli.text.terminal import share_text, show_json, show_table
from opmark.core.units import counted

if TYPE_CHECKING:
    from opmark.leaderboards.provisioning.savings import SavingSummary


@click.command(epilog="Example: opmark leaderboards savings --track provisioning")
@track_option
@click.option("--entry", default="opmark", show_default=True, help="The entry that saves.")
@click.option("--over", default="equal-types", show_default=True, help="The entry that it is compared with.")
@click.option("--instances", is_flag=True, help="Also show every pool.")
@json_option
@click.pass_context
def savings(ctx: click.Context, *, track_name: str, entry: str, over: str, instances: bool, as_json: bool) -> None:
    """Show what one entry saves over another.

    By the stored answers, per goal and over all pools: the median of the saved share of the cost, with its 95 %
    interval, over the pools on which both entries meet the goal; and on how many pools the entry is better and worse.
    """
    from opmark.leaderboards.provisioning.savings import savings_of, summary_of
    from opmark.leaderboards.scoring.track import load_track

    track = load_track(workspace(ctx).leaderboards, track_name)
    rows = savings_of(track, entry, over)
    goals = {goal: [row for row in rows if row.goal == goal] for goal in dict.fromkeys(row.goal for row in rows)}
    gains = [row for row in rows if row.saving]
    groups = {**goals, "all": rows, "those that differ": gains}
    found = {name: summary_of(group) for name, group in groups.items()}
    alone = [row.problem for row in rows if row.cost is not None and row.other_cost is None]
    if as_json:
        show_json(
            {
                "entry": entry,
                "over": over,
                "summary": found,
                "only_entry_meets": alone,
                "pools": [
                    {
                        "problem": row.problem,
                        "goal": row.goal,
                        "cost": row.cost,
                        "over_cost": row.other_cost,
                        "saving": row.saving,
                    }
                    for row in rows
                ],
            }
        )
        return
    if instances:
        show_table(
            ("pool", "goal", "saving"), [(row.problem, row.goal, share_text(row.saving)) for row in rows], left=2
        )
    columns = ("pools", "", "better", "worse", "median saving", "95 % interval", "most")
    show_table(columns, [_cells(name, one) for name, one in found.items() if one is not None])
    if alone:
        click.echo(f"Only {entry} meets the goal of {counted(len(alone), 'further pool')}: {', '.join(alone)}.")


def _cells(name: str, one: "SavingSummary") -> tuple[str, ...]:
    interval = f"{one.low:.1%} to {one.high:.1%}"
    return name, str(one.pools), str(one.better), str(one.worse), f"{one.median:.1%}", interval, f"{one.most:.1%}"
