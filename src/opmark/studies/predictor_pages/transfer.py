"""The page of `opmark predictors transfer`: error over samples, a line per method."""

from collections.abc import Sequence

from opmark.pages.curve import Line, curve
from opmark.pages.template import render
from opmark.predictors.model.device_time import assumption
from opmark.predictors.transfer.curve import CHOSEN, TransferPoint
from opmark.studies.predictor_pages.learning import ACROSS, with_minutes


def transfer_page(receiver: str, points: Sequence[TransferPoint]) -> str:
    """One HTML page that needs nothing else."""
    pace = points[0].kernels_per_second
    methods = list(dict.fromkeys(point.method for point in points))
    lines = [
        Line(label=CHOSEN, points=tuple((float(one.samples), one.median) for one in points if one.chosen)),
        *(
            Line(label=name, points=tuple((float(one.samples), one.median) for one in points if one.method == name))
            for name in methods
        ),
    ]
    return render(
        "studies/templates/transfer.html.jinja",
        title="A new device from few samples",
        receiver=receiver,
        points=points,
        assumption=assumption(pace),
        picture=curve(
            lines,
            across=ACROSS,
            down="median error, unseen shape groups",
            title=f"{receiver}: error over samples",
            text=lambda rows: with_minutes(rows, pace),
        ),
    )
