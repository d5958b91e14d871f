"""The page of an instance: its facts and bounds, and the costs of all entries."""

from collections.abc import Iterator
from functools import partial

from opmark.core.units import counted
from opmark.leaderboards.site.board import Board, BoardEntry, Instance, Outcome, format_cost, gap, rows_by_cost
from opmark.leaderboards.site.page import (
    Document,
    Site,
    anchor,
    board_path,
    device_path,
    entry_path,
    instance_path,
    predictor_path,
)
from opmark.pages.gantt import timeline_picture
from opmark.pages.template import render

# A bar ends at so many times the best cost: one very poor answer would make all good ones look alike.
LONGEST_BAR = 4


def instance_page(site: Site) -> Iterator[Document]:
    """`<track>/instances/<instance>.html`."""
    for board in site.boards:
        source = site.source_of(board)
        for instance in board.instances:
            yield Document(
                path=instance_path(board, instance.name),
                make=partial(_html, site, board, instance),
                source=[source, instance.name],
            )


def _html(site: Site, board: Board, instance: Instance) -> str:
    rows = rows_by_cost(board, instance.name)
    costs = [outcome.cost for _, outcome in rows if outcome.cost is not None]
    worst, longest = max(costs, default=1.0) or 1.0, LONGEST_BAR * min(costs, default=1.0)
    scale = min(worst, longest) or worst
    return render(
        "leaderboards/site/pages/instance.html.jinja",
        title=instance.name,
        up="../../",
        scripts=("sort", "zoom"),
        board=board,
        instance=instance,
        home="../" + board_path(board).rpartition("/")[2],
        facts=_facts(instance),
        machines=[
            (machine, "../../" + device_path(machine.type), f"../../{predictor_path(card.name)}" if card else "")
            for machine in instance.machines
            for card in (site.predictor_of(machine),)
        ],
        rows=[
            {
                "entry": entry,
                "link": f"../{entry_path(board, entry.name).split('/', 1)[1]}#{anchor(instance.name)}",
                "outcome": outcome,
                "cost": format_cost(outcome.cost, instance.unit),
                "gap": gap(outcome, instance),
                "width": None if outcome.cost is None else min(100.0, 100 * outcome.cost / scale),
                "beyond": outcome.cost is not None and outcome.cost > scale,
            }
            for entry, outcome in rows
        ],
        mark=None if not instance.bound else 100 * instance.bound / scale,
        cut=LONGEST_BAR if scale < worst else None,
        pictures=_best_picture(rows, instance),
    )


def _best_picture(rows: list[tuple[BoardEntry, Outcome]], instance: Instance) -> list[tuple[str, str, str]]:
    """The best schedule that can be drawn, if any; the pages of the entries show the others."""
    best = next(((entry, outcome) for entry, outcome in rows if outcome.timeline), None)
    if best is None:
        return []
    entry, outcome = best
    picture = timeline_picture(outcome.timeline, f"{entry.name} on {instance.name}")
    return [(entry.name, format_cost(outcome.cost, instance.unit), picture)]


def _facts(instance: Instance) -> list[tuple[str, str]]:
    known = [
        ("network", instance.network),
        ("cluster", f"{instance.cluster}, {counted(instance.devices, 'device')}"),
        ("units", str(instance.units)),
        ("lower bound", format_cost(instance.bound, instance.unit)),
        ("best known", format_cost(instance.best_known, instance.unit)),
        ("best single device", format_cost(instance.best_single, instance.unit)),
    ]
    known += [("costs", ", ".join(instance.provenance))] if instance.provenance else []
    return [*known, *instance.facts]


PAGE = instance_page
