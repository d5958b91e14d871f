from pathlib import Path

import pytest
from click.testing import CliRunner

from opmark.cli.main import cli
from opmark.core.errors import MeasurementError
from opmark.studies.quickstart import run as quickstart


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["quickstart", *arguments])
    return result.exit_code, result.stderr


def test_less_than_a_minute_is_a_usage_error(tmp_path: Path) -> None:
    code, said = run("--workspace", str(tmp_path), "--minutes", "0.2")
    assert code == 2
    assert "minutes" in said
    assert not list(tmp_path.iterdir())


def test_stopping_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(quickstart, "quickstart", stopped)
    code, said = run("--workspace", str(tmp_path))
    assert code == 130
    assert "same command" in said


def test_an_error_is_one_sentence_and_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise MeasurementError("no held-out network was measured", hint="give it more time")

    monkeypatch.setattr(quickstart, "quickstart", failing)
    code, said = run("--workspace", str(tmp_path))
    assert code == 1
    assert "Error: no held-out network was measured" in said
    assert "Hint: give it more time" in said


def test_it_measures_with_the_shipped_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Path] = []

    def remember(folder: Path, suite: Path, **_: object) -> None:
        given.extend((folder, suite))
        raise KeyboardInterrupt

    monkeypatch.setattr(quickstart, "quickstart", remember)
    run("--workspace", str(tmp_path))
    assert given[0] == tmp_path
    assert given[1].name == "quickstart.yaml"
    assert given[1].is_file()
