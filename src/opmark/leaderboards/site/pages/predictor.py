"""The page of a predictor: its accuracy by kind, and the card of its training data."""

from collections.abc import Iterator
from functools import partial

from opmark.leaderboards.site.page import Document, Site, device_path, predictor_path
from opmark.leaderboards.site.predictor_card import PredictorCard
from opmark.pages.markdown import markdown
from opmark.pages.template import render


def predictor_page(site: Site) -> Iterator[Document]:
    """`predictors/<device>_<version>_<target>.html`."""
    for card in site.predictors:
        yield Document(path=predictor_path(card.name), make=partial(_html, card), source=repr(card))


def _html(card: PredictorCard) -> str:
    scale = max([kind.median for kind in card.kinds if kind.median == kind.median], default=0.0) or 1.0
    return render(
        "leaderboards/site/pages/predictor.html.jinja",
        title=f"Predictor {card.name}",
        up="../",
        scripts=("sort",),
        card=card,
        data_card=markdown(card.data_card),
        device="../" + device_path(card.device),
        rows=[(kind, None if kind.median != kind.median else 100 * kind.median / scale) for kind in card.kinds],
    )


PAGE = predictor_page
