"""The JSON Schemas in the reference accept what OpMark itself ships and writes."""

import json
from pathlib import Path

import jsonschema
import pytest

from opmark.core.canonical import plain
from opmark.core.reading import read_json
from opmark.core.yaml_file import read_yaml
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.track import load_track, track_names

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "suite": sorted((ROOT / "bench" / "suites").glob("*.yaml")),
    "track": sorted((ROOT / "leaderboards").glob("*/track.yaml")),
    "problem": sorted((ROOT / "leaderboards").glob("*/problems/*.json.gz")),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_shipped_follows_its_schema(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / f"{name}.schema.json").read_text())
    assert FILES[name]
    for path in FILES[name]:
        jsonschema.validate(read_yaml(path) if path.suffix == ".yaml" else read_json(path), schema)


def test_stored_answers_follow_the_schema_of_a_solution() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "solution.schema.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)  # made once: checking the schema takes longest
    for name in track_names(ROOT / "leaderboards"):
        for entry, answers in load_track(ROOT / "leaderboards", name).solutions().items():
            for problem, answer in answers.items():
                assert isinstance(answer, Solution), f"{name}: {entry}: {problem}: {answer}"
                assert not list(validator.iter_errors({"schema": 1, **plain(answer)})), f"{name}: {entry}: {problem}"


def test_an_unknown_key_does_not() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "suite.schema.json").read_text())
    content = read_yaml(FILES["suite"][0]) | {"budgett": "3m"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)
