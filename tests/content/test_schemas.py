"""The JSON Schemas in the reference accept what OpMark itself ships and writes."""

import json
from pathlib import Path

import jsonschema
import pytest

from opmark.core.schema import read_yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "suite": sorted((ROOT / "bench" / "suites").glob("*.yaml")),
    "track": sorted((ROOT / "leaderboards").glob("*/track.yaml")),
    "problem": sorted((ROOT / "leaderboards").glob("*/problems/*.json")),
    "solution": sorted((ROOT / "leaderboards").glob("*/solutions/*/*.json")),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_shipped_follows_its_schema(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / f"{name}.schema.json").read_text())
    assert FILES[name]
    for path in FILES[name]:
        jsonschema.validate(read_yaml(path), schema)


def test_an_unknown_key_does_not() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "suite.schema.json").read_text())
    content = read_yaml(FILES["suite"][0]) | {"budgett": "3m"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)
