"""What a shell offers while a command is typed (`opmark.cli.completers`)."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from opmark.cli.main import cli


def offered(words: str) -> list[str]:
    """The items offered for the last word of `words`, types included."""
    environment = {
        "_OPMARK_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    return CliRunner().invoke(cli, [], prog_name="opmark", env=environment).stdout.split()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("bench/suites", "datasets/box/1.10.0", "datasets/box/1.9.0", "predictors/box/1.9.0/torch-eager-t1"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "leaderboards" / "branchy").mkdir(parents=True)
    (tmp_path / "leaderboards" / "branchy" / "track.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("opmark leaderboards place p.json --placer hef", ["plain,heft"]),
        ("opmark predictors train --estimator roof", ["plain,roofline"]),
        ("opmark predict bert-b", ["file,bert-b", "plain,bert-base"]),
        ("opmark bench run quicks", ["file,quicks", "plain,quickstart"]),
        ("opmark leaderboards score --track ", ["plain,branchy"]),
        ("opmark datasets show box/", ["file,box/", "plain,box/1.9.0", "plain,box/1.10.0"]),
        ("opmark predict x.onnx --target ", ["plain,torch-eager-t1"]),
    ],
)
def test_names_are_offered(work: Path, words: str, expected: list[str]) -> None:
    assert work.is_dir()
    assert offered(words) == expected


def test_outside_of_a_workspace_nothing_of_one_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("opmark leaderboards score --track ") == []
    assert offered("opmark datasets show b") == ["file,b"]
    assert "plain,quickstart" in offered("opmark bench run ")


def test_the_workspace_that_is_typed_counts(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert offered(f"opmark --workspace {work} leaderboards score --track b") == ["plain,branchy"]
