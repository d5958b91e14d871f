"""Bad input through the real commands: one sentence on standard error, an exit code, and never a traceback."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.readers.subjects import BY_NAME, SUBMISSION, SUITE, TRACK
from tests.sealing import unsealed

from opmark.cli.main import cli
from opmark.core.workspace import ROOMS

Change = Callable[[str], str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opmark(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def with_a_track(folder: Path) -> None:
    place = folder / "leaderboards" / "latency"
    (place / "problems").mkdir(parents=True)
    (place / "track.yaml").write_text(TRACK)
    BY_NAME["problem"].make(folder).replace(place / "problems" / "canonical.json")


def refused(result: Result, code: int, *sentences: str) -> None:
    """One error: no traceback, no second error, and nothing on standard output."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1, result.stderr
    assert "Traceback" not in result.stderr
    for sentence in sentences:
        assert sentence in result.stderr


def replace(old: str, new: str, count: int = 1) -> Change:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, count)

    return change


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


PROBLEMS: dict[str, tuple[Change, str]] = {
    "nested": (replace('"name": "', f'"deep": {nested(100_000)}, "name": "'), "nested more than 100 levels deep"),
    "huge": (replace('"memory_bytes": ', f'"memory_bytes": {"9" * 5000}'), "takes more than 64 bits"),
    "beyond 64 bits": (replace('"memory_bytes": ', f'"memory_bytes": {10**25}'), "takes more than 64 bits"),
    "infinite": (replace('"memory_bytes": ', '"price_per_hour": 1e999, "memory_bytes": '), "1e999 is too large"),
    "price": (replace('"memory_bytes": ', '"price_per_hour": 1e30, "memory_bytes": '), "price_per_hour: must be"),
    "key twice": (replace('"memory_bytes": ', '"memory_bytes": 1, "memory_bytes": '), "'memory_bytes' appears twice"),
    "true": (
        replace('"memory_bytes": ', '"slots": true, "memory_bytes": '),
        "slots: input should be a valid integer, not True",
    ),
    "text": (replace('"memory_bytes": ', '"slots": "100", "memory_bytes": '), "slots: input should be a valid integer"),
    "surrogate": (replace('"name": "', '"name": "\\ud800'), "half of a surrogate pair"),
    "NaN": (replace('"memory_bytes": ', '"price_per_hour": NaN, "memory_bytes": '), "NaN is not a number"),
    "reference": (
        replace('"reference": null', '"reference": {"bound_ns": -1, "best_known_ns": 5}'),
        "reference.bound_ns: must not be negative",
    ),
    "route": (
        lambda text: json.dumps(_looping(json.loads(text))),
        "a route passes no device twice",
    ),
}


def _looping(content: dict) -> dict:
    link = content["cluster"]["links"][0]
    ends = [link["source"], link["destination"]]
    content["cluster"]["routes"] = [[*ends, *ends]]
    return content


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems(folder: Path, name: str) -> None:
    change, sentence = PROBLEMS[name]
    path = BY_NAME["problem"].make(folder)
    path.write_text(change(unsealed(path.read_text())))
    refused(opmark("leaderboards", "bound", str(path)), 3, "p.json", sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text + "seed: -1\n", "seed: must not be negative"),
        (replace("kernels: 12", "kernels: 1000000000000"), "kernels: must be at most 1,000,000, not 1000000000000"),
        (replace("kernels: 12", f"kernels: {10**400}"), "takes more than 64 bits"),
        (replace("kernels: 12", 'kernels: "12"'), "kernels: input should be a valid integer"),
        (replace("kernels: 12", "kernels: true"), "kernels: input should be a valid integer"),
        (replace("kernels: 12", "kernels: 12\nkernels: 13"), "the key 'kernels' appears twice"),
        (replace("budget: 10m", "budget: -600"), "budget: must be positive"),
        (replace("null-t1", "null-t0"), "null-t0"),
        (replace("high: 64", f"high: {10**15}"), "at most 2^40"),
        (lambda text: text + f"deep: {nested(5000)}\n", "nested more than 100 levels deep"),
        (lambda text: text + "a: &a [*a]\n", "an alias refers to what it is part of"),
    ],
)
def test_suites(folder: Path, change: Change, sentence: str) -> None:
    (folder / "s.yaml").write_text(change(SUITE))
    refused(opmark("bench", "plan", "s.yaml"), 3, "s.yaml", sentence)


@pytest.mark.parametrize(
    ("line", "change", "sentence"),
    [
        (1, replace('"noted":{', '"statistics":{},"noted":{'), "unknown"),
        (3, replace('"round":0', '"round":"0"'), "round: input should be a valid integer"),
        (3, replace('"accepted":true', '"accepted":1'), "accepted: input should be a valid boolean"),
        (2, replace('"process":0', '"process":true'), "process: input should be a valid integer"),
        (5, replace('"ns":[', '"ns":["100",'), "input should be a valid number"),
        (5, replace('"ns":[', '"ns":[1e999,'), "1e999 is too large"),
        (5, replace('"calls":', '"calls":-'), "calls: must not be negative"),
        (4, replace('"kind":"conv"', '"kind":["conv"]'), "kind must be a text"),
        (4, replace('"parameters":{', '"parameters":{"odd":{},'), "parameters.odd"),
    ],
)
def test_journals(folder: Path, line: int, change: Change, sentence: str) -> None:
    path = BY_NAME["old journal"].make(folder)
    lines = [json.dumps(json.loads(item), separators=(",", ":")) for item in path.read_text().splitlines()]
    lines[line] = change(lines[line])
    path.write_text("\n".join(lines) + "\n")
    refused(opmark("datasets", "build", str(path)), 3, f"j.jsonl:{line + 1}", sentence)


def test_a_damaged_record_is_named(folder: Path) -> None:
    path = BY_NAME["journal"].make(folder)
    path.write_text(path.read_text().replace('"round":0', '"round":1', 1))
    refused(opmark("datasets", "build", str(path)), 3, "it does not fit its checksum")


def test_bombs_pipes_and_devices(folder: Path) -> None:
    (folder / "bomb.json.gz").write_bytes(gzip.compress(b"[" + b"0," * (2**26)))
    refused(opmark("leaderboards", "bound", "bomb.json.gz"), 3, "bomb.json.gz: larger than")
    with_a_track(folder)
    os.mkfifo(folder / "pipe.json")
    refused(opmark("leaderboards", "bound", "pipe.json"), 3, "it is a pipe, not a plain file")
    refused(opmark("leaderboards", "bound", "/dev/zero"), 3, "it is a device, not a plain file")
    (folder / "mine").mkdir()
    os.mkfifo(folder / "mine" / "submission.yaml")
    refused(opmark("leaderboards", "check", "mine"), 1, "it is a pipe, not a plain file")


@pytest.mark.parametrize(
    "words",
    [
        (
            "leaderboards",
            "import",
            "graph.json",
            "--format",
            "dnn-partitioning",
            "-o",
            "o.json",
            "--devices",
            "1000000000",
        ),
        ("leaderboards", "place", "p.json", "--budget", "-5"),
        ("leaderboards", "place", "p.json", "--budget", "1" + "0" * 400),
        ("predictors", "predict", "plain-tiny", "--batch", "1" + "0" * 30),
        ("predictors", "predict", "plain-tiny", "--dimension", "batch=1" + "0" * 5000),
        ("models", "show", "plain-tiny", "--target", "torch-eager-t0"),
        ("models", "show", "plain-tiny", "--target", "torch-eager-t" + "9" * 5000),
    ],
)
def test_options_out_of_range(folder: Path, words: tuple[str, ...]) -> None:
    BY_NAME["problem"].make(folder)
    BY_NAME["dnn-partitioning"].make(folder)
    refused(opmark(*words), 2)
    assert not (folder / "o.json").exists()


def test_what_was_written_by_hand_is_used_and_says_so_once(folder: Path) -> None:
    path = BY_NAME["problem"].make(folder)
    quiet = opmark("leaderboards", "bound", "p.json", "--json")
    assert quiet.exit_code == 0, quiet.stderr
    assert "without_checksum" not in json.loads(quiet.stdout)
    path.write_text(unsealed(path.read_text()))
    plain = opmark("leaderboards", "bound", "p.json")
    assert plain.exit_code == 0
    assert plain.stderr == "note: p.json has no checksum: damage would not show\n"
    told = json.loads(opmark("leaderboards", "bound", "p.json", "--json").stdout)
    assert told.pop("without_checksum") == ["p.json"]
    assert told == json.loads(quiet.stdout)


def test_submissions(folder: Path) -> None:
    with_a_track(folder)
    (folder / "mine").mkdir()
    for text, sentence in (
        (SUBMISSION + "title: Twice\n", "the key 'title' appears twice"),
        (SUBMISSION.replace("My placer", '"\\ud800"'), "half of a surrogate pair"),
        (SUBMISSION + f"deep: {nested(5000)}\n", "nested more than"),
    ):
        (folder / "mine" / "submission.yaml").write_text(text)
        refused(opmark("leaderboards", "check", "mine"), 1, "submission.yaml", sentence)


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ("datasets", "show", LONG),
        ("predictors", "show", LONG),
        ("predictors", "train", LONG),
        ("new", "submission", LONG),
        ("provision", "resnet-18", "--catalogue", LONG, "--budget", "1"),
        ("leaderboards", "bound", LONG),
        ("datasets", "show", "circle"),
    ],
)
def test_a_name_that_no_file_can_have_is_one_sentence(folder: Path, words: tuple[str, ...]) -> None:
    (folder / "circle").symlink_to("circle")
    found = opmark(*words)
    refused(found, found.exit_code)
    assert found.exit_code


@pytest.mark.parametrize("name", ["m.onnx", "m.pt2"])
def test_a_model_of_a_terabyte_is_not_read(folder: Path, name: str) -> None:
    with (folder / name).open("wb") as stream:
        stream.truncate(2**40)
    refused(opmark("models", "show", name), 3, f"{name}: larger than")
