"""An instance's page: what the problem is, its bounds, and every entry's cost and schedule."""

from collections.abc import Iterator

from opmark.leaderboards.site.board import Board, Instance, format_cost, gap, rows_by_cost
from opmark.leaderboards.site.page import (
    Document,
    anchor,
    board_path,
    device_path,
    entry_path,
    instance_path,
    predictor_path,
)
from opmark.leaderboards.site.showcase import Showcase
from opmark.pages.template import render
from opmark.pages.timeline import timeline_picture


def instance_page(shown: Showcase) -> Iterator[Document]:
    """`<track>/instances/<instance>.html`."""
    for board in shown.boards:
        for instance in board.instances:
            yield Document(path=instance_path(board, instance.name), html=_html(shown, board, instance))


def _html(shown: Showcase, board: Board, instance: Instance) -> str:
    rows = rows_by_cost(board, instance.name)
    worst = max([outcome.cost for _, outcome in rows if outcome.cost is not None], default=1.0) or 1.0
    return render(
        "leaderboards/site/pages/instance.html.jinja",
        title=instance.name,
        board=board,
        instance=instance,
        home="../" + board_path(board).rpartition("/")[2],
        facts=_facts(instance),
        machines=[
            (machine, "../../" + device_path(machine.type), f"../../{predictor_path(card.name)}" if card else "")
            for machine in instance.machines
            for card in (shown.predictor_of(machine),)
        ],
        rows=[
            {
                "entry": entry,
                "link": f"../{entry_path(board, entry.name).split('/', 1)[1]}#{anchor(instance.name)}",
                "outcome": outcome,
                "cost": format_cost(outcome.cost, instance.unit),
                "gap": gap(outcome, instance),
                "width": None if outcome.cost is None else 100 * outcome.cost / worst,
            }
            for entry, outcome in rows
        ],
        mark=None if not instance.bound else 100 * instance.bound / worst,
        # The schedules of all entries stand on their own pages: here only the best of those that can be drawn.
        pictures=[
            (
                entry.name,
                format_cost(outcome.cost, instance.unit),
                timeline_picture(outcome.timeline, f"{entry.name} on {instance.name}"),
            )
            for entry, outcome in rows
            if outcome.timeline
        ][:1],
    )


def _facts(instance: Instance) -> list[tuple[str, str]]:
    known = [
        ("network", instance.network),
        ("cluster", f"{instance.cluster}, {instance.devices} devices"),
        ("units", str(instance.units)),
        ("lower bound", format_cost(instance.bound, instance.unit)),
        ("best known", format_cost(instance.best_known, instance.unit)),
        ("best single device", format_cost(instance.best_single, instance.unit)),
    ]
    known += [("costs", ", ".join(instance.provenance))] if instance.provenance else []
    return [*known, *instance.facts]


PAGE = instance_page
