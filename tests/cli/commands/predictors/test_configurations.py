"""`opmark configurations`: which batch, size, target and element type to run a network with."""

from pathlib import Path

from tests.cli.commands.predictors.calls import answered, opmark
from tests.datasets import sample

TARGET = f"{sample.DEVICE}/onnxruntime-cpu-t1"


def test_every_combination_is_predicted_and_the_best_one_named(root: Path, tmp_path: Path) -> None:
    model, page = str(root / "classifier.onnx"), tmp_path / "page.html"
    asked = ("configurations", model, "--dimension", "n=1,8,64", "--type", "float32")
    found = answered(root, *asked, "--at-most", "1h", "-o", str(page))
    rows = found["configurations"]
    assert [(row["target"], row["type"], row["sizes"], row["batch"]) for row in rows] == [
        (TARGET, "float32", {"n": size}, size) for size in (1, 8, 64)
    ]
    for row in rows:
        alone = answered(root, "predict", model, "--dimension", f"n={row['batch']}")
        assert (row["latency_ns"], row["low_ns"], row["high_ns"]) == (
            alone["total_ns"],
            alone["low_ns"],
            alone["high_ns"],
        )
    fastest = min(rows, key=lambda row: row["latency_ns"])
    assert "lowest latency" in fastest["best_for"]
    assert "<svg" in page.read_text()
    text = opmark(root, *asked).stdout
    assert f"lowest latency: {TARGET} float32 n=1" in text
    brief = opmark(root, *asked, "--brief").stdout
    assert text.endswith(brief)
    assert brief.count("\n") == 2


def test_what_cannot_run_is_left_out_with_its_reason(root: Path) -> None:
    model = str(root / "classifier.onnx")
    asked = ("configurations", model, "--dimension", "n=1")
    some = answered(root, *asked, "--type", "float32", "--type", "bf16")
    assert [row["type"] for row in some["configurations"]] == ["float32"]
    (left,) = some["left_out"]
    assert (left["target"], left["type"]) == (TARGET, "bf16")
    assert "no bfloat16 kernel" in left["reason"]
    none = opmark(root, *asked, "--type", "bf16")
    assert (none.exit_code, "can be predicted" in none.stderr) == (5, True)


def test_bad_questions_get_one_sentence(root: Path) -> None:
    model = str(root / "classifier.onnx")
    for wrong in (("--batch", "1,x"), ("--dimension", "n"), ("--dimension", "n=1", "--dimension", "n=2")):
        result = opmark(root, "configurations", model, *wrong)
        assert (result.exit_code, result.stderr.count("Error: ")) == (2, 1), wrong
    named = opmark(root, "configurations", f"{model}@int8-dynamic", "--dimension", "n=1")
    assert (named.exit_code, "--type int8-dynamic" in named.stderr) == (2, True)
