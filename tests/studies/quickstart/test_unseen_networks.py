import json

import pytest

from opmark.core.files import json_text
from opmark.studies.quickstart.unseen_networks import NetworkError


def network(predicted_ns: float) -> NetworkError:
    return NetworkError(
        name="n",
        target="null-t1",
        predicted_ns=predicted_ns,
        measured_ns=200.0,
        low_ns=150.0,
        high_ns=250.0,
        bytes_moved_share=0.0,
    )


@pytest.mark.parametrize(("predicted_ns", "error"), [(250.0, 0.25), (150.0, -0.25), (200.0, 0.0)])
def test_the_error_is_signed_and_relative_to_what_was_measured(predicted_ns: float, error: float) -> None:
    assert network(predicted_ns).error == pytest.approx(error)


def test_its_document_has_the_promised_keys() -> None:
    document = json.loads(json_text(network(250.0).document()))
    assert {"name", "target", "predicted_ns", "measured_ns", "error"} <= set(document)
    assert document["error"] == 0.25
