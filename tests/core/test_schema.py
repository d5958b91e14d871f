"""Files become frozen dataclasses, or one error that names every wrong key."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.core.files import write_sealed, write_text
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


SEALED = '{\n  "schema": 1,\n  "rooms": [{"name": "hall", "area": 2}],\n  "floors": 3\n}\n'


def test_a_sealed_file_is_converted_as_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = load(write(tmp_path, SEALED, "plain.json"), House, schema=1)
    assert isinstance(wanted.rooms[0].area, float)
    path = tmp_path / "house.json"
    write_sealed(path, SEALED)
    monkeypatch.setattr("opmark.core.schema.convert", lambda *_, **__: pytest.fail("that takes twice as long"))
    found = load(path, House, schema=1, sealed=True)
    assert found == wanted
    assert isinstance(found.rooms[0].area, float)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('"floors": 3', '"floors": 3.0', "floors: "),
        ('"floors": 3', '"floors": "3"', "floors: "),
        ('"floors": 3', '"floors": 99999999999999999999', "floors|64 bits"),
        ('"floors": 3', '"cellar": 1', "cellar: unknown key"),
        ('"area": 2', '"area": 1e999', "area|too large"),
        ('"name": "hall"', '"name": 4', "name: "),
        ('"schema": 1', '"schema": 2', "version 2 is newer than 1"),
        ('"schema": 1', '"schema": true', "expected a whole number"),
        ('  "schema": 1,\n', "", "schema: missing"),
    ],
)
def test_a_sealed_file_that_is_wrong_is_explained_like_any_other(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    assert right in SEALED
    path = tmp_path / "house.json"
    for write_it in (write_sealed, write_text):
        write_it(path, SEALED.replace(right, wrong))
        with pytest.raises(ContentError, match=message):
            load(path, House, schema=1, sealed=True)


def test_a_sealed_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "house.json"
    write_sealed(path, SEALED)
    path.write_text(path.read_text().replace('"floors": 3', '"floors": 4'))
    with pytest.raises(ContentError, match="it does not fit its checksum"):
        load(path, House, schema=1, sealed=True)
