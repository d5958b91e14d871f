"""Files become frozen dataclasses, or one error that names every wrong key."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.core.schema import convert, json_schema, load
from opmark.core.yaml_file import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    name: str
    area: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    rooms: tuple[Room, ...]
    floors: int = 1


def write(tmp_path: Path, text: str, name: str = "house.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_yaml_and_json_give_the_same(tmp_path: Path) -> None:
    wanted = House(rooms=(Room(name="hall", area=2.5),), floors=3)
    yaml = write(tmp_path, "schema: 1\nfloors: 3\nrooms:\n  - {name: hall, area: 2.5}\n")
    json = write(tmp_path, '{"schema": 1, "floors": 3, "rooms": [{"name": "hall", "area": 2.5}]}', "house.json")
    assert load(yaml, House, schema=1) == load(json, House, schema=1) == wanted


def test_every_wrong_key_is_named_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "schema: 1\nfloors: many\ncellar: yes\nrooms:\n  - {area: big}\n")
    with pytest.raises(ContentError) as caught:
        load(path, House, schema=1)
    message = str(caught.value)
    assert message.startswith(str(path))
    for part in ("floors: ", "cellar: unknown key", "rooms.0.name: missing", "rooms.0.area: ", "'big'"):
        assert part in message
    assert caught.value.hint == "remove the unknown key or check its spelling"
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "schema: missing"),
        ("schema: 2", "version 2 is newer than 1"),
        ("schema: 0", "version 0 is older than 1"),
        ("schema: one", "expected a whole number"),
        ("schema: true", "expected a whole number"),
    ],
)
def test_schema_numbers_fail_in_their_own_words(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, f"{line}\nrooms: []\n")
    with pytest.raises(ContentError) as caught:
        load(path, House, schema=1)
    assert message in str(caught.value)


def test_not_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="expected a mapping"):
        load(write(tmp_path, "- 1\n- 2\n"), House, schema=1)


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "schema: 1\nrooms: [1, 2\nfloors: 3\n")
    with pytest.raises(ContentError) as caught:
        read_yaml(path)
    assert (caught.value.where or "").startswith(f"{path}:")
    assert "not YAML" in str(caught.value)


def test_infinity_and_nan_are_refused() -> None:
    for text in (float("nan"), float("inf")):
        with pytest.raises(ContentError, match="area"):
            convert({"name": "hall", "area": text}, Room, where="here")


def test_json_schema_names_the_fields() -> None:
    schema = json_schema(House, schema=3)
    assert set(schema["properties"]) == {"schema", "rooms", "floors"}
    assert schema["properties"]["schema"] == {"const": 3}
    assert "schema" in schema["required"]
    assert schema["additionalProperties"] is False
