"""YAML of people: the values of JSON, or one sentence with the line."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.core.yaml_file import read_yaml

BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(-1e9, 1e9)
    | st.text("ab:#-'\" é", max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner),
)


def read(folder: Path, text: str) -> Any:
    path = folder / "a.yaml"
    path.write_text(text)
    return read_yaml(path)


@given(VALUES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_plain_values_are_read_as_they_were_written(tmp_path: Path, value: Any) -> None:
    assert read(tmp_path, yaml.safe_dump(value)) == value


def test_aliases_and_days(tmp_path: Path) -> None:
    assert read(tmp_path, "a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}
    assert read(tmp_path, "day: 2026-11-21\n") == {"day": "2026-11-21"}
    assert read(tmp_path, "1: a\n") == {1: "a"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", r"a\.yaml:3: not YAML: the key 'a' appears twice"),
        (BOMB, r"a\.yaml:\d+: not YAML: nested more than 100 levels deep, or larger than"),
        ("a: &a [*a]\n", "an alias refers to what it is part of"),
        ("[" * 101, r"a\.yaml:1: not YAML: nested more than 100 levels"),
        ("a: .inf\n", "the number .inf is not finite"),
        ("a: .nan\n", "the number .nan is not finite"),
        ("a: 1.0e+999\n", r"the number 1\.0e\+999 is not finite"),
        (f"a: {2**64}\n", "takes more than 64 bits"),
        (f"a: {'9' * 5000}\n", "takes more than 64 bits"),
        (f"a: 0x{'f' * 5000}\n", "takes more than 64 bits"),
        ('a: "\\ud800"\n', "half of a surrogate pair"),
        ('a: "\\U00110000"\n', "not YAML"),
        ("a: !!python/object/apply:os.system [true]\n", "are not read here"),
        ("a: !!binary aGk=\n", "'binary' are not read here"),
        ("a: !!set {b}\n", "'set' are not read here"),
        ("a: !!int b\n", "not YAML"),
        ("a: !!map [b]\n", "expected a mapping"),
        ("<<: {a: 1}\n", "merged mappings are not read here"),
        ("? [a]\n: b\n", "a key is not a text"),
        ("a: \x07\n", "special characters are not allowed"),
        ("a: b: c\n", r"a\.yaml:1: not YAML"),
        ("--- a\n--- b\n", r"a\.yaml:2: not YAML"),
    ],
)
def test_what_json_does_not_have_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ContentError, match=sentence):
        read(tmp_path, text)


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="larger than 4 MiB"):
        read(tmp_path, "a" * (2**22 + 1))
