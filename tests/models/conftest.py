import pytest

from opmark.models import resolve


@pytest.fixture(autouse=True)
def _graphs_are_captured(monkeypatch):
    """Here graphs are captured, also where one that travels with OpMark would do."""
    monkeypatch.setattr(resolve, "graphs_folder", lambda: None)
