"""The page of a device type: the sources of its costs, its predictors, and the instances that use it."""

from collections.abc import Iterator

from opmark.leaderboards.site.page import Document, Site, device_path, instance_path, is_build, predictor_path
from opmark.pages.template import render


def device_page(site: Site) -> Iterator[Document]:
    """`devices/<type>.html`."""
    machines = site.devices()
    for name in site.device_types():
        own = [(board, instance, machine) for board, instance, machine in machines if name in site.names_of(machine)]
        found = [(card, machine) for _, _, machine in own if (card := site.predictor_of(machine))]
        earlier = {card.name for card, machine in found if not is_build(card, machine)}
        named = {card.name: card for card, _ in found}
        named |= {card.name: card for card in site.predictors if card.device == name}
        html = render(
            "leaderboards/site/pages/device.html.jinja",
            title=name,
            others=sorted({other for _, _, machine in own for other in site.names_of(machine)} - {name}),
            provenance=sorted({machine.provenance for _, _, machine in own}),
            predictors=[
                (card, "../" + predictor_path(card.name), card.name in earlier) for _, card in sorted(named.items())
            ],
            rows=[
                (board, instance, machine, "../" + instance_path(board, instance.name))
                for board, instance, machine in own
            ],
        )
        yield Document(path=device_path(name), html=html)


PAGE = device_page
