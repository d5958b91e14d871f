"""The page of a device type: the sources of its costs, its predictors, and the instances that use it."""

from collections.abc import Iterator
from functools import partial

from opmark.leaderboards.site.board import Board, BoardDevice, Instance
from opmark.leaderboards.site.page import Document, Site, device_path, instance_path, is_build, predictor_path
from opmark.pages.template import render


def device_page(site: Site) -> Iterator[Document]:
    """`devices/<type>.html`."""
    source = site.source_of(*site.boards)
    named = site.devices_by_name()
    for name in site.device_types():
        yield Document(path=device_path(name), make=partial(_html, site, name, named.get(name, [])), source=source)


def _html(site: Site, name: str, own: list[tuple[Board, Instance, BoardDevice]]) -> str:
    found = [(card, machine) for _, _, machine in own if (card := site.predictor_of(machine))]
    earlier = {card.name for card, machine in found if not is_build(card, machine)}
    named = {card.name: card for card, _ in found}
    named |= {card.name: card for card in site.newest_predictors(name)}
    return render(
        "leaderboards/site/pages/device.html.jinja",
        title=name,
        up="../",
        scripts=("sort",),
        others=sorted({other for _, _, machine in own for other in site.names_of(machine)} - {name}),
        fidelity=[one for one in site.fidelity if one.device in {name, *(card.device for card, _ in found)}],
        provenance=sorted({machine.provenance for _, _, machine in own}),
        predictors=[
            (card, "../" + predictor_path(card.name), card.name in earlier) for _, card in sorted(named.items())
        ],
        superseded=[
            (card, "../" + predictor_path(card.name))
            for card in site.predictors
            if card.device == name and card.name not in named
        ],
        rows=[
            (board, instance, machine, "../" + instance_path(board, instance.name)) for board, instance, machine in own
        ],
    )


PAGE = device_page
