"""The worked example of the guide "Which hardware should I rent?" is what its stored placements cost today."""

import importlib.util
from pathlib import Path

import pytest

from opmark.core.reading import read_json

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def drawing():
    spec = importlib.util.spec_from_file_location("draw_renting", DOCS / "draw_renting.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stored_answers_cost_what_the_guide_says(drawing):
    example, job = read_json(drawing.STORED), drawing.example_job()
    for rows in example["fronts"].values():
        for row in rows:
            again = drawing.simulated(job, row)
            assert dict(again.fleet.items()) == row["devices"]
            assert again.samples_per_second == pytest.approx(row["samples_per_second"])
            assert again.price_per_hour == pytest.approx(row["price_per_hour"])
    assert drawing.table(example) in drawing.GUIDE.read_text(encoding="utf-8")
    assert drawing.FIGURE.read_text(encoding="utf-8") == drawing.picture(example)


def test_fleets_of_any_types_are_never_dearer_than_equal_ones(drawing):
    fronts = read_json(drawing.STORED)["fronts"]
    for row in fronts["equal"]:
        enough = [one for one in fronts["all"] if one["samples_per_second"] >= row["samples_per_second"]]
        assert min(one["price_per_hour"] for one in enough) <= row["price_per_hour"]
