"""The page of a predictor: its accuracy by kind, and the card of its training data."""

from collections.abc import Iterator

from opmark.leaderboards.site.page import Document, Site, device_path, predictor_path
from opmark.pages.markdown import markdown
from opmark.pages.template import render


def predictor_page(site: Site) -> Iterator[Document]:
    """`predictors/<device>_<version>_<target>.html`."""
    for card in site.predictors:
        scale = max([kind.median for kind in card.kinds if kind.median == kind.median], default=0.0) or 1.0
        html = render(
            "leaderboards/site/pages/predictor.html.jinja",
            title=f"Predictor of {card.device}, {card.target}",
            card=card,
            data_card=markdown(card.data_card),
            device="../" + device_path(card.device),
            rows=[(kind, None if kind.median != kind.median else 100 * kind.median / scale) for kind in card.kinds],
        )
        yield Document(path=predictor_path(card.name), html=html)


PAGE = predictor_page
